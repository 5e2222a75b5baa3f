//! The log's decisions: facts in, an enum out.
//!
//! Owns: fenced or not, void or not, ours or not, and where a lineage begins. Does not own: doing anything about it (see
//! [`super::client`] and [`super::claim`]). Runs on: pure.

use super::entry::{LogEntry, Nonce};
use super::listing::Listing;
use crate::checkpoint::manifest::Manifest;
use crate::ids::{EntryNumber, JobName, Lineage, LogId};

/// What a claimant learns from the listing after its put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterClaim {
    /// Nothing stands above: the job is this attempt's.
    Claimed,
    /// A later claim stands above.
    Fenced {
        /// That claim.
        by: EntryNumber,
    },
    /// An older attempt had written above before the claim was put (the number was free because it had been cleaned):
    /// the claim says nothing, claim again.
    ClaimAgain,
}

/// Decides after a claim was put at `own` and the log was listed again.
pub fn decide_after_claim(own: EntryNumber, listing: &Listing) -> AfterClaim {
    let mut after = AfterClaim::Claimed;
    for (number, entry) in listing.above(own) {
        if entry.is_claim() {
            return AfterClaim::Fenced { by: number };
        }
        after = AfterClaim::ClaimAgain;
    }
    after
}

/// What the writer of an entry knows after its put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutAnswer {
    /// The store says that it created the object.
    Created,
    /// The store says that there was one. A store that retries inside may mean our own.
    AlreadyExists,
    /// An error or a timeout: it may have been created, now or later.
    Error,
}

/// Whether the put is settled, or must be read back.
pub fn decide_after_put(answer: PutAnswer) -> Option<ReadBack> {
    match answer {
        PutAnswer::Created => Some(ReadBack::Ours),
        PutAnswer::AlreadyExists | PutAnswer::Error => None,
    }
}

/// What reading back shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadBack {
    /// Our entry stands.
    Ours,
    /// Another one stands.
    Foreign,
    /// None stands: put again.
    Absent,
}

/// Compares what stands at the number with the nonce that was put there.
pub fn read_back(own: Nonce, found: Option<&LogEntry>) -> ReadBack {
    match found {
        Some(entry) if entry.nonce == own => ReadBack::Ours,
        Some(_) => ReadBack::Foreign,
        None => ReadBack::Absent,
    }
}

/// The lineage of an attempt: the restored one, or a new one at a start without restore and whenever the manifest was
/// written in another log or under another job name (law 6).
pub(super) fn lineage_of(
    own: EntryNumber,
    log_id: &LogId,
    job: &JobName,
    restored: Option<&Manifest>,
) -> Lineage {
    match restored {
        Some(manifest) if manifest.log_id == *log_id && manifest.job == *job => manifest.lineage,
        _ => Lineage(own.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::listing::tests::{checkpoint, claim, log, manifest};
    use super::*;
    use crate::checkpoint::commit_log::{ClaimBase, EntryBody};
    use crate::ids::AttemptId;

    #[test]
    fn a_claim_above_fences_and_a_checkpoint_above_voids() {
        let base = [claim(1, ClaimBase::Latest), claim(2, ClaimBase::Latest)];
        assert_eq!(decide_after_claim(EntryNumber(2), &log(base.clone())), AfterClaim::Claimed);
        let above = log(base.clone().into_iter().chain([checkpoint(3, 1, 2, &[])]));
        assert_eq!(decide_after_claim(EntryNumber(2), &above), AfterClaim::ClaimAgain);
        let both = log(base.into_iter().chain([checkpoint(3, 1, 2, &[]), claim(4, ClaimBase::Latest)]));
        assert_eq!(decide_after_claim(EntryNumber(2), &both), AfterClaim::Fenced { by: EntryNumber(4) });
    }

    #[test]
    fn only_an_own_nonce_completes_an_uncertain_put() {
        let mine = LogEntry { attempt: AttemptId(1), nonce: Nonce(9), body: EntryBody::Finished };
        let other = LogEntry { nonce: Nonce(8), ..mine.clone() };
        assert_eq!(decide_after_put(PutAnswer::Created), Some(ReadBack::Ours));
        assert_eq!(decide_after_put(PutAnswer::AlreadyExists), None);
        assert_eq!(decide_after_put(PutAnswer::Error), None);
        assert_eq!(read_back(Nonce(9), Some(&mine)), ReadBack::Ours);
        assert_eq!(read_back(Nonce(9), Some(&other)), ReadBack::Foreign);
        assert_eq!(read_back(Nonce(9), None), ReadBack::Absent);
    }

    #[test]
    fn a_lineage_goes_on_only_within_its_log_and_job() {
        let own = EntryNumber(7);
        let of = |log: &str, job: &str, m: Option<&Manifest>| lineage_of(own, &log.into(), &job.into(), m);
        let restored = Manifest { lineage: Lineage(3), ..manifest(4, 3) };
        assert_eq!(of("feed", "orders", Some(&restored)), Lineage(3));
        assert_eq!(of("beef", "orders", Some(&restored)), Lineage(7));
        assert_eq!(of("feed", "canary", Some(&restored)), Lineage(7));
        assert_eq!(of("feed", "orders", None), Lineage(7));
    }
}
