//! What people see of a checkpoint.
//!
//! Owns: costs and outcome of each of the last checkpoints. Does not own: anything that is decided by. Runs on: the job manager.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::checkpoint::failure_manager::FailureReason;
use crate::element::CheckpointKind;
use crate::ids::{CheckpointId, EntryNumber, SubtaskId};
use crate::taskworker::mail::SubtaskCheckpointStats;

/// One checkpoint, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointStats {
    /// Its id.
    pub id: CheckpointId,
    /// What it was for.
    pub kind: CheckpointKind,
    /// From the trigger to the entry, or to the failure.
    pub end_to_end: Duration,
    /// Uploaded and inline bytes of those that acknowledged.
    pub size_bytes: u64,
    /// How many acknowledged.
    pub acknowledged: usize,
    /// How many were asked.
    pub asked: usize,
    /// The last one to acknowledge.
    pub slowest: Option<SubtaskCosts>,
    /// Each that acknowledged, by vertex and index.
    pub subtasks: Arc<[SubtaskCosts]>,
    /// Those that did not.
    pub missing: Vec<SubtaskId>,
    /// How it ended.
    pub outcome: CheckpointOutcome,
}

/// What a checkpoint cost one subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubtaskCosts {
    /// Which.
    pub subtask: SubtaskId,
    /// From the trigger to its acknowledgement.
    pub after: Duration,
    /// What it cost there.
    pub costs: SubtaskCheckpointStats,
}

impl CheckpointStats {
    /// The longest step of any subtask from its barrier to its acknowledgement: for so long nothing else moved on that slot.
    pub fn longest_step(&self) -> Duration {
        let longest = self.subtasks.iter().map(|s| s.costs.longest_step_us).max();
        Duration::from_micros(longest.unwrap_or(0))
    }

    /// The longest sync part of any subtask.
    pub fn longest_sync(&self) -> Duration {
        let longest = self.subtasks.iter().map(|s| s.costs.sync_us).max();
        Duration::from_micros(longest.unwrap_or(0))
    }
}

/// How a checkpoint ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointOutcome {
    /// Its entry stands in the log.
    Complete {
        /// Where.
        entry: EntryNumber,
    },
    /// It was given up.
    Failed(FailureReason),
}

/// The last checkpoints, newest at the end.
#[derive(Clone, Debug, Default)]
pub struct CheckpointHistory {
    recent: VecDeque<CheckpointStats>,
    completed: u64,
    failed: u64,
}

/// How many checkpoints are remembered.
pub const HISTORY_MAX: usize = 32;

impl CheckpointHistory {
    /// Adds one; the oldest goes when there are too many.
    pub fn push(&mut self, stats: CheckpointStats) {
        match stats.outcome {
            CheckpointOutcome::Complete { .. } => self.completed += 1,
            CheckpointOutcome::Failed(_) => self.failed += 1,
        }
        if self.recent.len() == HISTORY_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(stats);
    }

    /// The last ones, oldest first.
    pub fn recent(&self) -> impl DoubleEndedIterator<Item = &CheckpointStats> {
        self.recent.iter()
    }

    /// How many were completed by this attempt.
    pub fn completed(&self) -> u64 {
        self.completed
    }

    /// How many failed in this attempt.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}
