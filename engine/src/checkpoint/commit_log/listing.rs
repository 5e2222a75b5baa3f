//! What stands in a log, and the walks over it.
//!
//! The *line* is what a restore can reach: from the newest entry downwards, through checkpoints, across the base of each claim
//! that has an explicit one, to a start without restore or to the bottom.
//!
//! Owns: the walks. Does not own: how the entries were read (see [`super::client`]). Runs on: pure.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::entry::{ClaimBase, EntryBody, LogEntry};
use crate::checkpoint::completed::CompletedCheckpoint;
use crate::ids::{AttemptId, CheckpointId, EntryNumber, OperatorUid};
use crate::operator::TransactionName;

/// Every entry that a listing showed and that could still be read.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    entries: BTreeMap<EntryNumber, Arc<LogEntry>>,
}

/// Where a walk ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestorePoint {
    /// At this checkpoint entry.
    Checkpoint(EntryNumber),
    /// At nothing: a start without restore, or an empty log.
    Nothing,
    /// At the end of the job.
    Finished(EntryNumber),
    /// At a base that is not there.
    Missing {
        /// The claim that hands it on.
        claim: EntryNumber,
        /// The base.
        base: EntryNumber,
    },
}

impl FromIterator<(EntryNumber, Arc<LogEntry>)> for Listing {
    fn from_iter<I: IntoIterator<Item = (EntryNumber, Arc<LogEntry>)>>(entries: I) -> Self {
        Self { entries: entries.into_iter().collect() }
    }
}

impl Listing {
    /// The entry at `number`.
    pub fn get(&self, number: EntryNumber) -> Option<&Arc<LogEntry>> {
        self.entries.get(&number)
    }

