//! How far each split of a source subtask is in event time, and which of them are idle.
//!
//! Idleness is counted in time that was spent waiting for records. Time in which the job had no room for records is none: of a pause
//! between two polls that may have been such, at most [`BUSY_GAP_MAX`] count.
//!
//! Owns: highest event time and silence of each split. Does not own: the strategy ([`super::watermarks`]). Runs on: pure.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::clock::Moment;
use crate::element::{SplitNotes, SplitStanding};

/// So much of the time between two polls counts as silence while the job is busy with other splits.
const BUSY_GAP_MAX: Duration = Duration::from_millis(10);

/// A reader without splits, as a split.
const NO_SPLIT: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, Default)]
struct SplitClock {
    highest: Option<i64>,
    silence: Duration,
    is_idle: bool,
    has_ended: bool,
}

/// See the module.
#[derive(Debug)]
pub struct SplitClocks {
    splits: BTreeMap<u32, SplitClock>,
    idleness: Option<Duration>,
    now: Moment,
}

impl SplitClocks {
    /// No split yet. `idleness`: silence after which a split is idle.
    pub fn new(idleness: Option<Duration>) -> Self {
        Self { splits: BTreeMap::new(), idleness, now: Moment::ZERO }
    }

    /// A split has a record with this event time.
    pub fn advance(&mut self, split: u32, time: i64) {
        let clock = self.splits.entry(split).or_default();
        clock.highest = clock.highest.max(Some(time));
    }

    /// Takes the notes of one poll; those of its records that were noted are seen by [`Self::advance`] later.
    pub fn note(&mut self, notes: &SplitNotes) {
        let gap = notes.now.saturating_sub(self.now);
        let gap = if notes.waited { gap } else { gap.min(BUSY_GAP_MAX) };
        self.now = notes.now;
        let none = [(NO_SPLIT, SplitStanding::CaughtUp)];
        let standings: &[_] = if notes.splits.is_empty() { &none } else { &notes.splits };
        // A split that is no longer told of has gone to another reader, or is over.
        self.splits.retain(|split, _| standings.iter().any(|(told, _)| told == split));
        for (split, standing) in standings {
            let is_new = !self.splits.contains_key(split);
            let clock = self.splits.entry(*split).or_default();
            let has_records = notes.runs.iter().any(|run| run.split == *split && run.records > 0);
            clock.has_ended = *standing == SplitStanding::Ended;
            if has_records {
                (clock.silence, clock.is_idle) = (Duration::ZERO, false);
            } else if *standing == SplitStanding::CaughtUp {
                clock.silence += if is_new { Duration::ZERO } else { gap };
                clock.is_idle |= self.idleness.is_some_and(|after| clock.silence >= after);
            } else {
                clock.silence = Duration::ZERO;
            }
        }
    }

    /// The lowest of the splits that are neither idle nor ended. `None`: there is none, or one of them has had no record.
    pub fn lowest(&self) -> Option<i64> {
        let counted = self.splits.values().filter(|clock| !clock.is_idle && !clock.has_ended);
        // `None` is below every time.
        counted.map(|clock| clock.highest).min().flatten()
    }

    /// Whether no split is left that holds anybody back. (When all have ended, the end of data says more.)
    pub fn is_idle(&self) -> bool {
        let mut live = self.splits.values().filter(|clock| !clock.has_ended).peekable();
        live.peek().is_some() && live.all(|clock| clock.is_idle)
    }

