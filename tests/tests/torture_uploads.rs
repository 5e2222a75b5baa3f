//! Uploads that fail, under a running job: what is aborted stays unseen, goes out once with a later checkpoint, and leaves no file.
//!
//! Owns: the scenarios. Does not own: kills (the tests of the orders job). Runs on: the test's thread and the job's.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use rusqlite::Connection;
use tidegate::engine::checkpoint::commit_log::{Listing, entry_in};
use tidegate::engine::execution::{ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::MasterNotice;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate::state::storage::{FaultAction, FaultyStore, StoreFaults, StoreOp};
use tidegate_tests::checkpoints_every;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    id: u64,
    key: u64,
}

/// Every line into a table without a key, and a running count per key from keyed state, twice.
struct Job {
    folder: tempfile::TempDir,
    lines: u64,
}

impl Job {
    fn of(lines: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("input");
        fs::create_dir(&input).unwrap();
        for part in 0..3 {
            let ids = (0..lines).filter(|id| id % 3 == part);
            let text: String = ids.map(|id| format!("{{\"id\":{id},\"key\":{}}}\n", id % 17)).collect();
            fs::write(input.join(format!("part-{part}.jsonl")), text).unwrap();
        }
        Self { folder, lines }
    }

    fn database(&self) -> PathBuf {
        self.folder.path().join("out.sqlite")
    }

    /// Two stateful operators behind each other, by the same key.
    fn build(&self, rate: u64) -> StreamEnvironment {
        let env = StreamEnvironment::new();
        let source = FileSource::json_lines::<Line>(self.folder.path().join("input")).rate_per_second(rate);
        let lines = env.source("lines", source);
        let log = SqliteSink::table(self.database(), "line_log").column("id", |l: &Line| l.id).append();
        let _ = lines.sink("line_sink", log);
        let once = lines.key_by(|l: &Line| l.key).process(
            "once",
            value::<u64>("count"),
            |line: Line, count, _ctx, out: &mut Output<(u64, u64)>| {
                out.emit((line.key, *count.update(|n| *n += 1)?));
                Ok(())
            },
        );
        let twice = once.key_by(|row: &(u64, u64)| row.0).process(
            "twice",
            value::<u64>("count"),
            |(key, first): (u64, u64), count, _ctx, out: &mut Output<(u64, u64, u64)>| {
                out.emit((key, first, *count.update(|n| *n += 1)?));
                Ok(())
            },
        );
        let table = SqliteSink::table(self.database(), "key_count")
            .column("key", |r: &(u64, u64, u64)| r.0)
            .column("first", |r| r.1)
            .column("second", |r| r.2)
            .overwrite_by("key");
        let _ = twice.sink("count_sink", table);
        env
    }

    fn runner(&self, parallelism: u32, rate: u64, storage: &CheckpointStorage) -> LocalRunner {
        let graph = self.build(rate).into_graph("scenario", parallelism, 128).unwrap();
        LocalRunner::new(graph, checkpoints_every(20), Some(storage.clone())).unwrap()
    }

    /// Every line once, and nothing staged is left.
    fn check(&self) {
        let database = Connection::open(self.database()).unwrap();
        let number = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
        let lines = self.lines.cast_signed();
        assert_eq!(number("SELECT count(*) FROM line_log"), lines);
        assert_eq!(number("SELECT count(DISTINCT id) FROM line_log"), lines);
        assert_eq!(number("SELECT sum(first) FROM key_count"), lines);
        assert_eq!(number("SELECT sum(second) FROM key_count"), lines);
        assert_eq!(number("SELECT count(*) FROM tidegate_staging"), 0);
    }
}

/// Rows that anybody can see.
fn rows(database: &Path) -> i64 {
    let database = Connection::open(database).unwrap();
    database.query_row("SELECT count(*) FROM line_log", [], |row| row.get(0)).unwrap()
}

/// Makes some uploads of state files fail: those of which this says so, by their number (from 0) and path.
struct FailingUploads {
    seen: AtomicU32,
    fails: fn(u32, &str) -> bool,
}

impl FailingUploads {
    fn over_memory(fails: fn(u32, &str) -> bool) -> CheckpointStorage {
        let faults = Arc::new(Self { seen: AtomicU32::new(0), fails });
        let store = FaultyStore::new(Arc::new(InMemory::new()), faults);
        CheckpointStorage::over(Arc::new(store), "memory://scenario")
    }
}

impl std::fmt::Debug for FailingUploads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FailingUploads").field("seen", &self.seen).finish_non_exhaustive()
    }
}

