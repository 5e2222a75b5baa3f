//! What a job does while something that it needs does not answer, or refuses: a sink that hangs, a full disk under the checkpoints.
//!
//! Owns: the scenarios. Does not own: kills (the tests of the orders job). Runs on: the test's thread and the job's.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use object_store::path::Path;
use tidegate::engine::api::{Committer, TwoPhaseWriter};
use tidegate::engine::api::{ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink};
use tidegate::engine::checkpoint::CheckpointConfig;
use tidegate::engine::checkpoint::stats::CheckpointOutcome;
use tidegate::engine::element::Batch;
use tidegate::engine::error::EngineError;
use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::{MasterNotice, RestartStrategy};
use tidegate::engine::operator::{CommitOutcome, TransactionName};
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate::state::storage::{FaultAction, FaultyStore, StoreFaults, StoreOp};
use tidegate_tests::checkpoints_every;

/// A call of a sink that never returns, or never comes to anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Write,
    Prepare,
    Commit,
    /// "Retry after" for ever.
    CommitInVain,
}

/// A server that stops answering at one kind of call, once it has been opened.
#[derive(Clone)]
struct Hanging {
    at: Call,
    hangs: Arc<AtomicBool>,
}

impl Hanging {
    async fn pass(&self, call: Call) {
        if call == self.at && call != Call::CommitInVain {
            self.hangs.store(true, Ordering::Relaxed);
            std::future::pending::<()>().await;
        }
    }
}

impl TwoPhaseSink for Hanging {
    type Record = u64;
    type Committable = u64;
    type Writer = Self;
    type Committer = Self;

    fn open_committer(
        &self,
        _context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(self.clone()))
    }

    fn open_writer(
        &self,
        _context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(self.clone()))
    }
}

impl TwoPhaseWriter for Hanging {
    type Record = u64;
    type Committable = u64;

