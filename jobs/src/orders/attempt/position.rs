//! Where a run stands, as far as its watcher has heard, and where it is to be killed.
//!
//! Owns: what the events add up to, and the decision to kill.
//! Does not own: the kill.
//! Runs on: the watcher's thread. Pure.

use tidegate::RunEvent;

/// What the events of one run add up to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// Orders read.
    pub(crate) records_in: u64,
    /// Orders there are, once the run has said it.
    pub(crate) records_total: Option<u64>,
    /// Checkpoints completed by this run.
    pub(crate) checkpoints: u64,
    /// Transactions prepared and not yet committed.
    pub(crate) prepared: u64,
    /// The highest checkpoint known to be complete.
    pub(crate) newest_checkpoint: Option<u64>,
    /// The checkpoint that this run began with.
    pub(crate) restored: Option<u64>,
    /// Orders read when this run completed its first checkpoint.
    pub(crate) records_at_checkpoint: Option<u64>,
    checkpoints_heard: u64,
}

impl Position {
    /// Takes in one event.
    pub(crate) fn advance(&mut self, event: &RunEvent) {
        match *event {
            RunEvent::Started { restored, .. } => {
                self.restored = restored;
                self.newest_checkpoint = self.newest_checkpoint.max(restored);
            }
            RunEvent::Progress { records_in, records_total, checkpoints, prepared } => {
                self.records_in = records_in;
                self.records_total = records_total.or(self.records_total);
                self.checkpoints = self.checkpoints.max(checkpoints);
                self.prepared = prepared;
            }
            RunEvent::Checkpoint { id, .. } => {
                self.checkpoints_heard += 1;
                self.checkpoints = self.checkpoints.max(self.checkpoints_heard);
                self.newest_checkpoint = self.newest_checkpoint.max(Some(id));
                self.records_at_checkpoint.get_or_insert(self.records_in);
            }
            RunEvent::Finished { records_in, checkpoints, .. }
            | RunEvent::Canceled { records_in, checkpoints, .. } => {
                self.records_in = records_in;
                self.checkpoints = self.checkpoints.max(checkpoints);
                self.prepared = 0;
            }
            RunEvent::Committed { .. }
            | RunEvent::CheckpointFailed { .. }
            | RunEvent::Restarting { .. }
            | RunEvent::RepeatedOutput { .. }
            | RunEvent::GivenUp { .. }
            | RunEvent::Failed { .. } => {}
        }
    }
}

/// The place of a kill: not before both counts are reached, and only while input is left. Where it hurts most is between the
/// prepare and the commit of a transaction: the kill waits for that for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KillPoint {
    /// At least so many orders read.
    pub(crate) records_in: u64,
    /// When so many have been read, it waits for no prepared transaction any more.
    pub(crate) records_in_at_last: u64,
    /// At least so many checkpoints completed by the run.
    pub(crate) checkpoints: u64,
    /// At least so many read since the first of them.
    pub(crate) records_after_checkpoint: u64,
}

impl KillPoint {
    /// True when a run that stands at `position` is to be killed.
    pub(crate) fn is_reached(self, position: &Position) -> bool {
        let input_left = position.records_total.is_none_or(|total| position.records_in < total);
        let first = position.records_at_checkpoint.unwrap_or_default();
        let in_place = position.records_in >= self.records_in.max(first + self.records_after_checkpoint)
            && position.checkpoints >= self.checkpoints;
        input_left && in_place && (position.prepared > 0 || position.records_in >= self.records_in_at_last)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: KillPoint =
        KillPoint { records_in: 0, records_in_at_last: 0, checkpoints: 1, records_after_checkpoint: 0 };

    fn progress(records_in: u64, checkpoints: u64) -> RunEvent {
        RunEvent::Progress { records_in, records_total: Some(100), checkpoints, prepared: 1 }
    }

    fn after(events: &[RunEvent]) -> Position {
        let mut position = Position::default();
        events.iter().for_each(|event| position.advance(event));
        position
    }

    #[test]
    fn a_kill_waits_for_orders_and_checkpoints_and_needs_input_left() {
        let point = KillPoint { records_in: 40, records_in_at_last: 40, ..FIRST };
        let cases = [((39, 1), false), ((40, 0), false), ((40, 1), true), ((99, 9), true), ((100, 9), false)];
        for ((records_in, checkpoints), expected) in cases {
            assert_eq!(point.is_reached(&after(&[progress(records_in, checkpoints)])), expected);
        }
    }

    #[test]
    fn a_kill_waits_for_a_prepared_transaction_but_not_for_ever() {
        let point = KillPoint { records_in: 40, records_in_at_last: 60, ..FIRST };
        let at = |records_in, prepared| {
            let progress =
                RunEvent::Progress { records_in, records_total: Some(100), checkpoints: 1, prepared };
            point.is_reached(&after(&[progress]))
        };
        assert_eq!(
            [at(39, 1), at(40, 0), at(40, 1), at(59, 0), at(60, 0)],
            [false, false, true, false, true]
        );
    }

    #[test]
    fn a_kill_some_way_behind_a_checkpoint_counts_from_the_first_one() {
        let point = KillPoint { records_after_checkpoint: 30, ..FIRST };
        let checkpoint = |id| RunEvent::Checkpoint { id, duration_ms: 1, bytes: 1 };
        let first = [progress(10, 0), checkpoint(5), progress(39, 1), checkpoint(6)];
        assert!(!point.is_reached(&after(&first)));
        assert!(point.is_reached(&after(&[&first[..], &[progress(40, 2)]].concat())));
        assert!(!point.is_reached(&after(&[progress(90, 0)])));
    }

    #[test]
    fn a_checkpoint_counts_before_the_next_progress_says_so() {
        let checkpoint = RunEvent::Checkpoint { id: 5, duration_ms: 1, bytes: 1 };
        let position = after(&[progress(10, 0), checkpoint.clone()]);
        assert_eq!((position.checkpoints, position.newest_checkpoint), (1, Some(5)));
        let position = after(&[progress(10, 0), checkpoint, progress(20, 1)]);
        assert_eq!((position.checkpoints, position.records_in), (1, 20));
    }

    #[test]
    fn the_restored_checkpoint_is_complete_but_not_of_this_run() {
        let started =
            RunEvent::Started { attempt: 2, restored: Some(14), restore_ms: 1, committed: 0, rolled_back: 0 };
        let position = after(&[started]);
        assert_eq!((position.checkpoints, position.newest_checkpoint), (0, Some(14)));
    }
}