impl StoreFaults for FailingUploads {
    fn before(&self, op: StoreOp, path: &object_store::path::Path) -> BoxFuture<'static, FaultAction> {
        let fails =
            op == StoreOp::Put && (self.fails)(self.seen.fetch_add(1, Ordering::Relaxed), path.as_ref());
        Box::pin(async move { if fails { FaultAction::Fail } else { FaultAction::Proceed } })
    }
}

/// Everything below the folder is of the log, or named by a checkpoint that the newest one retains.
fn holds_exactly_what_is_retained(storage: &CheckpointStorage) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let paths = runtime.block_on(storage.list("")).unwrap();
    let read = |path: &String| runtime.block_on(storage.get(path)).unwrap().unwrap();
    let listing: Listing = paths.iter().filter_map(|path| entry_in(path, &read(path))).collect();
    let kept = listing.kept();
    let checkpoints: Vec<_> = listing.checkpoints().collect();
    assert_eq!(checkpoints.len(), kept.len(), "no checkpoint is there that is not retained");
    let named: BTreeSet<&str> = checkpoints.iter().flat_map(|c| c.manifest.files()).collect();
    let files: BTreeSet<&str> =
        paths.iter().map(String::as_str).filter(|path| !path.starts_with("log/")).collect();
    assert_eq!(files, named);
}

#[test]
fn field_case_33_where_one_subtask_cannot_upload_nothing_of_the_checkpoint_is_seen() {
    let job = Job::of(6_000);
    // The first three checkpoints: subtask 1 fails, subtask 0 does not.
    let storage = FailingUploads::over_memory(|_, path| {
        ["1-", "2-", "3-"].iter().any(|id| path.starts_with(id)) && path.contains("once-1")
    });
    let mut failed = 0;
    let mut runner = job.runner(2, 10_000, &storage);
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Master(MasterNotice::CheckpointFailed(stats)) = notice {
            assert!(stats.id.0 <= 3, "{stats:?}");
            assert_eq!(rows(&job.database()), 0, "checkpoint {} was given up", stats.id);
            failed += 1;
        }
    });
    assert_eq!((outcome.unwrap(), failed), (JobOutcome::Finished, 3));
    job.check();
    holds_exactly_what_is_retained(&storage);
}

#[test]
fn field_case_31_what_an_aborted_checkpoint_has_prepared_goes_out_once_with_the_next_one() {
    let job = Job::of(9_000);
    // Every second checkpoint is given up, with the transactions of all subtasks prepared.
    let storage = FailingUploads::over_memory(|_, path| {
        let id: u64 = path.split('-').next().and_then(|id| id.parse().ok()).unwrap_or(0);
        id.is_multiple_of(2) && path.contains("twice-0")
    });
    let (mut failed, mut completed) = (0, 0);
    let mut runner = job.runner(3, 15_000, &storage);
    let outcome = runner.run(|notice| match notice {
        ExecutionNotice::Master(MasterNotice::CheckpointFailed(_)) => failed += 1,
        ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) => completed += 1,
        _ => {}
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    assert!(failed >= 3 && completed >= 3, "{failed} given up, {completed} complete");
    job.check();
    holds_exactly_what_is_retained(&storage);
}

#[test]
fn field_case_56_where_half_of_the_uploads_fail_the_store_holds_what_the_manifests_name() {
    let job = Job::of(9_000);
    // A checkpoint has two files: of three checkpoints one completes, so that the failures in a row are borne.
    const FAILS: [bool; 6] = [true, true, false, true, false, false];
    let storage = FailingUploads::over_memory(|count, _| FAILS[count as usize % FAILS.len()]);
    let mut failed = 0;
    let mut runner = job.runner(1, 15_000, &storage);
    let outcome = runner.run(|notice| {
        if let ExecutionNotice::Master(MasterNotice::CheckpointFailed(_)) = notice {
            failed += 1;
        }
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    assert!(failed >= 3, "{failed}");
    job.check();
    holds_exactly_what_is_retained(&storage);
}

#[test]
fn field_case_60_two_stateful_operators_behind_each_other_lose_nothing_over_restarts_and_rescales() {
    let job = Job::of(9_000);
    let storage = CheckpointStorage::over(Arc::new(InMemory::new()), "memory://scenario");
    for parallelism in [2, 3, 1] {
        let mut runner = job.runner(parallelism, 15_000, &storage);
        let (cancel, mut completed) = (runner.cancel_handle(), 0);
        let outcome = runner.run(|notice| {
            if let ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) = notice {
                completed += 1;
                if completed == 3 {
                    cancel.cancel();
                }
            }
        });
        assert_eq!(outcome.unwrap(), JobOutcome::Canceled);
    }
    assert_eq!(job.runner(2, 1_000_000, &storage).run(|_| ()).unwrap(), JobOutcome::Finished);
    job.check();
    holds_exactly_what_is_retained(&storage);
}
