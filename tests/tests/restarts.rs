//! Restarts inside one process: who may take the job back, what a cancel settles, and which failures are told at all.
//!
//! Owns: the scenarios. Does not own: kills (the tests of the orders job). Runs on: the test's thread and the job's.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::sync::{Arc, Mutex, PoisonError};

use tidegate::engine::api::{Committer, TwoPhaseWriter};
use tidegate::engine::api::{ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink};
use tidegate::engine::element::Batch;
use tidegate::engine::error::EngineError;
use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::engine::operator::{CommitOutcome, TransactionName};
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Until, checkpoints_every, run};

/// A server that refuses its first commits.
#[derive(Clone, Default)]
struct Shaky {
    server: Arc<Mutex<Server>>,
}

#[derive(Default)]
struct Server {
    refusals_left: u32,
    prepared: Vec<TransactionName>,
    committed: Vec<TransactionName>,
}

impl Shaky {
    fn refusing(commits: u32) -> Self {
        let shaky = Self::default();
        shaky.with(|server| server.refusals_left = commits);
        shaky
    }

    fn with<T>(&self, run: impl FnOnce(&mut Server) -> T) -> T {
        run(&mut self.server.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

struct ShakyEnd {
    shaky: Shaky,
    open: Option<TransactionName>,
}

impl TwoPhaseSink for Shaky {
    type Record = u64;
    type Committable = u64;
    type Writer = ShakyEnd;
    type Committer = ShakyEnd;

    fn open_committer(
        &self,
        _context: TwoPhaseContext,
    ) -> impl Future<Output = Result<ShakyEnd, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(ShakyEnd { shaky: self.clone(), open: None }))
    }

    fn open_writer(
        &self,
        _context: TwoPhaseContext,
    ) -> impl Future<Output = Result<ShakyEnd, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(ShakyEnd { shaky: self.clone(), open: None }))
    }
}

impl TwoPhaseWriter for ShakyEnd {
    type Record = u64;
    type Committable = u64;

    async fn write(&mut self, name: &TransactionName, _batch: Batch<u64>) -> Result<(), ConnectorError> {
        self.open.get_or_insert_with(|| name.clone());
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<u64>, ConnectorError> {
        let Some(name) = self.open.take() else { return Ok(None) };
        self.shaky.with(|server| server.prepared.push(name));
        Ok(Some(0))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.open = None;
        Ok(())
    }
}

impl Committer for ShakyEnd {
    type Committable = u64;

    async fn commit(&mut self, item: &Prepared<u64>) -> Result<CommitOutcome, ConnectorError> {
        self.shaky.with(|server| {
            if server.refusals_left > 0 {
                server.refusals_left -= 1;
                return Err(ConnectorError::transient("the server refuses"));
            }
            if server.committed.contains(&item.name) {
                return Ok(CommitOutcome::AlreadyCommitted);
            }
            server.prepared.retain(|name| *name != item.name);
            server.committed.push(item.name.clone());
            Ok(CommitOutcome::Committed)
        })
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        Ok(self.shaky.with(|server| server.prepared.clone()))
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        self.shaky.with(|server| server.prepared.retain(|prepared| prepared != name));
        Ok(())
    }
}

/// Numbers without end into a shaky server.
fn endless(sink: &Shaky) -> StreamEnvironment {
    let env = StreamEnvironment::new();
    let _ = env.source("numbers", Datagen::new(|n| n).rate_per_second(20_000)).sink("shaky", sink.clone());
    env
}

fn runner(env: StreamEnvironment, config: ExecutionConfig, storage: &CheckpointStorage) -> LocalRunner {
    let graph = env.into_graph("scenario", 1, 128).unwrap();
    LocalRunner::new(graph, config, Some(storage.clone())).unwrap()
}

#[test]
fn a_cancel_before_the_first_attempt_settles_nothing_and_says_so() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    let shaky = Shaky::refusing(1);
    // Dies with a transaction that its checkpoint lists and nobody has committed.
    let dies = ExecutionConfig { restart: RestartStrategy::None, ..checkpoints_every(20) };
    runner(endless(&shaky), dies, &storage).run(|_| ()).unwrap_err();
    let left = shaky.with(|server| (server.committed.len(), server.prepared.clone()));
    assert!(!left.1.is_empty(), "something is left prepared");
    let mut next = runner(endless(&shaky), checkpoints_every(20), &storage);
    next.cancel_handle().cancel();
    assert_eq!(next.run(|_| ()).unwrap(), JobOutcome::CanceledUnbegun);
    assert_eq!(shaky.with(|server| (server.committed.len(), server.prepared.clone())), left);
    // The next start does.
    let mut after = runner(endless(&shaky), checkpoints_every(20), &storage);
    let cancel = after.cancel_handle();
    let outcome = after.run(|notice| {
        if let ExecutionNotice::Started { .. } = notice {
            cancel.cancel();
        }
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Canceled);
    assert_eq!(shaky.with(|server| server.prepared.clone()), []);
}

#[test]
fn a_cancel_between_two_attempts_commits_what_the_newest_checkpoint_lists() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    let shaky = Shaky::refusing(1);
    let mut runner = runner(endless(&shaky), checkpoints_every(20), &storage);
    let cancel = runner.cancel_handle();
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Restarting { .. } = notice {
            cancel.cancel();
        }
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Canceled);
    let (committed, prepared) = shaky.with(|server| (server.committed.len(), server.prepared.clone()));
    assert_eq!(
        committed, 1,
        "the transaction of the completed checkpoint is committed before the job says canceled"
    );
    assert_eq!(prepared, []);
}

