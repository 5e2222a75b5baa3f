//! Triggers, acknowledges, declines, completes, aborts, subsumes and expires checkpoints.
//!
//! A checkpoint goes `pending → acknowledged → writing → completed`, or is given up while it is pending. While its entry is being
//! written it is neither completed nor aborted nor cleaned (law 4): it has left `pending`, and only [`CheckpointCoordinator::written`]
//! takes it out of `writing`.
//!
//! Owns: what is in flight, the next id, what is retained. Does not own: the entry's number and its put, the messages (see
//! [`crate::jobmanager::job_master`]). Runs on: the job manager. Pure: no clock, no I/O.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::cleaner::{CleanPlan, plan_cleaning};
use super::commit_log::EntryBody;
use super::completed::CompletedCheckpoint;
use super::config::{CheckpointConfig, CheckpointMode};
use super::failure_manager::{FailureManager, FailureReason, Verdict};
use super::pending::{
    AckOutcome, AcknowledgedCheckpoint, ManifestAuthor, PendingCheckpoint, Purpose, Triggered,
};
use super::plan::CheckpointPlan;
use super::stats::CheckpointStats;
use super::trigger_decider::{TriggerDecision, TriggerFacts, decide_trigger};
use crate::clock::Moment;
use crate::element::{AlignmentMode, CheckpointBarrier, CheckpointKind};
use crate::ids::{CheckpointId, EntryNumber, OperatorUid, SubtaskId};
use crate::taskworker::mail::SubtaskAck;

/// With what an attempt's coordinator begins.
#[derive(Clone, Debug)]
pub struct CoordinatorSetup {
    /// Settings.
    pub config: CheckpointConfig,
    /// Whom to ask.
    pub plan: CheckpointPlan,
    /// Who writes the manifests.
    pub author: ManifestAuthor,
    /// The id of the first checkpoint.
    pub next_id: CheckpointId,
    /// The restored checkpoint and those retained with it, lowest first.
    pub retained: Vec<CompletedCheckpoint>,
    /// Other checkpoint entries that were found in the log.
    pub left_over: Vec<CompletedCheckpoint>,
}

/// The state of all checkpoints of one attempt.
#[derive(Debug)]
pub struct CheckpointCoordinator {
    config: CheckpointConfig,
    plan: CheckpointPlan,
    author: ManifestAuthor,
    next_id: CheckpointId,
    pending: BTreeMap<CheckpointId, PendingCheckpoint>,
    writing: Option<Writing>,
    failures: FailureManager,
    retained: Vec<CompletedCheckpoint>,
    uncleaned: Vec<CompletedCheckpoint>,
    barriers_out: u32,
    recovered_at: Option<Moment>,
    triggered_at: Option<Moment>,
    ended_at: Option<Moment>,
    requested: bool,
}

#[derive(Debug)]
struct Writing {
    checkpoint: AcknowledgedCheckpoint,
    completed: CompletedCheckpoint,
    retained: Vec<CompletedCheckpoint>,
}

/// A checkpoint that was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedCheckpoint {
    /// Its id.
    pub id: CheckpointId,
    /// Why.
    pub reason: FailureReason,
    /// What it was.
    pub stats: CheckpointStats,
    /// Whether the attempt may go on.
    pub verdict: Verdict,
}

/// A checkpoint that has become complete.
#[derive(Clone, Debug)]
pub struct Completion {
    /// It.
    pub completed: CompletedCheckpoint,
    /// Why it was taken.
    pub purpose: Purpose,
    /// What it cost.
    pub stats: CheckpointStats,
    /// Older ones in flight that it made needless.
    pub subsumed: Vec<FailedCheckpoint>,
    /// What may be deleted now.
    pub clean: CleanPlan,
}

impl CheckpointCoordinator {
    /// A coordinator for one attempt.
    pub fn new(setup: CoordinatorSetup) -> Self {
        let CoordinatorSetup { config, plan, author, next_id, retained, left_over } = setup;
        let uncleaned = retained.iter().cloned().chain(left_over).collect();
        Self {
            failures: FailureManager::new(config.tolerable_failures),
            config,
            plan,
            author,
            next_id,
            pending: BTreeMap::new(),
            writing: None,
            retained,
            uncleaned,
            barriers_out: 0,
            recovered_at: None,
            triggered_at: None,
            ended_at: None,
            requested: false,
        }
    }

