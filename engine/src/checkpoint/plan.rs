//! Whom a checkpoint asks.
//!
//! Owns: which subtasks are triggered, which must acknowledge, and which must report their commits. It is the same from the first
//! checkpoint to the last: a subtask that has ended stays and forwards barriers (law 7).
//! Does not own: the asking. Runs on: plain data.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::ids::{OperatorUid, SubtaskId};
use crate::jobmanager::plan::JobPlan;

/// Whom every checkpoint of an attempt asks.
#[derive(Clone, Debug)]
pub struct CheckpointPlan {
    job: Arc<JobPlan>,
    triggered: Vec<SubtaskId>,
    acknowledging: BTreeSet<SubtaskId>,
    committing: Vec<(OperatorUid, SubtaskId)>,
}

impl CheckpointPlan {
    /// The plan for this job.
    pub fn new(job: Arc<JobPlan>) -> Self {
        let triggered = job.vertices.iter().filter(|v| v.is_source).flat_map(|v| v.subtasks()).collect();
        let acknowledging = job.subtasks().collect();
        let committing = job
            .vertices
            .iter()
            .flat_map(|v| v.two_phase_sinks().flat_map(|uid| v.subtasks().map(|s| (uid.clone(), s))))
            .collect();
        Self { job, triggered, acknowledging, committing }
    }

    /// The job.
    pub fn job(&self) -> &JobPlan {
        &self.job
    }

    /// Source subtasks.
    pub fn triggered(&self) -> &[SubtaskId] {
        &self.triggered
    }

    /// Every subtask.
    pub fn acknowledging(&self) -> &BTreeSet<SubtaskId> {
        &self.acknowledging
    }

    /// Every subtask of every two-phase sink.
    pub fn committing(&self) -> &[(OperatorUid, SubtaskId)] {
        &self.committing
    }
}