#[test]
fn a_cancel_between_two_attempts_that_cannot_settle_is_a_failure() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    let mut runner = runner(endless(&Shaky::refusing(u32::MAX)), checkpoints_every(20), &storage);
    let cancel = runner.cancel_handle();
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Restarting { .. } = notice {
            cancel.cancel();
        }
    });
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("the server refuses"), "{error}");
}

#[test]
fn a_job_that_was_taken_over_while_it_waited_for_its_restart_is_fenced() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    let shaky = Shaky::refusing(1);
    let mut runner = runner(endless(&shaky), checkpoints_every(20), &storage);
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Restarting { .. } = notice {
            let taker = endless(&shaky);
            run(taker, 1, checkpoints_every(20), Some(storage.clone()), Until::Checkpoints(1)).unwrap();
        }
    });
    assert!(matches!(outcome, Err(EngineError::Fenced { .. })), "{outcome:?}");
}

/// A number that its column cannot be made of.
fn unlucky(env: &StreamEnvironment) -> DataStream<u64> {
    env.source("numbers", Datagen::new(|n| n).bounded(10))
}

fn column(n: &u64) -> u64 {
    assert!(*n != 7, "seven has no column");
    *n
}

#[test]
fn a_panic_on_the_way_into_a_transaction_fails_the_attempt() {
    let folder = tempfile::tempdir().unwrap();
    let storage = CheckpointStorage::open("memory://").unwrap();
    let env = StreamEnvironment::new();
    let table = SqliteSink::table(folder.path().join("out.sqlite"), "numbers").column("n", column).append();
    let _ = unlucky(&env).sink("table", table);
    let mut runner = runner(env, checkpoints_every(20), &storage);
    let (cancel, mut causes) = (runner.cancel_handle(), Vec::new());
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Restarting { cause, .. } = notice {
            causes.push(cause.clone());
            cancel.cancel();
        }
    });
    assert!(causes[0].contains("panicked: seven has no column"), "{causes:?} {outcome:?}");
}

#[test]
fn a_panic_on_the_way_into_a_plain_sink_fails_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let env = StreamEnvironment::new();
    let table = SqliteSink::table(folder.path().join("out.sqlite"), "numbers").column("n", column).append();
    let _ = unlucky(&env).sink("table", table.plain());
    let config = ExecutionConfig {
        checkpoints: tidegate::engine::checkpoint::CheckpointConfig {
            mode: tidegate::engine::checkpoint::CheckpointMode::None,
            ..Default::default()
        },
        restart: tidegate::engine::jobmanager::RestartStrategy::None,
        ..ExecutionConfig::default()
    };
    let error = run(env, 1, config, None, Until::End).unwrap_err().to_string();
    assert!(error.contains("panicked: seven has no column"), "{error}");
}

#[test]
fn a_database_that_is_deleted_while_the_job_runs_fails_the_job() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.sqlite");
    let storage = CheckpointStorage::open("memory://").unwrap();
    let env = StreamEnvironment::new();
    let table = SqliteSink::table(&file, "numbers").column("n", |n: &u64| *n).append();
    let _ = env.source("numbers", Datagen::new(|n| n).rate_per_second(20_000)).sink("table", table);
    let mut runner = runner(env, checkpoints_every(20), &storage);
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Master(tidegate::engine::jobmanager::MasterNotice::CheckpointCompleted(_)) =
            notice
        {
            let _ = std::fs::remove_file(&file);
        }
    });
    let error = outcome.unwrap_err().to_string();
    assert!(error.contains("was deleted or replaced"), "{error}");
}
