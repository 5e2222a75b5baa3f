//! How a job's execution begins an attempt: the start on the I/O side, then the building of master and subtasks.
//!
//! Owns: what an attempt is made from. Does not own: when one begins, what follows its end (see [`super::job_execution`]).
//! Runs on: the thread that steps the execution.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::attempt::{Attempt, AttemptSetup};
use super::config::RestoreFrom;
use super::job_execution::{ExecutionNotice, ExecutionStep, JobExecution, JobOutcome, State};
use super::output_look::{LookSetup, OutputLook};
use super::start::{StartSetup, Started, start};
use crate::api::{AnyEnumerator, ClaimWatch, ConnectorContext, JobNeeds, Preflight, PreflightContext};
use crate::checkpoint::CheckpointConfig;
use crate::checkpoint::commit_log::{LogClient, NonceSource};
use crate::clock::Moment;
use crate::error::EngineError;
use crate::graph::NodeId;
use crate::graph::node::JobIdentity;
use crate::ids::{AttemptId, CheckpointId, Lineage, LogId, OperatorUid, VertexId};
use crate::io::SpawnedIo;
use crate::jobmanager::{Control, MasterSetup};
use crate::taskworker::restore::{Restored, StateCheck};

impl JobExecution {
    pub(super) fn begin(&mut self) {
        self.attempts += 1;
        let since = self.setup.clock.now();
        let (tx, result) = oneshot::channel();
        let waker = Arc::clone(&self.setup.waker);
        let Some(storage) = self.setup.storage.clone().filter(|_| self.setup.config.has_checkpoints()) else {
            self.begin_without_log(since);
            return;
        };
        let start_setup = StartSetup {
            plan: Arc::clone(&self.plan),
            storage,
            io: Arc::clone(&self.setup.io),
            nonces: NonceSource::new(self.nonces.draw().0),
            restore: if self.claimed_once { RestoreFrom::Latest } else { self.setup.config.restore },
            allow_non_restored_state: self.setup.config.allow_non_restored_state,
            checks: self.state_checks(),
            preflight: self.attempts == 1,
            previous: self.previous,
            log_id: self.log.as_ref().map(|(log, _)| log.log_id().clone()),
            own: self.own_claims.clone(),
            is_decided: self.setup.config.restore != RestoreFrom::Latest,
        };
        let preflights = if self.attempts == 1 { self.preflights() } else { Vec::new() };
        let looks = (self.look_setup(), self.output_looks());
        let task = self.setup.io.spawn(
            "start",
            Box::pin(async move {
                let _ = tx.send(start(start_setup, preflights, looks).await);
                waker.wake();
            }),
        );
        self.state = State::Starting { result, task, since };
    }

    fn begin_without_log(&mut self, since: Moment) {
        let attempt = AttemptId(u64::from(self.attempts));
        let master = MasterSetup::without_log(Arc::clone(&self.plan), attempt, self.enumerators());
        let identity = JobIdentity {
            job: self.plan.job.clone(),
            log_id: LogId::default(),
            lineage: Lineage(attempt.0),
            attempt,
        };
        let step = self.build(master, identity, None, Arc::default(), since);
        if let ExecutionStep::Over(result) = step {
            // Kept for the next step: there is no log, so nothing was begun.
            self.fail_next(result);
        }
    }

    fn fail_next(&mut self, result: Result<JobOutcome, EngineError>) {
        let (tx, rx) = oneshot::channel();
        if let Err(error) = result {
            let _ = tx.send(Err(error));
        }
        let now = self.setup.clock.now();
        self.state = State::Starting { result: rx, task: Box::new(NoTask), since: now };
    }

    pub(super) fn started(&mut self, started: Started, since: Moment) -> ExecutionStep {
        self.claimed_once = true;
        self.previous = Some(started.claimed.attempt);
        let Started { claimed, restored, log, notes } = started;
        for note in notes {
            tracing::info!(?note, "restore");
        }
        let identity = JobIdentity {
            job: self.plan.job.clone(),
            log_id: claimed.log_id.clone(),
            lineage: claimed.lineage,
            attempt: claimed.attempt,
        };
        let master = MasterSetup::claimed(
            Arc::clone(&self.plan),
            self.setup.config.checkpoints.clone(),
            &claimed,
            self.enumerators(),
            self.lock_holding_sinks(),
        );
        self.log = Some((log.clone(), claimed.attempt));
        let (sweeper, own, listing) = (log.clone(), claimed.attempt, claimed.listing.clone());
        self.setup.io.spawn(
            "orphan sweep",
            Box::pin(async move {
                if let Err(error) = sweeper.sweep(own, &listing).await {
                    tracing::warn!(%error, "files of lower attempts that no entry names were left in place");
                }
            }),
        );
        self.build(master, identity, Some(log), Arc::new(restored), since)
    }

