//! An operator that is put in front of others: it never takes their state, and they never take its own.

use std::sync::Arc;

use object_store::memory::InMemory;
use tidegate::engine::execution::JobOutcome;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Until, checkpoints_every, run};

const KEYS: u64 = 10;

/// What stands in front of the operator that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InFront {
    Nothing,
    /// An operator without state, and without uid.
    Map,
    /// An operator with the same state, of this uid.
    Counts(&'static str),
}

/// A number, the count of its key in front (0 without an operator there), and the count of its key.
type Row = (u64, u64, u64);

/// Counts numbers by key, in the order in which they come: number `n` is the `n / KEYS + 1`st of its key.
fn job(in_front: InFront) -> (StreamEnvironment, CollectSink<Row>) {
    let (env, sink) = (StreamEnvironment::new(), CollectSink::new());
    let numbers = env.source("numbers", Datagen::new(|n| n).rate_per_second(20_000)).parallelism(1);
    let numbers = numbers.map(|n| (n, 0)).parallelism(1);
    let numbers = match in_front {
        InFront::Nothing => numbers,
        InFront::Map => numbers.map(|row| row).parallelism(1),
        InFront::Counts(uid) => numbers.key_by(|(n, _)| n % KEYS).process(
            uid,
            value::<u64>("count"),
            |(n, _): (u64, u64), count, _ctx, out: &mut Output<(u64, u64)>| {
                out.emit((n, *count.update(|count| *count += 1)?));
                Ok(())
            },
        ),
    };
    let counted = numbers.key_by(|(n, _)| n % KEYS).process(
        "counts",
        value::<u64>("count"),
        |(n, before): (u64, u64), count, _ctx, out: &mut Output<Row>| {
            out.emit((n, before, *count.update(|count| *count += 1)?));
            Ok(())
        },
    );
    let _ = counted.sink("out", sink.clone());
    (env, sink)
}

/// Runs a job until it has put something out and completed checkpoints.
fn rows(in_front: InFront, storage: &CheckpointStorage) -> Vec<Row> {
    for _ in 0..200 {
        let (env, sink) = job(in_front);
        let outcome = run(env, 3, checkpoints_every(10), Some(storage.clone()), Until::Checkpoints(3));
        assert_eq!(outcome.unwrap(), JobOutcome::Canceled);
        let rows = sink.records();
        if rows.len() > 100 {
            return rows;
        }
    }
    panic!("no run came to put out more than 100 rows");
}

#[test]
fn field_case_67_an_operator_put_in_front_takes_nobodys_state_and_nobody_takes_its_own() {
    for in_front in [InFront::Map, InFront::Counts("in_front")] {
        let storage = CheckpointStorage::over(Arc::new(InMemory::new()), "memory://scenario");
        rows(InFront::Nothing, &storage);
        let rows = rows(in_front, &storage);
        let first = rows.iter().map(|(n, ..)| *n).min().unwrap();
        assert!(first >= KEYS, "the source has gone on from a checkpoint");
        for (n, before, count) in rows {
            assert_eq!(count, n / KEYS + 1, "{in_front:?}: number {n}: its operator kept its state");
            if in_front != InFront::Map && n < first + KEYS {
                assert_eq!(before, 1, "number {n}: the new operator began with nothing");
            }
        }
    }
}

#[test]
fn field_case_67_an_operator_with_state_and_without_a_uid_is_refused_at_submit() {
    // Without an argument for the uid it does not compile.
    let (env, _) = job(InFront::Counts(""));
    let text = env.into_graph("scenario", 1, 128).unwrap_err().to_string();
    assert!(text.contains("operator 3") && text.contains("uid") && text.contains("help"), "{text}");
}
