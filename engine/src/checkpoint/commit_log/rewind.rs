//! Whether a job may be set back to an older checkpoint, and what that costs.
//!
//! Owns: the rule that only what the newest entry of the line retains may be named, and the list of outputs that appear twice.
//! Does not own: the claim that carries it out. Runs on: pure.

use super::error::LogError;
use super::listing::Listing;
use crate::checkpoint::completed::CompletedCheckpoint;
use crate::ids::{CheckpointId, OperatorUid};

/// A rewind that may be claimed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewind {
    /// What is restored.
    pub target: CompletedCheckpoint,
    /// What will be in the output twice.
    pub doubled: Vec<DoubledOutput>,
}

/// Output of one sink that a rewind repeats.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("output of \"{uid}\" after checkpoint {after} up to checkpoint {up_to} will be there twice")]
pub struct DoubledOutput {
    /// The two-phase sink.
    pub uid: OperatorUid,
    /// Behind this checkpoint.
    pub after: CheckpointId,
    /// Up to and with this one.
    pub up_to: CheckpointId,
}

/// Checks a rewind to `checkpoint` against the log in `folder`.
pub(super) fn validate_rewind(
    listing: &Listing,
    checkpoint: CheckpointId,
    folder: &str,
) -> Result<Rewind, LogError> {
    let restorable = listing.restorable();
    let ids = || restorable.iter().map(CompletedCheckpoint::id).collect::<Vec<_>>();
    let newest = restorable.first().cloned();
    if let Some(target) = restorable.iter().find(|c| c.id() == checkpoint) {
        let doubled = newest.map(|newest| doubled(target, &newest)).unwrap_or_default();
        return Ok(Rewind { target: target.clone(), doubled });
    }
    let known = listing.checkpoints().find(|c| c.id() == checkpoint);
    let (Some(known), Some(newest)) = (known, newest) else {
        return Err(LogError::UnknownCheckpoint { checkpoint, folder: folder.to_owned(), restorable: ids() });
    };
    let newest = newest.id();
    Err(match listing.line().contains(&known.number) {
        true => LogError::NotRetained { checkpoint, newest, restorable: ids() },
        false => LogError::NotOnTheLine { checkpoint, newest, restorable: ids() },
    })
}

fn doubled(target: &CompletedCheckpoint, newest: &CompletedCheckpoint) -> Vec<DoubledOutput> {
    if target.number == newest.number {
        return Vec::new();
    }
    let sinks = newest.manifest.operators.iter().filter(|o| o.two_phase);
    sinks.map(|o| DoubledOutput { uid: o.uid.clone(), after: target.id(), up_to: newest.id() }).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ClaimBase::{Entry, Latest, None as Anew};
    use super::super::listing::tests::{checkpoint, claim, log};
    use super::*;
    use crate::ids::EntryNumber;

    fn rewind(listing: &Listing, id: u64) -> Result<Rewind, LogError> {
        validate_rewind(listing, CheckpointId(id), "file:///checkpoints")
    }

    #[test]
    fn only_what_the_newest_entry_retains_may_be_named() {
        let log = log([
            claim(1, Latest),
            checkpoint(2, 1, 1, &[]),
            checkpoint(3, 1, 2, &[2]),
            checkpoint(4, 1, 3, &[3]),
        ]);
        assert_eq!(rewind(&log, 2).unwrap().target.number, EntryNumber(3));
        assert_eq!(rewind(&log, 3).unwrap().target.number, EntryNumber(4));
        assert!(matches!(rewind(&log, 1), Err(LogError::NotRetained { .. })));
        assert!(matches!(rewind(&log, 9), Err(LogError::UnknownCheckpoint { .. })));
    }

    #[test]
    fn what_was_passed_over_or_lies_under_a_fresh_start_never_returns() {
        let base = [claim(1, Latest), checkpoint(2, 1, 1, &[]), checkpoint(3, 1, 2, &[2])];
        let rewound = [claim(4, Entry(EntryNumber(2))), checkpoint(5, 4, 3, &[2])];
        let log1 = log(base.clone().into_iter().chain(rewound));
        assert!(matches!(rewind(&log1, 2), Err(LogError::NotOnTheLine { .. })));
        assert_eq!(rewind(&log1, 1).unwrap().target.number, EntryNumber(2));
        let anew = log(base.into_iter().chain([claim(4, Anew), checkpoint(5, 4, 3, &[])]));
        assert!(matches!(rewind(&anew, 1), Err(LogError::NotOnTheLine { .. })));
    }
}