    fn build(
        &mut self,
        master: MasterSetup,
        identity: JobIdentity,
        log: Option<LogClient>,
        restored: Arc<Restored>,
        since: Moment,
    ) -> ExecutionStep {
        let (attempt, restored_id) = (identity.attempt, restored.checkpoint);
        let places = self.places();
        let built = Attempt::build(AttemptSetup {
            graph: &self.setup.graph,
            master,
            identity,
            storage: log.as_ref().and(self.setup.storage.clone()),
            log,
            restored,
            slots: self.setup.slots,
            delivery: Arc::clone(&self.delivery),
            io: Arc::clone(&self.setup.io),
            presence: Arc::clone(&self.presence),
            clock: Arc::clone(&self.setup.clock),
            waker: Arc::clone(&self.setup.waker),
            config: &self.setup.config,
            places,
        });
        match built {
            Ok(mut built) => {
                if self.is_canceling() {
                    built.control(Control::Cancel);
                }
                self.state = State::Running(Box::new(built));
                let after = self.setup.clock.now().saturating_sub(since);
                let restored = Some(restored_id).filter(|id| *id > CheckpointId(0));
                self.notices.push_back(ExecutionNotice::Started { attempt, restored, after });
                ExecutionStep::Progress
            }
            Err(error) => self.start_failed(error),
        }
    }

    fn enumerators(&self) -> Vec<(VertexId, Box<dyn AnyEnumerator>)> {
        let graph = &self.setup.graph;
        let made = graph.vertices.iter().filter_map(|v| {
            let enumerator = graph.nodes[v.nodes[0].0].node.enumerator(v.parallelism)?;
            Some((v.id, enumerator))
        });
        made.collect()
    }

    fn preflights(&self) -> Vec<Preflight> {
        let graph = &self.setup.graph;
        let context = PreflightContext {
            job: self.plan.job.clone(),
            clock: Arc::clone(&self.setup.clock),
            io: Arc::clone(&self.setup.io),
            parallelism: graph.parallelism,
            places: self.places(),
            checkpoints: self.checkpoints(),
            needs: JobNeeds::default(),
        };
        let looks = (0..graph.nodes.len()).map(NodeId).filter_map(|id| {
            let (node, parallelism) = (&graph.nodes[id.0], graph.parallelism_of(id));
            let look = node.node.preflight(PreflightContext { parallelism, ..context.clone() })?;
            Some(Preflight { operator: node.info.name.clone(), look })
        });
        looks.collect()
    }

    /// At the first start of this process, unless its operator has decided what to go on from.
    fn output_looks(&self) -> Vec<OutputLook> {
        if self.attempts > 1 || self.setup.config.restore != RestoreFrom::Latest {
            return Vec::new();
        }
        let graph = &self.setup.graph;
        let looks = (0..graph.nodes.len()).map(NodeId).filter_map(|id| {
            let node = &graph.nodes[id.0];
            let (ask, uid) = (node.node.ask_committed()?, node.info.uid.clone()?);
            let parallelism = graph.parallelism_of(id);
            Some(OutputLook { operator: node.info.name.clone(), uid, parallelism, ask })
        });
        looks.collect()
    }

    fn look_setup(&self) -> LookSetup {
        let connector = ConnectorContext {
            clock: Arc::clone(&self.setup.clock),
            io: Arc::clone(&self.setup.io),
            waker: Arc::clone(&self.setup.waker),
            checkpoint_timeout: self.setup.config.checkpoints.timeout(),
            claim: ClaimWatch::unclaimed(),
        };
        LookSetup { job: self.plan.job.clone(), connector, places: self.places() }
    }

    fn state_checks(&self) -> Vec<(OperatorUid, StateCheck)> {
        let nodes = self.setup.graph.nodes.iter();
        nodes.filter_map(|n| Some((n.info.uid.clone()?, n.node.state_check()?))).collect()
    }

    fn lock_holding_sinks(&self) -> Vec<OperatorUid> {
        let infos = self.setup.graph.nodes.iter().map(|n| &n.info);
        infos.filter(|i| i.holds_locks).filter_map(|i| i.uid.clone()).collect()
    }

    /// Transactions a sink may hold: max concurrent + tolerable failures + 2.
    fn places(&self) -> usize {
        self.checkpoints().barrier_places() as usize + 2
    }

    /// As the coordinator uses them.
    fn checkpoints(&self) -> CheckpointConfig {
        let config = self.setup.config.checkpoints.clone();
        if self.lock_holding_sinks().is_empty() { config } else { config.with_locks_held() }
    }
}

struct NoTask;

impl SpawnedIo for NoTask {
    fn abort(&self) {}

    fn is_finished(&self) -> bool {
        true
    }
}
