//! What a run, or many runs, have come upon.
//!
//! Owns: counters by area and name, and the list of what a set of seeds must have seen. Does not own: when something counts.
//! Runs on: plain data; shared within the simulation's thread.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_state::fault::FAULT_POINTS;

/// Areas of coverage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Area {
    /// A crash at this place, after which a recovery completed.
    Recovered,
    /// Why a checkpoint failed.
    FailedCheckpoint,
    /// What a commit came to.
    Commit,
    /// How an uncertain put of a log entry was settled.
    UncertainPut,
    /// Anything else that must not be missed.
    Event,
    /// Faults that were injected.
    Injected,
}

impl fmt::Display for Area {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Recovered => "crash, and recovery completed",
            Self::FailedCheckpoint => "checkpoint failed",
            Self::Commit => "commit",
            Self::UncertainPut => "uncertain put of an entry",
            Self::Event => "event",
            Self::Injected => "injected",
        })
    }
}

/// Counters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    counts: BTreeMap<(Area, &'static str), u64>,
}

/// Counters that the parts of one simulation share.
#[derive(Clone, Debug, Default)]
pub struct SharedCoverage {
    /// Guards the counters; one thread uses it.
    inner: Arc<Mutex<Coverage>>,
}

impl SharedCoverage {
    /// Counts once.
    pub fn count(&self, area: Area, what: &'static str) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).count(area, what);
    }

    /// What was counted.
    pub fn get(&self) -> Coverage {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What a set of a few hundred seeds must have seen, besides a crash at every fault point.
const REQUIRED: &[(Area, &str)] = &[
    (Area::Recovered, BETWEEN_STEPS),
    (Area::FailedCheckpoint, "expired"),
    (Area::FailedCheckpoint, "declined"),
    (Area::FailedCheckpoint, "subsumed"),
    (Area::Commit, "committed"),
    (Area::Commit, "already committed"),
    (Area::Commit, "retry after"),
    (Area::Commit, "lost"),
    (Area::UncertainPut, "refused"),
    (Area::UncertainPut, "applied, answered with an error"),
    (Area::UncertainPut, "applied late"),
    (Area::Event, "a committed entry whose transactions recovery committed"),
    (Area::Event, "two checkpoints in flight"),
    (Area::Event, "a checkpoint completed after one that failed"),
    (Area::Event, "rescaled with pending transactions"),
    (Area::Event, "a fenced attempt"),
    (Area::Event, "canceled in order"),
    (Area::Event, "a paused attempt went on beside its successor"),
    (Area::Event, "an attempt paused for ever"),
    (Area::Event, "restart inside the process"),
    (Area::Event, "a job manager died, and its worker went on"),
    (Area::Event, "a worker died, and its job manager went on"),
    (Area::Event, "a worker without a job manager went on beside the next attempt"),
    (Area::Event, "a checkpoint completed after its worker had died"),
    (Area::Event, "a transaction of several part files"),
    (Area::Event, "explicit restore"),
    (Area::Event, "a transaction rolled back by hand was reported lost"),
    (Area::Event, "the ledger was found at the checkpoint"),
    (Area::Event, "the ledger settled a doubt: lost"),
    (Area::Injected, "coordinators moved"),
    (Area::Injected, "a coordinator executed and answered with an error"),
    (Area::Injected, "an answer of the broker was lost"),
    (Area::Injected, "a request was late and had no answer"),
    (Area::Injected, "a request of the broker was executed late"),
    (Area::Injected, "mail lost"),
    (Area::Injected, "mail doubled"),
    (Area::Injected, "mail late"),
    (Area::Injected, "mail of another process"),
    (Area::Injected, "report lost"),
    (Area::Injected, "report doubled"),
    (Area::Injected, "report late"),
    (Area::Injected, "report of another process"),
    (Area::Injected, "read refused"),
    (Area::Injected, "listing refused"),
    (Area::Injected, "connection dropped"),
    (Area::Injected, "disk full"),
    (Area::Injected, "function failed"),
    (Area::Injected, "wall clock jumped"),
    (Area::Injected, "statement of a dead client executed"),
];

/// The name of a crash that struck no fault point.
pub const BETWEEN_STEPS: &str = "between two steps";

impl Coverage {
    /// Counts once.
    pub fn count(&mut self, area: Area, what: &'static str) {
        *self.counts.entry((area, what)).or_default() += 1;
    }

    /// How often.
    pub fn of(&self, area: Area, what: &'static str) -> u64 {
        self.counts.get(&(area, what)).copied().unwrap_or_default()
    }

    /// Adds another one.
    pub fn merge(&mut self, other: &Self) {
        for (what, count) in &other.counts {
            *self.counts.entry(*what).or_default() += count;
        }
    }

    /// What a set of seeds should have seen and has not.
    pub fn missing(&self) -> Vec<String> {
        let points = FAULT_POINTS.iter().map(|p| (Area::Recovered, *p));
        points
            .chain(REQUIRED.iter().copied())
            .filter(|(area, what)| self.of(*area, what) == 0)
            .map(|(area, what)| format!("{area}: {what}"))
            .collect()
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut area_before = None;
        for ((area, what), count) in &self.counts {
            if area_before != Some(*area) {
                writeln!(f, "  {area}")?;
                area_before = Some(*area);
            }
            writeln!(f, "    {count:>8}  {what}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_run_misses_every_fault_point_and_every_event() {
        let missing = Coverage::default().missing();
        assert_eq!(missing.len(), FAULT_POINTS.len() + REQUIRED.len());
        let mut seen = Coverage::default();
        seen.count(Area::Commit, "lost");
        assert_eq!(seen.missing().len(), missing.len() - 1);
    }
}
