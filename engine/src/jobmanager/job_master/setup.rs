//! With what a job master begins.
//!
//! Owns: putting its parts together. Does not own: claim and restore, which come before. Runs on: the job manager.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::commits::CommitTracker;
use super::log_writer::LogWriter;
use super::postbox::Postbox;
use super::repeats::Repeats;
use super::sources::Sources;
use super::written::Written;
use super::{JobMaster, Phase};
use crate::api::source::AnyEnumerator;
use crate::checkpoint::cleaner::CleanPlan;
use crate::checkpoint::commit_log::{Claimed, Nonce};
use crate::checkpoint::coordinator::{CheckpointCoordinator, CoordinatorSetup};
use crate::checkpoint::pending::ManifestAuthor;
use crate::checkpoint::plan::CheckpointPlan;
use crate::checkpoint::stats::CheckpointHistory;
use crate::checkpoint::{CheckpointConfig, CheckpointMode, CompletedCheckpoint};
use crate::clock::Moment;
use crate::ids::{AttemptId, CheckpointId, EntryNumber, Lineage, LogId, OperatorUid, VertexId};
use crate::jobmanager::plan::JobPlan;

/// With what a job master begins.
pub struct MasterSetup {
    /// The job.
    pub plan: Arc<JobPlan>,
    /// Settings of its checkpoints.
    pub config: CheckpointConfig,
    /// The attempt.
    pub attempt: AttemptId,
    /// Its lineage.
    pub lineage: Lineage,
    /// Its log.
    pub log_id: LogId,
    /// The claim's nonce.
    pub nonce: Nonce,
    /// What was restored.
    pub restored: Option<CompletedCheckpoint>,
    /// For each sink: everything up to this checkpoint is known to be committed.
    pub committed: Vec<(OperatorUid, CheckpointId)>,
    /// The id of the first checkpoint.
    pub next_checkpoint: CheckpointId,
    /// The attempt's last entry: its claim.
    pub last_entry: EntryNumber,
    /// Older checkpoints retained with the restored one, lowest first.
    pub retained: Vec<CompletedCheckpoint>,
    /// Other checkpoint entries in the log.
    pub left_over: Vec<CompletedCheckpoint>,
    /// The enumerator of each source vertex, fresh: restored state is given to it at the start.
    pub enumerators: Vec<(VertexId, Box<dyn AnyEnumerator>)>,
    /// Sinks whose prepared transactions hold row locks: with any of them max concurrent is 1 and tolerable failures 0.
    pub lock_holding_sinks: Vec<OperatorUid>,
}

impl MasterSetup {
    /// After a claim.
    pub fn claimed(
        plan: Arc<JobPlan>,
        config: CheckpointConfig,
        claimed: &Claimed,
        enumerators: Vec<(VertexId, Box<dyn AnyEnumerator>)>,
        lock_holding_sinks: Vec<OperatorUid>,
    ) -> Self {
        Self {
            plan,
            config,
            attempt: claimed.attempt,
            lineage: claimed.lineage,
            log_id: claimed.log_id.clone(),
            nonce: claimed.nonce,
            restored: claimed.restored.clone(),
            committed: claimed.committed.clone(),
            next_checkpoint: claimed.next_checkpoint,
            last_entry: claimed.number,
            retained: claimed.retained.clone(),
            left_over: claimed.left_over.clone(),
            enumerators,
            lock_holding_sinks,
        }
    }

    /// For a job without checkpoints: there is no log, and nothing is restored.
    pub fn without_log(
        plan: Arc<JobPlan>,
        attempt: AttemptId,
        enumerators: Vec<(VertexId, Box<dyn AnyEnumerator>)>,
    ) -> Self {
        Self {
            plan,
            config: CheckpointConfig { mode: CheckpointMode::None, ..Default::default() },
            attempt,
            lineage: Lineage(attempt.0),
            log_id: LogId::default(),
            nonce: Nonce::default(),
            restored: None,
            committed: Vec::new(),
            next_checkpoint: CheckpointId(1),
            last_entry: EntryNumber(0),
            retained: Vec::new(),
            left_over: Vec::new(),
            enumerators,
            lock_holding_sinks: Vec::new(),
        }
    }

    pub(super) fn build(self) -> JobMaster {
        let config = match self.lock_holding_sinks.is_empty() {
            true => self.config,
            false => self.config.with_locks_held(),
        };
        let checkpoint_plan = CheckpointPlan::new(self.plan.clone());
        let author = ManifestAuthor {
            job: self.plan.job.clone(),
            log_id: self.log_id,
            lineage: self.lineage,
            attempt: self.attempt,
        };
        let restored = self.restored.as_ref().map(|c| c.manifest.clone());
        JobMaster {
            all: self.plan.subtasks().collect(),
            sources: Sources::new(&self.plan, self.enumerators, restored),
            postbox: Postbox::new(checkpoint_plan.triggered()),
            commits: CommitTracker::new(checkpoint_plan.committing(), &self.committed),
            coordinator: CheckpointCoordinator::new(CoordinatorSetup {
                config: config.clone(),
                plan: checkpoint_plan,
                author,
                next_id: self.next_checkpoint,
                retained: self.retained.into_iter().chain(self.restored).collect(),
                left_over: self.left_over,
            }),
            log: LogWriter::new(self.attempt, self.nonce, self.last_entry),
            plan: self.plan,
            config,
            attempt: self.attempt,
            phase: Phase::Created,
            cancel_wanted: false,
            recovered: BTreeSet::new(),
            ended: BTreeSet::new(),
            gone: BTreeSet::new(),
            repeats: Repeats::default(),
            history: CheckpointHistory::default(),
            progress: BTreeMap::new(),
            lags: BTreeMap::new(),
            written: Written::default(),
            transactions: (0, 0),
            cleaning: false,
            clean_next: CleanPlan::default(),
            held_end: None,
            now: Moment::ZERO,
            wall_ms: 0,
            actions: Vec::new(),
        }
    }
}
