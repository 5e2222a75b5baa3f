//! Transactions that are prepared and whose checkpoints do not complete: the store takes no state for a while. They go with the next
//! checkpoint that completes; an orderly cancel rolls them back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use object_store::path::Path;
use tidegate::connectors::mysql::MysqlUrl;
use tidegate::engine::execution::{CancelHandle, ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::MasterNotice;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate::state::storage::{FaultAction, FaultyStore, StoreFaults, StoreOp};
use tidegate_jobs::tcp_proxy::CutMoment;
use tidegate_tests::Ended;

use super::chain::{
    Phases, audit, config_of_one_attempt, numbers, numbers_sink, numbers_table, run_watched, staging_tables,
    until,
};
use super::scene::{Scene, on_both};

const RECORDS: u64 = 3_000;
const PARALLELISM: u32 = 2;
/// So many checkpoints fail before the test goes on.
const FAILED: usize = 2;

/// Refuses files of the job's state for as long as it is full; entries of the log it takes.
#[derive(Debug, Default)]
struct FullStore {
    full: AtomicBool,
}

impl StoreFaults for FullStore {
    fn before(&self, op: StoreOp, path: &Path) -> BoxFuture<'static, FaultAction> {
        let is_state = op == StoreOp::Put && path.as_ref().ends_with(".state");
        let refuses = is_state && self.full.load(Ordering::SeqCst);
        Box::pin(async move { if refuses { FaultAction::Fail } else { FaultAction::Proceed } })
    }
}

/// The numbers into the table `w`, by way of an operator whose state is a file.
fn job(url: &MysqlUrl, phases: Phases) -> StreamEnvironment {
    let env = StreamEnvironment::new();
    let keyed = numbers(&env, RECORDS, 3_000, |_| ()).key_by(|n| n % 10);
    let counted = keyed.process("count", value::<u64>("seen"), |n, seen, _, out| {
        seen.update(|seen| *seen += 1)?;
        out.emit(n);
        Ok(())
    });
    let _ = match phases {
        Phases::Xa => counted.sink("out", numbers_sink(url)),
        Phases::Staging => counted.sink("out", numbers_sink(url).staging()),
    };
    env
}

/// A job and the store of its checkpoints.
struct Stored {
    phases: Phases,
    store: Arc<FullStore>,
    storage: CheckpointStorage,
}

impl Stored {
    fn new(phases: Phases) -> Self {
        let store = Arc::<FullStore>::default();
        let faulty = FaultyStore::new(Arc::new(InMemory::new()), Arc::clone(&store) as _);
        Self { phases, store, storage: CheckpointStorage::over(Arc::new(faulty), "memory://full") }
    }

    /// Runs the job. Once a checkpoint is complete the store is full; after two have failed, and what they closed is prepared, it is
    /// `then`'s turn.
    fn run(&self, scene: &Scene, url: &MysqlUrl, then: impl Fn(&CancelHandle)) -> Ended {
        let (mut failed, mut restarts) = (0, Vec::new());
        let run = || {
            let graph = job(url, self.phases).into_graph(&scene.job_name(), PARALLELISM, 128)?;
            let mut runner = LocalRunner::new(graph, config_of_one_attempt(100), Some(self.storage.clone()))?;
            let cancel = runner.cancel_handle();
            runner.run(|notice| match notice {
                ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) if failed == 0 => {
                    self.store.full.store(true, Ordering::SeqCst);
                }
                ExecutionNotice::Master(MasterNotice::CheckpointFailed(_)) => {
                    failed += 1;
                    if failed == FAILED {
                        let closed = FAILED * PARALLELISM as usize;
                        until("what the failed ones closed is prepared", || self.prepared(scene) >= closed);
                        then(&cancel);
                    }
                }
                ExecutionNotice::Restarting { cause, .. } => restarts.push(cause.clone()),
                _ => {}
            })
        };
        let outcome = tokio::task::block_in_place(run);
        assert!(failed >= FAILED, "{failed} checkpoints failed");
        Ended { outcome, restarts }
    }

    fn prepared(&self, scene: &Scene) -> usize {
        tokio::runtime::Handle::current().block_on(async {
            match self.phases {
                Phases::Xa => scene.branches().await.len(),
                Phases::Staging => staging_tables(scene).await,
            }
        })
    }
}

#[test]
fn a_canceled_job_commits_what_its_newest_checkpoint_lists_and_rolls_the_rest_back() {
    on_both(async |scene| {
        for phases in [Phases::Xa, Phases::Staging] {
            scene.sql("DROP TABLE IF EXISTS w").await;
            numbers_table(&scene).await;
            let stored = Stored::new(phases);
            let ended = stored.run(&scene, &scene.url, CancelHandle::cancel);
            assert_eq!(ended.outcome.as_ref().ok(), Some(&JobOutcome::Canceled), "{ended:?}");
            assert_eq!(scene.branches().await, Vec::<String>::new());
            assert_eq!(staging_tables(&scene).await, 0);
            let (rows, distinct): (u64, u64) =
                scene.ask("SELECT COUNT(*), COUNT(DISTINCT n) FROM w").await.remove(0);
            assert!(rows == distinct && (1..RECORDS).contains(&rows), "{rows} rows, {distinct} numbers");
            // The next start goes on from that checkpoint: what was committed beyond it would be there twice, what was not would lack.
            stored.store.full.store(false, Ordering::SeqCst);
            let (env, config) = (job(&scene.url, phases), config_of_one_attempt(100));
            run_watched(&scene, env, PARALLELISM, config, stored.storage.clone(), |_| ()).unbroken();
            audit(&scene, RECORDS).await;
        }
    });
}

#[test]
fn what_a_failed_checkpoint_closed_is_never_rolled_back_and_goes_with_the_next_one_that_completes() {
    on_both(async |scene| {
        for phases in [Phases::Xa, Phases::Staging] {
            scene.sql("DROP TABLE IF EXISTS w").await;
            numbers_table(&scene).await;
            let (proxy, url) = scene.proxy();
            // Of a branch of the job (`tidegate.`), not of the trial at submit (`tidegate-`).
            proxy.cut_on("\x03XA ROLLBACK X'74696465676174652e", CutMoment::BeforeForwarding, u32::MAX);
            let stored = Stored::new(phases);
            let ended = stored.run(&scene, &url, |_| stored.store.full.store(false, Ordering::SeqCst));
            ended.unbroken();
            assert_eq!(proxy.counts().cut_by_pattern, 0, "a branch was rolled back");
            audit(&scene, RECORDS).await;
        }
    });
}