    /// Whom it asks.
    pub fn plan(&self) -> &CheckpointPlan {
        &self.plan
    }

    /// The newest completed checkpoint; 0 if there is none.
    pub fn newest_completed(&self) -> CheckpointId {
        self.retained.last().map_or(CheckpointId(0), CompletedCheckpoint::id)
    }

    /// The id of the checkpoint that is triggered next.
    pub fn next_id(&self) -> CheckpointId {
        self.next_id
    }

    /// Checkpoints in flight, the one that is being written included.
    pub fn in_flight(&self) -> u32 {
        u32::try_from(self.pending.len()).unwrap_or(u32::MAX).saturating_add(self.writing.is_some().into())
    }

    /// Every subtask has recovered.
    pub fn recovered(&mut self, now: Moment) {
        self.recovered_at.get_or_insert(now);
    }

    /// Somebody asks for a checkpoint now.
    pub fn request(&mut self) {
        self.requested = true;
    }

    /// May one be triggered now?
    pub fn decide(&self, now: Moment, all_ended: bool) -> TriggerDecision {
        let facts = TriggerFacts {
            now,
            recovered: self.recovered_at.is_some(),
            since: self.recovered_at.unwrap_or_default(),
            triggered_at: self.triggered_at,
            ended_at: self.ended_at,
            in_flight: self.in_flight(),
            barriers_out: self.barriers_out,
            transactional: !self.plan.committing().is_empty(),
            requested: self.requested,
            all_ended,
        };
        decide_trigger(&self.config, &facts)
    }

    /// Triggers one. `enumerators` are snapshots taken just now: nothing may be assigned between them and the trigger's mail.
    pub fn trigger(
        &mut self,
        now: Moment,
        purpose: Purpose,
        enumerators: Vec<(OperatorUid, Vec<u8>)>,
    ) -> CheckpointBarrier {
        let alignment = match self.config.mode {
            CheckpointMode::AtLeastOnce => AlignmentMode::AtLeastOnce,
            CheckpointMode::ExactlyOnce | CheckpointMode::None => AlignmentMode::Aligned,
        };
        let barrier = CheckpointBarrier {
            id: self.next_id,
            kind: CheckpointKind::Checkpoint,
            alignment,
            newest_completed: self.newest_completed(),
            triggered_at_us: u64::try_from(now.as_micros()).unwrap_or(u64::MAX),
        };
        self.next_id = self.next_id.next();
        self.barriers_out += 1;
        self.triggered_at = Some(now);
        self.requested = false;
        let what = Triggered { barrier, purpose, at: now, enumerators };
        self.pending.insert(barrier.id, PendingCheckpoint::new(what, &self.plan));
        barrier
    }

    /// A subtask's part is durable.
    pub fn acknowledge(&mut self, now: Moment, subtask: SubtaskId, ack: SubtaskAck) -> AckOutcome {
        match self.pending.get_mut(&ack.id) {
            Some(pending) => pending.acknowledge(now, subtask, ack),
            None => AckOutcome::Ignored,
        }
    }

    /// A subtask cannot take part.
    pub fn decline(
        &mut self,
        now: Moment,
        id: CheckpointId,
        subtask: SubtaskId,
        reason: String,
    ) -> Option<FailedCheckpoint> {
        self.abort(now, id, FailureReason::Declined { subtask, reason })
    }

    /// When the next one in flight expires.
    pub fn next_expiry(&self) -> Option<Moment> {
        self.pending
            .values()
            .filter(|p| !p.is_acknowledged())
            .map(|p| p.what().at + self.config.timeout())
            .min()
    }

    /// Gives up one that has taken too long.
    pub fn expire(&mut self, now: Moment) -> Option<FailedCheckpoint> {
        let timeout = self.config.timeout();
        let late = |p: &&PendingCheckpoint| !p.is_acknowledged() && now >= p.what().at + timeout;
        let pending = self.pending.values().find(late)?;
        let missing = pending.missing().iter().copied().collect();
        self.abort(now, pending.what().barrier.id, FailureReason::Expired { missing })
    }

