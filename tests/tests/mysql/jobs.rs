//! Whole jobs: their output is audited after restarts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use tidegate::engine::checkpoint::CheckpointConfig;
use tidegate::engine::execution::{ExecutionConfig, JobOutcome};
use tidegate::prelude::*;
use tidegate_tests::checkpoints_every;

use super::chain::run_job;
use super::scene::{Pair, Scene, on_both};

const RECORDS: u64 = 6_000;

fn config(interval_ms: u64) -> ExecutionConfig {
    let config = checkpoints_every(interval_ms);
    let checkpoints = CheckpointConfig { timeout_ms: 20_000, ..config.checkpoints.clone() };
    ExecutionConfig { checkpoints, ..config }
}

/// Runs a job to its end, which blocks this thread.
fn run_aside(scene: &Scene, env: StreamEnvironment, parallelism: u32, config: ExecutionConfig) -> JobOutcome {
    run_job(scene, env, parallelism, config).outcome.unwrap()
}

/// Panics once for each number that is given, when the job comes by.
#[derive(Clone)]
struct Falls(Arc<Mutex<Vec<u64>>>);

impl Falls {
    fn at(numbers: &[u64]) -> Self {
        Self(Arc::new(Mutex::new(numbers.to_vec())))
    }

    fn pass(&self, number: u64) {
        let struck = {
            let mut left = self.0.lock().unwrap();
            let at = left.iter().position(|n| *n == number);
            at.map(|at| left.remove(at))
        };
        assert_eq!(struck, None, "a planted fault");
    }

    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

fn numbers(env: &StreamEnvironment, falls: &Falls, seen: &Arc<AtomicU64>) -> DataStream<u64> {
    let (falls, seen) = (falls.clone(), Arc::clone(seen));
    let source = Datagen::new(|n| n).bounded(RECORDS).rate_per_second(4_000);
    env.source("numbers", source).map(move |number| {
        seen.fetch_add(1, Ordering::Relaxed);
        falls.pass(number);
        number
    })
}

async fn audit(scene: &Scene) {
    let (count, distinct, sum): (u64, u64, String) = scene
        .ask("SELECT COUNT(*), COUNT(DISTINCT user_id), CAST(COALESCE(SUM(cents), 0) AS CHAR) FROM t")
        .await
        .remove(0);
    assert_eq!((count, distinct, sum), (RECORDS, RECORDS, RECORDS.to_string()));
    assert_eq!(scene.branches().await, Vec::<String>::new());
}

#[test]
fn a_job_that_falls_again_and_again_writes_every_row_once() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let falls = Falls::at(&[900, 2_000, 2_001, 5_500]);
        let seen = Arc::new(AtomicU64::new(0));
        let env = StreamEnvironment::new();
        let _ = numbers(&env, &falls, &seen).map(|n| -> Pair { (n, 1) }).sink("out", sink);
        let outcome = run_aside(&scene, env, 2, config(60));
        assert_eq!((outcome, falls.left()), (JobOutcome::Finished, 0));
        assert!(seen.load(Ordering::Relaxed) > RECORDS, "nothing was replayed: the kills struck nothing");
        audit(&scene).await;
    });
}

#[test]
fn a_job_with_a_staging_table_that_falls_writes_every_row_once() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").staging();
        let falls = Falls::at(&[900, 2_000, 5_500]);
        let seen = Arc::new(AtomicU64::new(0));
        let env = StreamEnvironment::new();
        let _ = numbers(&env, &falls, &seen).map(|n| -> Pair { (n, 1) }).sink("out", sink);
        let outcome = run_aside(&scene, env, 2, config(100));
        assert_eq!((outcome, falls.left()), (JobOutcome::Finished, 0));
        assert!(seen.load(Ordering::Relaxed) > RECORDS, "nothing was replayed: the kills struck nothing");
        audit(&scene).await;
        let left: Vec<(String,)> = scene
            .ask("SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME LIKE 'tidegate\\_staging%'")
            .await;
        assert_eq!(left, []);
    });
}

#[test]
fn one_user_whose_row_every_branch_adds_to_makes_no_deadlock_and_no_lock_wait() {
    on_both(async |scene| {
        scene.keyed_table().await;
        let sink = scene.sink("s").add_by("user_id");
        let (falls, seen) = (Falls::at(&[3_000]), Arc::new(AtomicU64::new(0)));
        let env = StreamEnvironment::new();
        let _ = numbers(&env, &falls, &seen).map(|_| -> Pair { (7, 1) }).sink("out", sink);
        assert_eq!(run_aside(&scene, env, 1, config(100)), JobOutcome::Finished);
        assert_eq!(scene.rows("s").await, [(7, i64::try_from(RECORDS).unwrap())]);
    });
}

#[test]
fn the_control_group_writes_rows_twice_under_the_same_falls() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").plain();
        let (falls, seen) = (Falls::at(&[3_000]), Arc::new(AtomicU64::new(0)));
        let env = StreamEnvironment::new();
        let _ = numbers(&env, &falls, &seen).map(|n| -> Pair { (n, 1) }).sink("out", sink);
        assert_eq!(run_aside(&scene, env, 1, config(500)), JobOutcome::Finished);
        let (count, distinct): (u64, u64) =
            scene.ask("SELECT COUNT(*), COUNT(DISTINCT user_id) FROM t").await.remove(0);
        assert_eq!(distinct, RECORDS);
        assert!(count > RECORDS, "the control group doubles nothing: {count}");
    });
}
