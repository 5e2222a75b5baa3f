//! Exactly once under `kill -9` on either side of each durable step: run, die there, run again, audit.
//!
//! Owns: which points are struck, and when. Every point must be struck: a run that lives fails its test.
//! Does not own: the audit (`orders verify`).
//! Runs on: the test thread; each run is a process.

mod scenario;

use scenario::Scenario;
use tidegate::state::fault::points;

/// A fault point, and which pass through it strikes.
type Strike = (&'static str, u32);

const COMMIT_POINT: &[Strike] = &[("commit_log.checkpoint.before", 2), ("commit_log.checkpoint.after", 2)];
const STORAGE: &[Strike] = &[
    ("storage.put.before", 2),
    ("storage.put.after", 2),
    ("storage.create.before", 5),
    ("storage.create.after", 5),
];
const PREPARE: &[Strike] = &[
    ("sink.write.before", 40),
    ("sink.write.after", 40),
    ("sink.prepare.before", 6),
    ("sink.prepare.after", 6),
];
const COMMIT: &[Strike] = &[("sink.commit.before", 6), ("sink.commit.after", 6)];
const SNAPSHOT: &[Strike] = &[
    ("snapshot.freeze.before", 5),
    ("snapshot.freeze.after", 5),
    ("snapshot.upload.before", 2),
    ("snapshot.upload.after", 2),
    ("source.snapshot.before", 3),
    ("source.snapshot.after", 3),
];
const BARRIER: &[Strike] = &[
    ("barrier.forward.before", 5),
    ("barrier.forward.after", 5),
    ("ack.send.before", 8),
    ("ack.send.after", 8),
];
const CLAIM_AND_END: &[Strike] =
    &[("commit_log.claim.before", 1), ("commit_log.claim.after", 1), ("commit_log.finished.before", 1)];
const CLEANER: &[Strike] = &[
    ("cleaner.entry.before", 1),
    ("cleaner.entry.after", 1),
    ("cleaner.files.before", 1),
    ("cleaner.files.after", 1),
];
const RECOVERY: &[&str] =
    &["restore.read.before", "restore.read.after", "sink.recover.before", "sink.recover.after"];
const ROLLBACK: &[&str] = &["sink.rollback.before", "sink.rollback.after"];
/// Struck by tests of their own below.
const ALONE: &[&str] = &["sink.commit.between", "commit_log.finished.after", "sqlite.insert.between"];
/// Inside the SQL transactions of the SQLite sink.
const SQLITE: &[Strike] = &[("sqlite.merge.between", 6)];

/// Dies at each of the points, at parallelism 1 and 3, and goes on.
fn survives(strikes: &[Strike]) {
    for (point, nth) in strikes {
        for parallelism in [1, 3] {
            let scenario = Scenario::with_orders();
            scenario.run_and_die(parallelism, point, *nth);
            scenario.run_and_verify(parallelism);
        }
    }
}

/// Dies in the recovery from an earlier death, at each of the points, and goes on.
fn survives_in_recovery_from((first, nth): Strike, points: &[&str]) {
    for point in points {
        for parallelism in [1, 3] {
            let scenario = Scenario::with_orders();
            scenario.run_and_die(parallelism, first, nth);
            scenario.run_and_die(parallelism, point, 1);
            scenario.run_and_verify(parallelism);
        }
    }
}

#[test]
fn every_fault_point_is_struck() {
    let strikes =
        [COMMIT_POINT, STORAGE, PREPARE, COMMIT, SNAPSHOT, BARRIER, CLAIM_AND_END, CLEANER, SQLITE].concat();
    let mut struck: Vec<&str> = strikes.iter().map(|(point, _)| *point).collect();
    struck.extend([RECOVERY, ROLLBACK, ALONE].concat());
    struck.sort_unstable();
    // Those of other sinks are struck by their own tests: this job writes to SQLite.
    let is_elsewhere = |point: &str| point.starts_with("file_sink.") || point.starts_with("mysql.");
    let mut listed: Vec<&str> = points::all().filter(|point| !is_elsewhere(point)).collect();
    listed.sort_unstable();
    assert_eq!(struck, listed);
}

#[test]
fn a_death_at_the_commit_point_neither_loses_nor_doubles() {
    survives(COMMIT_POINT);
}

#[test]
fn a_death_around_a_put_neither_loses_nor_doubles() {
    survives(STORAGE);
}

#[test]
fn a_death_around_a_write_or_a_prepare_neither_loses_nor_doubles() {
    survives(PREPARE);
}

#[test]
fn a_death_around_a_commit_neither_loses_nor_doubles() {
    survives(COMMIT);
}

#[test]
fn a_death_around_a_snapshot_neither_loses_nor_doubles() {
    survives(SNAPSHOT);
}

#[test]
fn a_death_around_a_barrier_or_an_acknowledgement_neither_loses_nor_doubles() {
    survives(BARRIER);
}

#[test]
fn a_death_around_the_claim_or_before_the_last_entry_neither_loses_nor_doubles() {
    survives(CLAIM_AND_END);
}

#[test]
fn a_death_while_old_checkpoints_are_deleted_neither_loses_nor_doubles() {
    survives(CLEANER);
}

#[test]
fn a_death_in_recovery_neither_loses_nor_doubles() {
    // Right after the entry its transactions are listed and not committed.
    survives_in_recovery_from(("commit_log.checkpoint.after", 3), RECOVERY);
}

#[test]
fn a_death_around_a_rollback_neither_loses_nor_doubles() {
    // Right after a prepare its checkpoint is not complete, so that nothing lists the transaction.
    survives_in_recovery_from(("sink.prepare.after", 6), ROLLBACK);
}

#[test]
fn a_death_between_two_commits_of_one_sink_neither_loses_nor_doubles() {
    // Three subtasks have each a transaction that the checkpoint lists; one subtask has to commit all of them.
    let scenario = Scenario::with_orders();
    scenario.run_and_die(3, "commit_log.checkpoint.after", 3);
    scenario.run_and_die(1, "sink.commit.between", 1);
    scenario.run_and_verify(1);
}

#[test]
fn a_death_inside_a_merge_neither_loses_nor_doubles() {
    survives(SQLITE);
}

#[test]
fn a_death_in_the_middle_of_a_batch_neither_loses_nor_doubles() {
    // Fast enough for batches of more than one statement.
    for parallelism in [1, 3] {
        let scenario = Scenario::with_orders();
        scenario.run_and_die_at(20_000, parallelism, "sqlite.insert.between", 3);
        scenario.run_and_verify(parallelism);
    }
}

#[test]
fn a_death_behind_the_last_entry_leaves_a_finished_job() {
    let scenario = Scenario::with_orders();
    scenario.run_and_die(3, "commit_log.finished.after", 1);
    scenario.verify();
    let again = scenario.run(3, &[]).output().unwrap();
    assert_eq!(again.status.code(), Some(5));
    assert!(scenario::stderr(&again).contains("has finished"), "{}", scenario::stderr(&again));
}

#[test]
fn another_parallelism_after_a_death_neither_loses_nor_doubles() {
    for (before, after) in [(3, 1), (1, 3), (2, 4)] {
        let scenario = Scenario::with_orders();
        scenario.run_and_die(before, "commit_log.checkpoint.after", 4);
        let events = scenario.run_and_verify(after);
        assert_eq!((events[0]["event"].as_str(), events[0]["restored"].as_u64()), (Some("started"), Some(4)));
    }
}