    /// Every entry, lowest first.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (EntryNumber, &LogEntry)> {
        self.entries.iter().map(|(n, e)| (*n, e.as_ref()))
    }

    /// Every entry above `number`, lowest first.
    pub fn above(&self, number: EntryNumber) -> impl Iterator<Item = (EntryNumber, &LogEntry)> {
        self.entries.range(number.next()..).map(|(n, e)| (*n, e.as_ref()))
    }

    /// The highest number; 0 in an empty log.
    pub fn highest(&self) -> EntryNumber {
        self.entries.last_key_value().map_or(EntryNumber(0), |(n, _)| *n)
    }

    /// The id after the highest one that any entry mentions.
    pub fn next_checkpoint(&self) -> CheckpointId {
        let highest = self.entries.values().filter_map(|e| e.checkpoint_id()).max();
        highest.unwrap_or_default().next()
    }

    /// The checkpoint at `number`.
    pub fn checkpoint(&self, number: EntryNumber) -> Option<CompletedCheckpoint> {
        let manifest = self.get(number)?.manifest()?.clone();
        Some(CompletedCheckpoint { number, manifest: Arc::new(manifest) })
    }

    /// Every checkpoint, lowest first.
    pub fn checkpoints(&self) -> impl Iterator<Item = CompletedCheckpoint> + '_ {
        self.entries.keys().filter_map(|n| self.checkpoint(*n))
    }

    /// Entries retained with the checkpoint at `number`, as far as they are there.
    pub fn retained_with(&self, number: EntryNumber) -> Vec<CompletedCheckpoint> {
        self.retained_names(number).iter().filter_map(|n| self.checkpoint(*n)).collect()
    }

    /// Numbers that the checkpoint at `number` retains, whether or not they are there.
    pub(super) fn retained_names(&self, number: EntryNumber) -> &[EntryNumber] {
        match self.get(number).map(|e| &e.body) {
            Some(EntryBody::Checkpoint { retained, .. }) => retained,
            _ => &[],
        }
    }

    /// What the checkpoint at `number` knew to be committed.
    pub fn committed_with(&self, number: EntryNumber) -> Vec<(OperatorUid, CheckpointId)> {
        match self.get(number).map(|e| &e.body) {
            Some(EntryBody::Checkpoint { committed, .. }) => committed.clone(),
            _ => Vec::new(),
        }
    }

    /// Transactions that somebody decided to go on without.
    pub fn forgotten(&self) -> Vec<TransactionName> {
        let bodies = self.entries.values().map(|e| &e.body);
        bodies
            .filter_map(|body| match body {
                EntryBody::Forgotten { transaction } => Some(transaction.clone()),
                _ => None,
            })
            .collect()
    }

    /// The newest attempt that began with an explicit base: a rewind, or anew. What attempts below it committed, behind where it began, somebody has
    /// decided to have once more. 0: there is none.
    pub fn rewound_at(&self) -> AttemptId {
        let explicit = |entry: &LogEntry| {
            matches!(entry.body, EntryBody::Claim { base: ClaimBase::None | ClaimBase::Entry(_), .. })
        };
        let newest = self.iter().rev().find(|(number, entry)| explicit(entry) && !self.is_void(*number));
        newest.map(|(_, entry)| entry.attempt).unwrap_or_default()
    }

    /// Whether the claim at `number` was void: an attempt below it had already written above it, which it can only have done
    /// before the claim was put (every entry goes at own last + 1, and a claim is never deleted).
    pub fn is_void(&self, number: EntryNumber) -> bool {
        self.above(number).any(|(_, e)| e.attempt.0 < number.0)
    }

    /// Claims above that of the attempt `own` that stand, lowest first. Void ones say nothing.
    pub fn claims_above(&self, own: AttemptId) -> impl Iterator<Item = (EntryNumber, &LogEntry)> {
        self.above(EntryNumber(own.0)).filter(|(number, entry)| entry.is_claim() && !self.is_void(*number))
    }

    /// Walks down from `from`, itself included: the first checkpoint, or the base of the first claim that has an explicit one.
    pub fn restore_point(&self, from: EntryNumber) -> RestorePoint {
        for (number, entry) in self.entries.range(..=from).rev() {
            match &entry.body {
                EntryBody::Checkpoint { .. } => return RestorePoint::Checkpoint(*number),
                EntryBody::Finished => return RestorePoint::Finished(*number),
                EntryBody::Claim { base, .. } if !self.is_void(*number) => match base {
                    ClaimBase::Latest => {}
                    ClaimBase::None => return RestorePoint::Nothing,
                    ClaimBase::Entry(base) => return self.handed_on(*number, *base),
                },
                EntryBody::Claim { .. } | EntryBody::Settled { .. } | EntryBody::Forgotten { .. } => {}
            }
        }
        RestorePoint::Nothing
    }

    fn handed_on(&self, claim: EntryNumber, base: EntryNumber) -> RestorePoint {
        match self.checkpoint(base) {
            Some(_) => RestorePoint::Checkpoint(base),
            None => RestorePoint::Missing { claim, base },
        }
    }

    /// Every checkpoint entry on the line, newest first.
    pub fn line(&self) -> Vec<EntryNumber> {
        let mut line = Vec::new();
        let mut from = self.highest();
        while let Some((number, entry)) = self.entries.range(..=from).next_back() {
            let mut next = EntryNumber(number.0.saturating_sub(1));
            match &entry.body {
                EntryBody::Checkpoint { .. } => line.push(*number),
                EntryBody::Claim { base, .. } if !self.is_void(*number) => match base {
                    ClaimBase::Latest => {}
                    ClaimBase::None => break,
                    ClaimBase::Entry(base) => next = next.min(*base),
                },
                _ => {}
            }
            if number.0 == 0 {
                break;
            }
            from = next;
        }
        line
    }

    /// What the newest checkpoint entry of the log keeps: itself and what it names, whether or not it is on the line. Whatever else
    /// still stands, the cleaner of that entry's attempt may be about to delete.
    pub fn kept(&self) -> Vec<EntryNumber> {
        let Some(newest) = self.checkpoints().last() else { return Vec::new() };
        self.retained_with(newest.number).iter().chain([&newest]).map(|c| c.number).collect()
    }

    /// What `--rewind` may name now: checkpoints on the line that the newest entry of the log keeps; newest first.
    pub fn restorable(&self) -> Vec<CompletedCheckpoint> {
        let kept = self.kept();
        self.line().into_iter().filter(|n| kept.contains(n)).filter_map(|n| self.checkpoint(n)).collect()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::checkpoint::commit_log::Nonce;
    use crate::checkpoint::manifest::Manifest;
    use crate::element::CheckpointKind;
    use crate::ids::AttemptId;

    pub(in super::super) fn manifest(id: u64, attempt: u64) -> Manifest {
        Manifest {
            job: "orders".into(),
            log_id: "feed".into(),
            lineage: Default::default(),
            checkpoint: CheckpointId(id),
            attempt: AttemptId(attempt),
            kind: CheckpointKind::Checkpoint,
            completed_at_ms: 0,
            operators: Vec::new(),
        }
    }

    fn entry(attempt: u64, body: EntryBody) -> Arc<LogEntry> {
        Arc::new(LogEntry { attempt: AttemptId(attempt), nonce: Nonce(u128::from(attempt)), body })
    }

    pub(in super::super) fn claim(number: u64, base: ClaimBase) -> (EntryNumber, Arc<LogEntry>) {
        (EntryNumber(number), entry(number, EntryBody::Claim { base, stores: Vec::new() }))
    }

    pub(in super::super) fn checkpoint(
        number: u64,
        attempt: u64,
        id: u64,
        retained: &[u64],
    ) -> (EntryNumber, Arc<LogEntry>) {
        let retained = retained.iter().map(|n| EntryNumber(*n)).collect();
        let body = EntryBody::Checkpoint { manifest: manifest(id, attempt), retained, committed: Vec::new() };
        (EntryNumber(number), entry(attempt, body))
    }

    pub(in super::super) fn finished(number: u64, attempt: u64) -> (EntryNumber, Arc<LogEntry>) {
        (EntryNumber(number), entry(attempt, EntryBody::Finished))
    }

    pub(in super::super) fn log(entries: impl IntoIterator<Item = (EntryNumber, Arc<LogEntry>)>) -> Listing {
        entries.into_iter().collect()
    }

    use ClaimBase::{Entry, Latest, None as Anew};
    use RestorePoint::{Checkpoint, Finished, Missing, Nothing};

    #[test]
    fn the_first_checkpoint_below_is_restored() {
        let log =
            log([claim(1, Latest), checkpoint(2, 1, 1, &[]), checkpoint(3, 1, 2, &[2]), claim(4, Latest)]);
        assert_eq!(log.restore_point(EntryNumber(4)), Checkpoint(EntryNumber(3)));
        assert_eq!(log.next_checkpoint(), CheckpointId(3));
    }

    #[test]
    fn an_explicit_base_is_handed_on_by_a_claim_that_died_early() {
        let base = [claim(1, Latest), checkpoint(2, 1, 1, &[]), checkpoint(3, 1, 2, &[2])];
        let rewound =
            log(base.clone().into_iter().chain([claim(4, Entry(EntryNumber(2))), claim(5, Latest)]));
        assert_eq!(rewound.restore_point(EntryNumber(5)), Checkpoint(EntryNumber(2)));
        let anew = log(base.clone().into_iter().chain([claim(4, Anew), claim(5, Latest)]));
        assert_eq!(anew.restore_point(EntryNumber(5)), Nothing);
        let gone = log(base.into_iter().skip(2).chain([claim(4, Entry(EntryNumber(2)))]));
        assert_eq!(
            gone.restore_point(EntryNumber(4)),
            Missing { claim: EntryNumber(4), base: EntryNumber(2) }
        );
    }

    #[test]
    fn a_void_claim_hands_nothing_on() {
        // The claim at 2 met a log whose attempt 1 stood at 3 already; the claimant died before it claimed again.
        let log = log([claim(1, Latest), claim(2, Anew), checkpoint(3, 1, 2, &[]), claim(4, Latest)]);
        assert!(log.is_void(EntryNumber(2)));
        assert!(!log.is_void(EntryNumber(4)));
        assert_eq!(log.restore_point(EntryNumber(4)), Checkpoint(EntryNumber(3)));
    }

    #[test]
    fn the_end_of_the_job_is_an_end_unless_it_began_anew() {
        let finished_log = [claim(1, Latest), checkpoint(2, 1, 1, &[]), finished(3, 1)];
        assert_eq!(log(finished_log.clone()).restore_point(EntryNumber(3)), Finished(EntryNumber(3)));
        let again = log(finished_log.into_iter().chain([claim(4, Anew)]));
        assert_eq!(again.restore_point(EntryNumber(4)), Nothing);
    }

    #[test]
    fn the_line_jumps_over_what_a_rewind_passed_over_and_ends_at_a_start_without_restore() {
        let log = log([
            claim(1, Anew),
            checkpoint(2, 1, 1, &[]),
            checkpoint(3, 1, 2, &[2]),
            claim(4, Entry(EntryNumber(2))),
            checkpoint(5, 4, 3, &[2]),
        ]);
        assert_eq!(log.line(), [EntryNumber(5), EntryNumber(2)]);
        let ids: Vec<_> = log.restorable().iter().map(CompletedCheckpoint::id).collect();
        assert_eq!(ids, [CheckpointId(3), CheckpointId(1)]);
    }
}
