//! A job that is stopped, or fails, goes on where its checkpoint stands, and nowhere else.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use rusqlite::Connection;
use tempfile::TempDir;
use tidegate::engine::execution::{ExecutionConfig, JobOutcome};
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;

use tidegate::connectors::kafka::{KafkaSource, StoppingOffsets};

use crate::broker::Topic;
use crate::live_job::{LiveJob, eventually};
use crate::reading::{Placed, numbers};
use tidegate_tests::checkpoints_every;

/// A topic into a table, exactly once.
struct Scene {
    topic: Topic,
    folder: TempDir,
}

impl Scene {
    fn new(partitions: i32) -> Self {
        Self { topic: Topic::new(partitions), folder: tempfile::tempdir().unwrap() }
    }

    fn storage(&self) -> CheckpointStorage {
        CheckpointStorage::open(self.folder.path().join("checkpoints").to_str().unwrap()).unwrap()
    }

    fn start(&self, source: KafkaSource<Placed>, parallelism: u32) -> LiveJob {
        self.start_with(source, parallelism, |_| Ok(()))
    }

    /// `check` may let a record fail the job.
    fn start_with(
        &self,
        source: KafkaSource<Placed>,
        parallelism: u32,
        check: impl Fn(u64) -> Result<()> + Clone + Send + 'static,
    ) -> LiveJob {
        let database = self.folder.path().join("out.sqlite");
        let build = move |env: &StreamEnvironment| {
            let table = SqliteSink::table(&database, "log")
                .column("partition", |r: &Placed| i64::from(r.0))
                .column("at", |r: &Placed| r.1)
                .column("number", |r: &Placed| i64::try_from(r.2).unwrap())
                .append();
            let checked = env.source("topic", source).uid("topic").flat_map(move |record: Placed| {
                check(record.2).unwrap();
                Some(record)
            });
            let _ = checked.sink("log", table);
        };
        let restart = RestartStrategy::FixedDelay { attempts: 50, delay_ms: 10 };
        let config = ExecutionConfig { restart, ..checkpoints_every(30) };
        LiveJob::start(build, parallelism, config, Some(self.storage()))
    }

    fn count(&self, sql: &str) -> i64 {
        count(&self.folder.path().join("out.sqlite"), sql)
    }

    fn check(&self, numbers: i64) {
        assert_eq!(self.count("SELECT count(*) FROM log"), numbers);
        assert_eq!(self.count("SELECT count(DISTINCT number) FROM log"), numbers);
        assert_eq!(self.count("SELECT count(*) FROM (SELECT DISTINCT partition, at FROM log)"), numbers);
    }
}

fn count(database: &Path, sql: &str) -> i64 {
    // The table appears with the first commit.
    let Ok(database) = Connection::open(database) else { return 0 };
    database.query_row(sql, [], |row| row.get(0)).unwrap_or(0)
}

/// Field case 80 (risingwave#5192), with another parallelism at each start.
#[test]
fn a_restart_reads_no_record_twice_and_leaves_none_out() {
    let scene = Scene::new(4);
    let mut written = 0;
    for parallelism in [1, 3, 2] {
        scene.topic.write_numbers(4, written, 4_000);
        written += 4_000;
        let job = scene.start(numbers(&scene.topic), parallelism);
        let enough = i64::try_from(written).unwrap() - 2_000;
        eventually("some rows", || scene.count("SELECT count(*) FROM log") >= enough);
        job.cancel();
    }
    let last = scene.start(numbers(&scene.topic).bounded(StoppingOffsets::Latest), 2);
    assert_eq!(last.end().unwrap(), JobOutcome::Finished);
    scene.check(12_000);
}

#[test]
fn a_failure_in_the_middle_is_restarted_from_the_last_checkpoint() {
    let scene = Scene::new(3);
    scene.topic.write_numbers(3, 0, 6_000);
    let (falls, armed) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicBool::new(true)));
    let (fallen, trap) = (Arc::clone(&falls), Arc::clone(&armed));
    let job = scene.start_with(numbers(&scene.topic), 3, move |number| {
        let falls = number >= 6_000 && number % 1_000 == 999 && trap.swap(false, Ordering::Relaxed);
        if falls {
            fallen.fetch_add(1, Ordering::Relaxed);
            return Err(JobError::msg("a trap"));
        }
        Ok(())
    });
    for round in 1..=4 {
        scene.topic.write_numbers(3, 5_000 + round * 1_000, 1_000);
        eventually("the fall", || falls.load(Ordering::Relaxed) >= u32::try_from(round).unwrap());
        armed.store(true, Ordering::Relaxed);
    }
    eventually("all rows", || scene.count("SELECT count(*) FROM log") >= 10_000);
    job.cancel();
    scene.check(10_000);
}

#[test]
fn moved_group_offsets_change_nothing() {
    let scene = Scene::new(1);
    let group = format!("{}-moved", scene.topic.name);
    scene.topic.write_numbers(1, 0, 1_000);
    let job = scene.start(numbers(&scene.topic).group(&group), 1);
    eventually("all rows", || scene.count("SELECT count(*) FROM log") >= 1_000);
    eventually("the group is told", || scene.topic.group_offset(&group, 0) == Some(1_000));
    job.cancel();
    for moved in [10, 1_400] {
        scene.topic.write_numbers(1, u64::try_from(scene.topic.end(0)).unwrap(), 500);
        scene.topic.move_group(&group, 0, moved);
        let again = scene.start(numbers(&scene.topic).group(&group), 1);
        let end = scene.topic.end(0);
        eventually("the new rows", || scene.count("SELECT count(*) FROM log") >= end);
        again.cancel();
        scene.check(end);
    }
}

#[test]
fn an_unbounded_job_can_be_finished_by_a_bounded_one() {
    let scene = Scene::new(2);
    scene.topic.write_numbers(2, 0, 500);
    let job = scene.start(numbers(&scene.topic), 2);
    eventually("all rows", || scene.count("SELECT count(*) FROM log") >= 500);
    job.cancel();
    scene.topic.write_numbers(2, 500, 100);
    let last = scene.start(numbers(&scene.topic).bounded(StoppingOffsets::Latest), 1);
    assert_eq!(last.end().unwrap(), JobOutcome::Finished);
    scene.check(600);
}