    async fn write(&mut self, _name: &TransactionName, _batch: Batch<u64>) -> Result<(), ConnectorError> {
        self.pass(Call::Write).await;
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<u64>, ConnectorError> {
        self.pass(Call::Prepare).await;
        Ok(Some(0))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}

impl Committer for Hanging {
    type Committable = u64;

    async fn commit(&mut self, _item: &Prepared<u64>) -> Result<CommitOutcome, ConnectorError> {
        self.pass(Call::Commit).await;
        match self.at {
            Call::CommitInVain => {
                self.hangs.store(true, Ordering::Relaxed);
                Ok(CommitOutcome::RetryAfter { ms: 5, reason: "the server is away".to_owned() })
            }
            _ => Ok(CommitOutcome::Committed),
        }
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        Ok(Vec::new())
    }

    async fn roll_back(&mut self, _name: &TransactionName) -> Result<(), ConnectorError> {
        Ok(())
    }
}

fn endless() -> Datagen<u64, impl Fn(u64) -> u64 + Clone + Send + 'static> {
    Datagen::new(|n| n).rate_per_second(20_000)
}

#[test]
fn a_cancel_beside_a_sink_that_hangs_ends_within_its_timeout_and_names_the_sink() {
    for at in [Call::Write, Call::Prepare, Call::Commit] {
        let (env, hangs) = (StreamEnvironment::new(), Arc::<AtomicBool>::default());
        let _ = env.source("numbers", endless()).sink("hung", Hanging { at, hangs: Arc::clone(&hangs) });
        let graph = env.into_graph("scenario", 1, 128).unwrap();
        let config = ExecutionConfig { cancellation_timeout_ms: 200, ..checkpoints_every(20) };
        let storage = CheckpointStorage::open("memory://").unwrap();
        let mut runner = LocalRunner::new(graph, config, Some(storage)).unwrap();
        let cancel = runner.cancel_handle();
        let error = runner
            .run(move |_| {
                if hangs.load(Ordering::Relaxed) {
                    cancel.cancel();
                }
            })
            .unwrap_err();
        assert!(matches!(error, EngineError::CancelTimedOut { .. }), "{at:?}: {error}");
        assert!(error.to_string().contains("hung"), "{at:?}: {error}");
    }
}

/// `seatunnel#11569`: a job ended well although its commit never held.
#[test]
fn a_commit_that_never_holds_fails_each_attempt_and_then_the_job_and_names_the_cause() {
    let (env, hangs) = (StreamEnvironment::new(), Arc::<AtomicBool>::default());
    let source = Datagen::new(|n| n).bounded(100);
    let _ = env.source("numbers", source).sink("away", Hanging { at: Call::CommitInVain, hangs });
    let graph = env.into_graph("scenario", 1, 128).unwrap();
    let checkpoints = CheckpointConfig { interval_ms: 10, timeout_ms: 300, ..CheckpointConfig::default() };
    let restart = RestartStrategy::FixedDelay { attempts: 2, delay_ms: 1 };
    let config = ExecutionConfig { checkpoints, restart, ..ExecutionConfig::default() };
    let storage = CheckpointStorage::open("memory://").unwrap();
    let mut causes = Vec::new();
    let ended = LocalRunner::new(graph, config, Some(storage)).unwrap().run(|notice| {
        if let ExecutionNotice::Restarting { cause, .. } = notice {
            causes.push(cause.clone());
        }
    });
    let text = tidegate::error_text(&ended.unwrap_err());
    for said in causes.iter().chain([&text]) {
        assert!(said.contains("for the checkpoint timeout (300 ms) in vain: the server is away"), "{said}");
    }
    assert_eq!(causes.len(), 2);
}

#[test]
fn checkpoints_behind_a_sink_that_hangs_expire_until_no_more_are_tolerable() {
    let (env, hangs) = (StreamEnvironment::new(), Arc::<AtomicBool>::default());
    let _ = env.source("numbers", endless()).sink("hung", Hanging { at: Call::Prepare, hangs });
    let graph = env.into_graph("scenario", 1, 128).unwrap();
    let checkpoints = CheckpointConfig {
        interval_ms: 10,
        timeout_ms: 30,
        tolerable_failures: 2,
        ..CheckpointConfig::default()
    };
    let config =
        ExecutionConfig { checkpoints, restart: RestartStrategy::None, ..ExecutionConfig::default() };
    let storage = CheckpointStorage::open("memory://").unwrap();
    let error = LocalRunner::new(graph, config, Some(storage)).unwrap().run(|_| ()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("checkpoints failed in a row, 2 are tolerable"), "{text}");
}

/// A disk that has no room for some puts of state files.
#[derive(Debug)]
struct FullDisk {
    refusals_left: AtomicU32,
}

impl StoreFaults for FullDisk {
    fn before(&self, op: StoreOp, path: &Path) -> BoxFuture<'static, FaultAction> {
        let is_state = op == StoreOp::Put && path.as_ref().ends_with(".state");
        let refuses = is_state
            && self
                .refusals_left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
                .is_ok();
        Box::pin(async move { if refuses { FaultAction::Fail } else { FaultAction::Proceed } })
    }
}

#[test]
fn a_disk_that_is_full_for_a_while_declines_checkpoints_with_the_reason_and_the_next_one_completes() {
    let disk = Arc::new(FullDisk { refusals_left: AtomicU32::new(2) });
    let store = Arc::new(FaultyStore::new(Arc::new(InMemory::new()), disk));
    let storage = CheckpointStorage::over(store, "memory://full");
    let env = StreamEnvironment::new();
    let sums = env.source("numbers", endless()).key_by(|n| n % 10);
    let sums = sums.process("sums", value::<u64>("sum"), |n, sum, _, out| {
        out.emit(*sum.update(|sum| *sum += n)?);
        Ok(())
    });
    let _ = sums.sink("out", BlackholeSink::<u64>::new());
    let graph = env.into_graph("scenario", 1, 128).unwrap();
    let mut runner = LocalRunner::new(graph, checkpoints_every(20), Some(storage)).unwrap();
    let cancel = runner.cancel_handle();
    let (mut failed, mut completed_after, mut restarts) = (Vec::new(), false, 0);
    let outcome = runner.run(|notice| match notice {
        ExecutionNotice::Master(MasterNotice::CheckpointFailed(stats)) => {
            if let CheckpointOutcome::Failed(reason) = &stats.outcome {
                failed.push(reason.to_string());
            }
        }
        ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) if failed.len() >= 2 => {
            completed_after = true;
            cancel.cancel();
        }
        ExecutionNotice::Restarting { .. } => restarts += 1,
        _ => {}
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Canceled);
    assert!(completed_after && restarts == 0, "{failed:?}, {restarts} restarts");
    assert!(failed[..2].iter().all(|reason| reason.contains("sums-0.state")), "{failed:?}");
}