    /// Gives up everything in flight but the one that is being written.
    pub fn abort_all(&mut self, now: Moment) -> Vec<FailedCheckpoint> {
        let ids: Vec<_> = self.pending.keys().copied().collect();
        ids.into_iter().filter_map(|id| self.abort(now, id, FailureReason::Canceling)).collect()
    }

    fn abort(&mut self, now: Moment, id: CheckpointId, reason: FailureReason) -> Option<FailedCheckpoint> {
        let pending = self.pending.remove(&id)?;
        self.ended_at = Some(now);
        let verdict = self.failures.failed(&reason);
        Some(FailedCheckpoint { id, stats: pending.failed(now, reason.clone()), reason, verdict })
    }

    /// The oldest one that all have acknowledged, if no other one is being written.
    pub fn ready_to_write(&self) -> Option<CheckpointId> {
        match self.writing {
            Some(_) => None,
            None => self.pending.values().find(|p| p.is_acknowledged()).map(|p| p.what().barrier.id),
        }
    }

    /// Takes one that all have acknowledged to be written at `number`, and says what the entry shall hold.
    pub fn begin_write(
        &mut self,
        number: EntryNumber,
        wall_ms: i64,
        committed: Vec<(OperatorUid, CheckpointId)>,
    ) -> Option<EntryBody> {
        let pending = self.pending.remove(&self.ready_to_write()?)?;
        let checkpoint = pending.try_complete().ok()?;
        let manifest = checkpoint.manifest(&self.author, &self.plan, wall_ms);
        let older = usize::try_from(self.config.retained.saturating_sub(1)).unwrap_or(usize::MAX);
        let retained = self.retained[self.retained.len().saturating_sub(older)..].to_vec();
        let body = EntryBody::Checkpoint {
            manifest: manifest.clone(),
            retained: retained.iter().map(|c| c.number).collect(),
            committed,
        };
        let completed = CompletedCheckpoint { number, manifest: Arc::new(manifest) };
        self.writing = Some(Writing { checkpoint, completed, retained });
        Some(body)
    }

    /// The softened cleaner of [`crate::mutation::Mutation::CleanerBeforeEntry`]: what the entry being written will not name.
    #[cfg(feature = "mutations")]
    pub fn plan_early(&self) -> CleanPlan {
        let Some(writing) = &self.writing else { return CleanPlan::default() };
        plan_cleaning(&writing.completed, &writing.retained, &self.uncleaned)
    }

    /// Gives up the checkpoint that is being written: never, but under
    /// [`crate::mutation::Mutation::UncertainPutIsFailure`].
    #[cfg(feature = "mutations")]
    pub fn give_up_writing(&mut self, now: Moment) -> Option<FailedCheckpoint> {
        let Writing { checkpoint, completed, .. } = self.writing.take()?;
        let reason = FailureReason::Expired { missing: Vec::new() };
        self.ended_at = Some(now);
        let verdict = self.failures.failed(&reason);
        let stats = checkpoint.completed(now, completed.number);
        Some(FailedCheckpoint { id: completed.id(), stats, reason, verdict })
    }

    /// The entry stands: the checkpoint is complete.
    pub fn written(&mut self, now: Moment) -> Option<Completion> {
        let Writing { checkpoint, completed, retained } = self.writing.take()?;
        let id = completed.id();
        self.failures.completed();
        let older: Vec<_> = self.pending.keys().copied().take_while(|p| *p < id).collect();
        let subsume = |older| self.abort(now, older, FailureReason::Subsumed { by: id });
        let subsumed = older.into_iter().filter_map(subsume).collect();
        self.ended_at = Some(now);
        // Ids of one attempt leave no gap, so this also counts later ones that were given up.
        self.barriers_out = u32::try_from(self.next_id.0 - id.0 - 1).unwrap_or(u32::MAX);
        self.uncleaned.push(completed.clone());
        let clean = plan_cleaning(&completed, &retained, &self.uncleaned);
        self.retained = retained;
        self.retained.push(completed.clone());
        let stats = checkpoint.completed(now, completed.number);
        Some(Completion { completed, purpose: checkpoint.what().purpose, stats, subsumed, clean })
    }

    /// These entries and their files are gone.
    pub fn cleaned(&mut self, entries: &[EntryNumber]) {
        self.uncleaned.retain(|c| !entries.contains(&c.number));
    }
}
