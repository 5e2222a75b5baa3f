//! Why checkpoints fail, and how many failures are borne.
//!
//! Owns: the closed list of reasons, each counted or not, and the count since the newest completed checkpoint.
//! Does not own: what happens to the attempt (see [`crate::jobmanager::job_master`]). Runs on: the job manager. Pure.

use serde::{Deserialize, Serialize};

use crate::ids::{CheckpointId, SubtaskId};
use crate::jobmanager::plan::JobPlan;

/// So many subtasks are named in a reason; the others are counted.
const NAMED_MAX: usize = 3;

/// Why a checkpoint was given up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum FailureReason {
    /// Not every subtask acknowledged in time.
    #[error("expired: {} of its subtasks did not acknowledge", missing.len())]
    Expired {
        /// Those that did not.
        missing: Vec<SubtaskId>,
    },
    /// A subtask could not take part.
    #[error("declined by {subtask}: {reason}")]
    Declined {
        /// Which.
        subtask: SubtaskId,
        /// Its words.
        reason: String,
    },
    /// A later one is complete.
    #[error("subsumed by checkpoint {by}")]
    Subsumed {
        /// That one.
        by: CheckpointId,
    },
    /// The job is being canceled.
    #[error("the job is being canceled")]
    Canceling,
}

impl FailureReason {
    /// The same with the subtasks' names, for people.
    pub fn in_words(&self, plan: &JobPlan) -> String {
        match self {
            Self::Expired { missing } => {
                let names: Vec<_> = missing.iter().map(|subtask| plan.subtask_name(*subtask)).collect();
                match names.len() {
                    0 => self.to_string(),
                    n if n <= NAMED_MAX => format!("expired: no acknowledgement from {}", names.join(", ")),
                    n => {
                        let (named, more) = (names[..NAMED_MAX].join(", "), n - NAMED_MAX);
                        format!("expired: no acknowledgement from {named} and {more} more")
                    }
                }
            }
            Self::Declined { subtask, reason } => {
                format!("declined by {}: {reason}", plan.subtask_name(*subtask))
            }
            Self::Subsumed { .. } | Self::Canceling => self.to_string(),
        }
    }

    /// Whether it counts against the tolerable failures.
    pub fn counted(&self) -> bool {
        match self {
            Self::Expired { .. } | Self::Declined { .. } => true,
            Self::Subsumed { .. } | Self::Canceling => false,
        }
    }
}

/// What a failure means for the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes on.
    Tolerated,
    /// It fails: so many checkpoints failed in a row.
    Exceeded {
        /// How many.
        failures: u32,
    },
}

/// Counts failures since the newest completed checkpoint.
#[derive(Clone, Debug)]
pub struct FailureManager {
    tolerable: u32,
    failures: u32,
}

impl FailureManager {
    /// Bears `tolerable` failures in a row.
    pub fn new(tolerable: u32) -> Self {
        Self { tolerable, failures: 0 }
    }

    /// A checkpoint failed.
    pub fn failed(&mut self, reason: &FailureReason) -> Verdict {
        if !reason.counted() {
            return Verdict::Tolerated;
        }
        self.failures += 1;
        match self.failures > self.tolerable {
            true => Verdict::Exceeded { failures: self.failures },
            false => Verdict::Tolerated,
        }
    }

    /// A checkpoint is complete.
    pub fn completed(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VertexId;
    use crate::jobmanager::plan::VertexPlan;

    #[test]
    fn a_reason_names_its_subtasks() {
        let vertex = VertexPlan {
            id: VertexId(0),
            name: "user_total".into(),
            parallelism: 8,
            max_parallelism: 128,
            is_source: false,
            upstream: Vec::new(),
            operators: Vec::new(),
        };
        let plan = JobPlan { job: "orders".into(), vertices: vec![vertex] };
        let subtask = |index| SubtaskId { vertex: VertexId(0), index };
        let expired = FailureReason::Expired { missing: (0..5).map(subtask).collect() };
        let words = "expired: no acknowledgement from user_total[0], user_total[1], user_total[2] and 2 more";
        assert_eq!(expired.in_words(&plan), words);
        let declined = FailureReason::Declined { subtask: subtask(3), reason: "no space".into() };
        assert_eq!(declined.in_words(&plan), "declined by user_total[3]: no space");
    }

    #[test]
    fn only_counted_failures_in_a_row_exceed_the_bound() {
        let mut manager = FailureManager::new(1);
        let expired = FailureReason::Expired { missing: Vec::new() };
        assert_eq!(manager.failed(&expired), Verdict::Tolerated);
        assert_eq!(manager.failed(&FailureReason::Subsumed { by: CheckpointId(2) }), Verdict::Tolerated);
        manager.completed();
        assert_eq!(manager.failed(&expired), Verdict::Tolerated);
        assert_eq!(manager.failed(&expired), Verdict::Exceeded { failures: 2 });
    }
}
