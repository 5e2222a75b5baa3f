//! A checkpoint in flight.
//!
//! Owns: which subtasks have acknowledged, and the enumerators' snapshots taken before its trigger (law 3). When the last one has
//! acknowledged it is consumed into an [`AcknowledgedCheckpoint`], which is still not complete: only its log entry makes it so.
//! Does not own: its timeout, its entry. Runs on: the job manager. Pure.

use std::collections::{BTreeMap, BTreeSet};

use crate::checkpoint::failure_manager::FailureReason;
use crate::checkpoint::manifest::{Manifest, OperatorState, OperatorSubtaskState};
use crate::checkpoint::plan::CheckpointPlan;
use crate::checkpoint::stats::{CheckpointOutcome, CheckpointStats, SubtaskCosts};
use crate::clock::Moment;
use crate::element::CheckpointBarrier;
use crate::ids::{AttemptId, JobName, Lineage, LogId, OperatorUid, SubtaskId};
use crate::jobmanager::plan::{OperatorKind, OperatorPlan, VertexPlan};
use crate::taskworker::mail::SubtaskAck;

/// Why a checkpoint is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Its time has come.
    Periodic,
    /// Somebody asked.
    Requested,
    /// Every subtask has ended: the last checkpoint, which commits the rest.
    Last,
}

/// What an acknowledgement does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckOutcome {
    /// It was missing.
    Recorded,
    /// It came before; nothing changes.
    Duplicate,
    /// Nobody waits for it: of an aborted, subsumed, completed or unknown checkpoint, or of a subtask that was not asked.
    Ignored,
}

/// A checkpoint that was triggered and is not yet acknowledged by all.
#[derive(Clone, Debug)]
pub struct PendingCheckpoint {
    what: Box<Triggered>,
    missing: BTreeSet<SubtaskId>,
    acks: BTreeMap<SubtaskId, Acknowledgement>,
}

/// What was triggered.
#[derive(Clone, Debug)]
pub struct Triggered {
    /// The barrier that was sent.
    pub barrier: CheckpointBarrier,
    /// Why.
    pub purpose: Purpose,
    /// When.
    pub at: Moment,
    /// The enumerators' snapshots, taken before the trigger was sent.
    pub enumerators: Vec<(OperatorUid, Vec<u8>)>,
}

#[derive(Clone, Debug)]
struct Acknowledgement {
    at: Moment,
    ack: SubtaskAck,
}

/// Who writes a manifest.
#[derive(Clone, Debug)]
pub struct ManifestAuthor {
    /// The job.
    pub job: JobName,
    /// Its log.
    pub log_id: LogId,
    /// The attempt's lineage.
    pub lineage: Lineage,
    /// The attempt.
    pub attempt: AttemptId,
}

/// A checkpoint that every subtask has acknowledged. Not complete.
#[derive(Clone, Debug)]
pub struct AcknowledgedCheckpoint(PendingCheckpoint);

impl PendingCheckpoint {
    /// A checkpoint that waits for every subtask of the plan.
    pub fn new(what: Triggered, plan: &CheckpointPlan) -> Self {
        Self { what: Box::new(what), missing: plan.acknowledging().clone(), acks: BTreeMap::new() }
    }

    /// What was triggered.
    pub fn what(&self) -> &Triggered {
        &self.what
    }

    /// Those that have not acknowledged.
    pub fn missing(&self) -> &BTreeSet<SubtaskId> {
        &self.missing
    }

    /// Whether all have acknowledged.
    pub fn is_acknowledged(&self) -> bool {
        self.missing.is_empty()
    }

    /// Takes one subtask's part.
    pub fn acknowledge(&mut self, now: Moment, subtask: SubtaskId, ack: SubtaskAck) -> AckOutcome {
        debug_assert_eq!(ack.id, self.what.barrier.id, "an acknowledgement is routed by its id");
        if self.acks.contains_key(&subtask) {
            return AckOutcome::Duplicate;
        }
        if !self.missing.remove(&subtask) {
            return AckOutcome::Ignored;
        }
        self.acks.insert(subtask, Acknowledgement { at: now, ack });
        AckOutcome::Recorded
    }

    /// Consumes it when the last one has acknowledged.
    ///
    /// # Errors
    /// Itself, if some are missing.
    pub fn try_complete(self) -> Result<AcknowledgedCheckpoint, Self> {
        match self.is_acknowledged() {
            true => Ok(AcknowledgedCheckpoint(self)),
            false => Err(self),
        }
    }

    /// What it was, given up at `now`.
    pub fn failed(&self, now: Moment, reason: FailureReason) -> CheckpointStats {
        self.stats(now, CheckpointOutcome::Failed(reason))
    }

    fn stats(&self, now: Moment, outcome: CheckpointOutcome) -> CheckpointStats {
        let costs = |(subtask, a): (&SubtaskId, &Acknowledgement)| SubtaskCosts {
            subtask: *subtask,
            after: a.at.saturating_sub(self.what.at),
            costs: a.ack.stats,
        };
        CheckpointStats {
            id: self.what.barrier.id,
            kind: self.what.barrier.kind,
            end_to_end: now.saturating_sub(self.what.at),
            size_bytes: self.acks.values().map(|a| a.ack.stats.size_bytes).sum(),
            acknowledged: self.acks.len(),
            asked: self.acks.len() + self.missing.len(),
            slowest: self.acks.iter().max_by_key(|(_, a)| a.at).map(costs),
            subtasks: self.acks.iter().map(costs).collect(),
            missing: self.missing.iter().copied().collect(),
            outcome,
        }
    }
}

impl AcknowledgedCheckpoint {
    /// What was triggered.
    pub fn what(&self) -> &Triggered {
        &self.0.what
    }

    /// What it will be once its entry stands.
    pub fn completed(&self, now: Moment, entry: crate::ids::EntryNumber) -> CheckpointStats {
        self.0.stats(now, CheckpointOutcome::Complete { entry })
    }

    /// What it consists of.
    pub fn manifest(&self, author: &ManifestAuthor, plan: &CheckpointPlan, wall_ms: i64) -> Manifest {
        let operators = plan.job().operators().filter_map(|(v, o)| self.operator(v, o)).collect();
        Manifest {
            job: author.job.clone(),
            log_id: author.log_id.clone(),
            lineage: author.lineage,
            checkpoint: self.0.what.barrier.id,
            attempt: author.attempt,
            kind: self.0.what.barrier.kind,
            completed_at_ms: wall_ms,
            operators,
        }
    }

    fn operator(&self, vertex: &VertexPlan, operator: &OperatorPlan) -> Option<OperatorState> {
        let uid = operator.uid.as_ref()?;
        let acks = || vertex.subtasks().filter_map(|s| self.0.acks.get(&s)).map(|a| &a.ack);
        let of = |ack: &SubtaskAck| ack.operators.iter().find(|o| o.uid == *uid).cloned();
        let nothing = || OperatorSubtaskState { uid: uid.clone(), ..Default::default() };
        let enumerator =
            self.0.what.enumerators.iter().find(|(of, _)| of == uid).map(|(_, state)| state.clone());
        Some(OperatorState {
            uid: uid.clone(),
            max_parallelism: vertex.max_parallelism,
            two_phase: operator.kind == OperatorKind::TwoPhaseSink,
            has_on_end: operator.has_on_end,
            subtasks: acks().map(|ack| of(ack).unwrap_or_else(nothing)).collect(),
            ended: acks().map(|ack| ack.ended || of(ack).is_some_and(|o| o.ended)).collect(),
            upstream: vertex.upstream.clone(),
            enumerator,
        })
    }
}