    /// When the next split may become idle.
    pub fn next_deadline(&self) -> Option<Moment> {
        let after = self.idleness?;
        let silent = self.splits.values().filter(|clock| !clock.is_idle && !clock.has_ended);
        let left = silent.map(|clock| after.saturating_sub(clock.silence)).min()?;
        // One that is being read has its silence before it: the look is early, and finds out.
        Some(self.now + left.max(Duration::from_millis(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::SplitRun;
    use SplitStanding::{CaughtUp, Ended, Reading};

    fn clocks() -> SplitClocks {
        SplitClocks::new(Some(Duration::from_secs(1)))
    }

    fn note(
        clocks: &mut SplitClocks,
        at_ms: u64,
        waited: bool,
        splits: &[(u32, SplitStanding, Option<i64>)],
    ) {
        let runs =
            splits.iter().filter(|s| s.2.is_some()).map(|s| SplitRun { split: s.0, records: 1 }).collect();
        let standings = splits.iter().map(|s| (s.0, s.1)).collect();
        clocks.note(&SplitNotes { now: Duration::from_millis(at_ms), waited, runs, splits: standings });
        splits.iter().filter_map(|s| Some((s.0, s.2?))).for_each(|(split, time)| clocks.advance(split, time));
    }

    #[test]
    fn the_slowest_split_holds_the_watermark_and_one_without_records_does_so_too() {
        let mut clocks = clocks();
        note(&mut clocks, 0, false, &[(0, Reading, Some(100)), (1, Reading, None)]);
        assert_eq!(clocks.lowest(), None);
        note(&mut clocks, 1, false, &[(0, Reading, Some(200)), (1, Reading, Some(50))]);
        assert_eq!(clocks.lowest(), Some(50));
        note(&mut clocks, 2, false, &[(0, Reading, None), (1, Ended, None)]);
        assert_eq!(clocks.lowest(), Some(200), "a split that has ended holds nobody back");
    }

    #[test]
    fn a_silent_split_is_idle_after_its_time_and_active_with_its_next_record() {
        let mut clocks = clocks();
        note(&mut clocks, 0, false, &[(0, CaughtUp, Some(100)), (1, CaughtUp, Some(10))]);
        note(&mut clocks, 999, true, &[(0, CaughtUp, Some(300)), (1, CaughtUp, None)]);
        assert_eq!(clocks.lowest(), Some(10));
        assert_eq!(clocks.next_deadline(), Some(Duration::from_millis(1_000)));
        note(&mut clocks, 1_000, true, &[(0, CaughtUp, None), (1, CaughtUp, None)]);
        assert_eq!((clocks.lowest(), clocks.is_idle()), (Some(300), false));
        note(&mut clocks, 2_500, true, &[(0, CaughtUp, None), (1, CaughtUp, None)]);
        assert!(clocks.is_idle());
        note(&mut clocks, 2_501, true, &[(0, CaughtUp, None), (1, CaughtUp, Some(20))]);
        assert_eq!((clocks.lowest(), clocks.is_idle()), (Some(20), false));
    }

    #[test]
    fn a_split_that_is_held_up_is_not_idle() {
        let mut clocks = clocks();
        note(&mut clocks, 0, false, &[(0, Reading, Some(1)), (1, CaughtUp, Some(2))]);
        // A minute passes in which the job had no room, then another one in which one split waits at the server.
        note(&mut clocks, 60_000, false, &[(0, Reading, None), (1, CaughtUp, None)]);
        note(&mut clocks, 120_000, true, &[(0, Reading, None), (1, Reading, None)]);
        assert_eq!((clocks.lowest(), clocks.is_idle()), (Some(1), false));
    }

    #[test]
    fn without_idleness_silence_holds_event_time_still() {
        let mut clocks = SplitClocks::new(None);
        note(&mut clocks, 0, false, &[(0, CaughtUp, Some(1)), (1, CaughtUp, None)]);
        note(&mut clocks, 9_000_000, true, &[(0, CaughtUp, Some(5)), (1, CaughtUp, None)]);
        assert_eq!((clocks.lowest(), clocks.is_idle(), clocks.next_deadline()), (None, false, None));
    }

    #[test]
    fn a_subtask_without_splits_is_idle_after_its_time() {
        let mut clocks = clocks();
        note(&mut clocks, 0, true, &[]);
        note(&mut clocks, 1_500, true, &[]);
        assert!(clocks.is_idle());
        note(&mut clocks, 1_600, true, &[(3, Reading, None)]);
        assert_eq!((clocks.is_idle(), clocks.lowest()), (false, None));
    }
}
