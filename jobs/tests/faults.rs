//! Exactly once under `kill -9` on either side of each durable step: run, die there, run again, audit.
//!
//! Owns: which points are struck, and when. Every point must be struck: a run that lives fails its test.
//! Does not own: the audit (`orders verify`).
//! Runs on: the test thread; each run is a process.

mod scenario;

use scenario::Scenario;

/// Dies at the `nth` pass through each of the points, at parallelism 1 and 3, and goes on.
fn survives(points: &[(&str, u32)]) {
    for (point, nth) in points {
        for parallelism in [1, 3] {
            let scenario = Scenario::with_orders();
            scenario.run_and_die(parallelism, point, *nth);
            scenario.run_and_verify(parallelism);
        }
    }
}

/// Dies in the recovery from an earlier death, at each of the points, and goes on.
fn survives_in_recovery_from((first, nth): (&str, u32), points: &[&str]) {
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
fn a_death_at_the_commit_point_neither_loses_nor_doubles() {
    survives(&[("commit_log.checkpoint.before", 2), ("commit_log.checkpoint.after", 2)]);
}

#[test]
fn a_death_around_a_prepare_neither_loses_nor_doubles() {
    survives(&[("sink.prepare.before", 6), ("sink.prepare.after", 6)]);
}

#[test]
fn a_death_around_a_commit_neither_loses_nor_doubles() {
    survives(&[("sink.commit.before", 6), ("sink.commit.after", 6)]);
}

#[test]
fn a_death_around_a_write_or_a_rollback_neither_loses_nor_doubles() {
    survives(&[("sink.write.before", 40), ("sink.write.after", 40)]);
    // Right after a prepare its checkpoint is not complete, so that nothing lists the transaction.
    survives_in_recovery_from(("sink.prepare.after", 6), &["sink.rollback.before", "sink.rollback.after"]);
}

#[test]
fn a_death_around_a_snapshot_neither_loses_nor_doubles() {
    survives(&[("snapshot.freeze.before", 5), ("snapshot.freeze.after", 5)]);
    survives(&[("snapshot.upload.before", 2), ("snapshot.upload.after", 2)]);
    survives(&[("source.snapshot.before", 3), ("source.snapshot.after", 3)]);
}

#[test]
fn a_death_around_a_barrier_or_an_acknowledgement_neither_loses_nor_doubles() {
    survives(&[("barrier.forward.before", 5), ("barrier.forward.after", 5)]);
    survives(&[("ack.send.before", 8), ("ack.send.after", 8)]);
}

#[test]
fn a_death_around_a_claim_a_clean_or_the_end_neither_loses_nor_doubles() {
    survives(&[("commit_log.claim.before", 1), ("commit_log.claim.after", 1)]);
    survives(&[("cleaner.entry.before", 1), ("cleaner.entry.after", 1)]);
    survives(&[("cleaner.files.before", 1), ("cleaner.files.after", 1)]);
    survives(&[("commit_log.finished.before", 1)]);
}

#[test]
fn a_death_in_recovery_neither_loses_nor_doubles() {
    // Right after the entry its transactions are listed and not committed.
    let at_the_commit_point = ("commit_log.checkpoint.after", 3);
    survives_in_recovery_from(at_the_commit_point, &["restore.read.before", "restore.read.after"]);
    survives_in_recovery_from(at_the_commit_point, &["sink.recover.before", "sink.recover.after"]);
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
fn a_death_behind_the_last_entry_leaves_a_finished_job() {
    let scenario = Scenario::with_orders();
    scenario.run_and_die(3, "commit_log.finished.after", 1);
    scenario.verify();
    let again = scenario.run(3, &[]).output().unwrap();
    assert_eq!(again.status.code(), Some(1));
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
