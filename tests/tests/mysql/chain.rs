//! A job that writes numbers into a table by either sink in two phases, and the audit of that table.
//!
//! Owns: the job, its run, the audit. Does not own: what is done to it meanwhile. Runs on: the test's thread, which a run blocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tidegate::connectors::mysql::{MysqlSink, MysqlUrl};
use tidegate::engine::checkpoint::CheckpointConfig;
use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, LocalRunner};
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Ended, checkpoints_every};

use super::scene::Scene;

/// How long a test waits for anything before it fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Added to each number that is written: the eight bytes of a marked number stand nowhere else in what a client sends.
const MARK: u64 = 0x7469_6465_0000_0000;
/// Makes a statement of hundreds of rows larger than what goes over the network in one piece.
const PADDING: &str =
    "0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789";

/// Either sink in two phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phases {
    Xa,
    Staging,
}

/// The bytes of a number in a statement.
pub(crate) fn bytes_of(number: u64) -> [u8; 8] {
    (MARK + number).to_le_bytes()
}

/// The table `w` of the numbers, without a key: a row that comes twice is there twice.
pub(crate) async fn numbers_table(scene: &Scene) {
    scene.sql("CREATE TABLE w (n BIGINT UNSIGNED NOT NULL, pad VARCHAR(200) NOT NULL)").await;
}

/// A sink into that table.
pub(crate) fn numbers_sink(url: &MysqlUrl) -> MysqlSink<u64> {
    MysqlSink::table(url, "w").column("n", |n: &u64| MARK + n).text("pad", |_| PADDING)
}

/// So many numbers, `per_second`; `at` is called with each of them, also when it comes again.
pub(crate) fn numbers(
    env: &StreamEnvironment,
    records: u64,
    per_second: u64,
    at: impl Fn(u64) + Clone + Send + 'static,
) -> DataStream<u64> {
    let source = Datagen::new(|n| n).bounded(records).rate_per_second(per_second);
    env.source("numbers", source).map(move |number| {
        at(number);
        number
    })
}

/// The numbers into the table `w` at `url`.
pub(crate) fn job(
    url: &MysqlUrl,
    phases: Phases,
    records: u64,
    at: impl Fn(u64) + Clone + Send + 'static,
) -> StreamEnvironment {
    let env = StreamEnvironment::new();
    let stream = numbers(&env, records, 3_000, at);
    let _ = match phases {
        Phases::Xa => stream.sink("out", numbers_sink(url)),
        Phases::Staging => stream.sink("out", numbers_sink(url).staging()),
    };
    env
}

/// A checkpoint every `interval_ms`, which may take 20 s; restarts after a short pause.
pub(crate) fn config(interval_ms: u64) -> ExecutionConfig {
    let config = checkpoints_every(interval_ms);
    let checkpoints = CheckpointConfig { timeout_ms: 20_000, ..config.checkpoints.clone() };
    let restart = RestartStrategy::FixedDelay { attempts: 50, delay_ms: 50 };
    ExecutionConfig { checkpoints, restart, ..config }
}

/// The same without any restart.
pub(crate) fn config_of_one_attempt(interval_ms: u64) -> ExecutionConfig {
    ExecutionConfig { restart: RestartStrategy::None, ..config(interval_ms) }
}

/// Runs a job to its end; `at_restart` is called with the number of each restart, from 1, before its pause.
pub(crate) fn run_watched(
    scene: &Scene,
    env: StreamEnvironment,
    parallelism: u32,
    config: ExecutionConfig,
    storage: CheckpointStorage,
    mut at_restart: impl FnMut(usize),
) -> Ended {
    let mut restarts = Vec::new();
    let run = || {
        let graph = env.into_graph(&scene.job_name(), parallelism, 128)?;
        LocalRunner::new(graph, config, Some(storage))?.run(|notice| {
            if let ExecutionNotice::Restarting { cause, .. } = notice {
                println!("restart: {cause}");
                restarts.push(cause.clone());
                at_restart(restarts.len());
            }
        })
    };
    let outcome = tokio::task::block_in_place(run);
    Ended { outcome, restarts }
}

/// Runs a job to its end.
pub(crate) fn run_job(
    scene: &Scene,
    env: StreamEnvironment,
    parallelism: u32,
    config: ExecutionConfig,
) -> Ended {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run_watched(scene, env, parallelism, config, storage, |_| ())
}

/// Each number is there once, and nothing of the job is left.
pub(crate) async fn audit(scene: &Scene, records: u64) {
    let found: (u64, u64, Option<u64>, Option<u64>) =
        scene.ask("SELECT COUNT(*), COUNT(DISTINCT n), MIN(n), MAX(n) FROM w").await.remove(0);
    assert_eq!(found, (records, records, Some(MARK), Some(MARK + records - 1)));
    assert_eq!(scene.branches().await, Vec::<String>::new());
    assert_eq!(staging_tables(scene).await, 0);
    // Nobody has a lock on it. (A prepared branch of another name would make this wait, and fail.)
    scene.sql("ALTER TABLE w ADD COLUMN free INT").await;
}

/// How many staging tables there are.
pub(crate) async fn staging_tables(scene: &Scene) -> usize {
    let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
               AND TABLE_NAME LIKE 'tidegate\\_staging%'";
    scene.ask::<(String,)>(sql).await.len()
}

/// Polls until it holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "a real server needs real time")]
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < PATIENCE, "{what}");
        #[allow(clippy::disallowed_methods, reason = "between two looks at a real server")]
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Holds `during` for a span of real time.
pub(crate) fn holds_for(span: Duration, what: &str, mut holds: impl FnMut() -> bool) {
    #[allow(clippy::disallowed_methods, reason = "the span is the test's subject")]
    let start = Instant::now();
    until(what, || {
        assert!(holds(), "{what}");
        start.elapsed() >= span
    });
}

/// How far the numbers have come: the highest that was seen, plus 1.
#[derive(Clone, Default)]
pub(crate) struct Progress(Arc<AtomicU64>);

impl Progress {
    pub(crate) fn pass(&self, number: u64) {
        self.0.fetch_max(number + 1, Ordering::SeqCst);
    }

    pub(crate) fn seen(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// Runs something once, when it is first asked to.
#[derive(Clone)]
pub(crate) struct Once(Arc<Mutex<Option<Act>>>);

/// What is done once.
type Act = Box<dyn FnOnce() + Send>;

impl Once {
    pub(crate) fn new(what: impl FnOnce() + Send + 'static) -> Self {
        Self(Arc::new(Mutex::new(Some(Box::new(what)))))
    }

    pub(crate) fn run(&self) {
        let taken = self.0.lock().unwrap().take();
        if let Some(what) = taken {
            what();
        }
    }
}
