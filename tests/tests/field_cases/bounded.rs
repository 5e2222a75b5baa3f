//! Bounded inputs: what comes after the last barrier, inputs that end at different times, restarts in between.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;
use tidegate::engine::execution::{ExecutionConfig, JobOutcome, LocalRunner};
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Until, checkpoints_every, run};

/// No job here takes as long, also on a busy machine.
const STUCK_AFTER: Duration = Duration::from_secs(60);

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    id: u64,
    key: u64,
}

fn write_lines(dir: &Path, partitions: u64, lines: u64) {
    fs::create_dir_all(dir).unwrap();
    for partition in 0..partitions {
        let ids = (0..lines).filter(|id| id % partitions == partition);
        let text: String = ids.map(|id| format!("{{\"id\":{id},\"key\":{}}}\n", id % 7)).collect();
        fs::write(dir.join(format!("part-{partition}.jsonl")), text).unwrap();
    }
}

/// Every line into a table without a key, and a running count per key.
fn job(input: &Path, database: &Path) -> StreamEnvironment {
    let env = StreamEnvironment::new();
    let lines = env.source("lines", FileSource::json_lines::<Line>(input));
    let log = SqliteSink::table(database, "line_log").column("id", |l: &Line| l.id).append();
    let _ = lines.sink("line_sink", log);
    let counts = lines.key_by(|l: &Line| l.key).process(
        "counts",
        value::<u64>("count"),
        |line: Line, count, _ctx, out: &mut Output<(u64, u64)>| {
            let now = *count.update(|n| *n += 1)?;
            out.emit((line.key, now));
            Ok(())
        },
    );
    let table = SqliteSink::table(database, "key_count")
        .column("key", |r: &(u64, u64)| r.0)
        .column("count", |r: &(u64, u64)| r.1)
        .overwrite_by("key");
    let _ = counts.sink("count_sink", table);
    env
}

fn check(database: &Path, lines: i64) {
    let database = Connection::open(database).unwrap();
    let number = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
    assert_eq!(number("SELECT count(*) FROM line_log"), lines);
    assert_eq!(number("SELECT count(DISTINCT id) FROM line_log"), lines);
    assert_eq!(number("SELECT coalesce(sum(count), 0) FROM key_count"), lines);
    let left = number("SELECT count(*) FROM sqlite_master WHERE name LIKE 'tidegate_stg%'");
    assert_eq!(left, 0, "no staging table is left");
}

fn run_whole(parallelism: u32, partitions: u64, lines: u64, config: ExecutionConfig) {
    let folder = tempfile::tempdir().unwrap();
    let (input, database) = (folder.path().join("input"), folder.path().join("out.sqlite"));
    write_lines(&input, partitions, lines);
    let storage = CheckpointStorage::open(folder.path().join("checkpoints").to_str().unwrap()).unwrap();
    let outcome = run(job(&input, &database), parallelism, config, Some(storage), Until::End).unwrap();
    assert_eq!(outcome, JobOutcome::Finished);
    check(&database, i64::try_from(lines).unwrap());
}

#[test]
fn field_case_28_a_source_shorter_than_the_interval_comes_out_whole_and_the_job_finishes() {
    for parallelism in [1, 3] {
        run_whole(parallelism, 2, 10, checkpoints_every(600_000));
    }
}

#[test]
fn field_case_27_records_after_the_last_barrier_are_committed() {
    // The end of the input falls anywhere between two barriers.
    for lines in [0, 1, 999, 5_000, 7_777, 12_345] {
        run_whole(3, 3, lines.max(1), checkpoints_every(7));
    }
}

#[test]
fn field_case_23_a_job_whose_one_input_ends_while_another_waits_for_its_barrier_finishes_whole() {
    for short in [1, 40, 400] {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("out.sqlite");
        let env = StreamEnvironment::new();
        let numbers = |from: u64, count: u64| {
            Datagen::new(move |n| Line { id: from + n, key: n % 7 }).bounded(count).rate_per_second(30_000)
        };
        // Channels of one small batch: one input is held by its barrier most of the time.
        let ends = env.source("ends", numbers(0, short)).rebalance();
        let goes_on = env.source("goes_on", numbers(short, 4_000)).rebalance();
        let both = ends.union(&goes_on);
        let log = SqliteSink::table(&database, "line_log").column("id", |l: &Line| l.id).append();
        let _ = both.key_by(|l: &Line| l.key).sink("line_sink", log);
        let storage = CheckpointStorage::open(folder.path().join("checkpoints").to_str().unwrap()).unwrap();
        let config = ExecutionConfig { batch_records: 4, channel_batches: 1, ..checkpoints_every(5) };
        let graph = env.into_graph("scenario", 3, 128).unwrap();
        let mut runner = LocalRunner::new(graph, config, Some(storage)).unwrap();
        // A job that stands still is canceled, and so has not finished.
        let (cancel, (over, is_over)) = (runner.cancel_handle(), std::sync::mpsc::sync_channel::<()>(1));
        let watch = std::thread::spawn(move || {
            if is_over.recv_timeout(STUCK_AFTER).is_err() {
                cancel.cancel();
            }
        });
        assert_eq!(runner.run(|_| ()).unwrap(), JobOutcome::Finished);
        over.send(()).unwrap();
        watch.join().unwrap();
        let database = Connection::open(&database).unwrap();
        let number = |sql: &str| -> i64 { database.query_row(sql, [], |row| row.get(0)).unwrap() };
        let lines = (short + 4_000).cast_signed();
        assert_eq!(number("SELECT count(*) FROM line_log"), lines);
        assert_eq!(number("SELECT count(DISTINCT id) FROM line_log"), lines);
    }
}

#[test]
fn field_case_73_a_bounded_read_ends_even_with_batches_of_one() {
    let config = ExecutionConfig { batch_records: 1, channel_batches: 1, ..checkpoints_every(20) };
    run_whole(2, 3, 500, config);
}

#[test]
fn field_case_70_state_comes_from_the_checkpoint_and_sums_are_right_after_a_cancel_and_a_rescale() {
    let folder = tempfile::tempdir().unwrap();
    let (input, database) = (folder.path().join("input"), folder.path().join("out.sqlite"));
    write_lines(&input, 4, 60_000);
    let storage = CheckpointStorage::open(folder.path().join("checkpoints").to_str().unwrap()).unwrap();
    let again = |parallelism, until| {
        run(job(&input, &database), parallelism, checkpoints_every(10), Some(storage.clone()), until).unwrap()
    };
    for parallelism in [1, 4, 3] {
        if again(parallelism, Until::Checkpoints(2)) == JobOutcome::Finished {
            return check(&database, 60_000);
        }
    }
    assert_eq!(again(2, Until::End), JobOutcome::Finished);
    check(&database, 60_000);
}
