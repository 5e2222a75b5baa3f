//! A checkpoint needs nothing of another one, and costs what its own state costs.

use std::collections::BTreeMap;
use std::sync::Arc;

use object_store::memory::InMemory;
use tidegate::engine::checkpoint::commit_log::{Listing, entry_in};
use tidegate::engine::execution::control::CheckpointAnswer;
use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, JobOutcome, LocalRunner, RestoreFrom};
use tidegate::engine::ids::CheckpointId;
use tidegate::engine::jobmanager::MasterNotice;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Until, checkpoints_every, run};

const NUMBERS: u64 = 12_000;
const KEYS: u64 = 100;
/// Counts begin here, so that they take as many bytes at the end as at the beginning.
const COUNT_FROM: u64 = 1 << 40;

/// Counts numbers by their last two digits.
fn counts() -> (StreamEnvironment, CollectSink<(u64, u64)>) {
    let (env, sink) = (StreamEnvironment::new(), CollectSink::new());
    let numbers = Datagen::new(|n| n).bounded(NUMBERS).rate_per_second(20_000);
    let counted = env.source("numbers", numbers).key_by(|n| n % KEYS).process(
        "counts",
        value::<u64>("count"),
        |n: u64, count, _ctx, out: &mut Output<(u64, u64)>| {
            let count = *count.update(|count| *count = (*count).max(COUNT_FROM) + 1)?;
            out.emit((n % KEYS, count - COUNT_FROM));
            Ok(())
        },
    );
    let _ = counted.sink("out", sink.clone());
    (env, sink)
}

fn memory() -> CheckpointStorage {
    CheckpointStorage::over(Arc::new(InMemory::new()), "memory://scenario")
}

/// What the log says.
fn listing(storage: &CheckpointStorage) -> Listing {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let mut entries = Vec::new();
        for path in storage.list("log").await.unwrap() {
            let bytes = storage.get(&path).await.unwrap().unwrap();
            entries.extend(entry_in(&path, &bytes));
        }
        entries.into_iter().collect()
    })
}

/// Deletes every state file that the newest checkpoint does not name. How many there were.
fn delete_what_the_newest_does_not_name(storage: &CheckpointStorage) -> usize {
    let listing = listing(storage);
    let newest = listing.checkpoints().last().unwrap();
    let named: Vec<String> = newest.manifest.files().map(str::to_owned).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let all = storage.list("").await.unwrap();
        let others: Vec<_> =
            all.into_iter().filter(|path| !path.starts_with("log/") && !named.contains(path)).collect();
        for path in &others {
            storage.delete(path).await.unwrap();
        }
        others.len()
    })
}

#[test]
fn field_case_54_a_checkpoint_taken_after_a_rewind_needs_nothing_of_the_one_that_was_restored() {
    for parallelism in [1, 3] {
        let storage = memory();
        let (env, _) = counts();
        let first =
            run(env, parallelism, checkpoints_every(20), Some(storage.clone()), Until::Checkpoints(4));
        assert_eq!(first.unwrap(), JobOutcome::Canceled);
        let older = listing(&storage).restorable().last().map(|c| c.id()).unwrap();

        let (env, _) = counts();
        let rewind = ExecutionConfig { restore: RestoreFrom::Rewind(older), ..checkpoints_every(20) };
        let second = run(env, parallelism, rewind, Some(storage.clone()), Until::Checkpoints(1));
        assert_eq!(second.unwrap(), JobOutcome::Canceled);
        assert!(delete_what_the_newest_does_not_name(&storage) > 0, "older files were there");

        let (env, sink) = counts();
        let third = run(env, parallelism, checkpoints_every(20), Some(storage), Until::End);
        assert_eq!(third.unwrap(), JobOutcome::Finished);
        let mut last = BTreeMap::new();
        sink.records().into_iter().for_each(|(key, count)| {
            last.insert(key, count);
        });
        assert_eq!(last.len() as u64, KEYS);
        assert!(last.values().all(|count| *count == NUMBERS / KEYS), "{last:?}");
    }
}

#[test]
fn field_case_57_a_checkpoint_that_somebody_asks_for_between_others_makes_none_of_them_larger() {
    let storage = memory();
    let (env, _) = counts();
    let graph = env.into_graph("scenario", 2, 128).unwrap();
    let mut runner = LocalRunner::new(graph, checkpoints_every(40), Some(storage)).unwrap();
    let control = runner.control_handle();
    let mut asking = None;
    let mut sizes: BTreeMap<CheckpointId, u64> = BTreeMap::new();
    let outcome = runner.run(|notice| {
        let ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) = notice else { return };
        sizes.insert(stats.id, stats.size_bytes);
        // The first may have been taken before every key had come.
        if sizes.len() == 3 {
            let control = control.clone();
            asking = Some(std::thread::spawn(move || control.trigger_checkpoint()));
        }
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    let answer = asking.unwrap().join().unwrap();
    let Ok(CheckpointAnswer::Ended(asked)) = answer else { panic!("{answer:?}") };
    let size = |id: CheckpointId| sizes[&id];
    let (before, after) = (CheckpointId(asked.stats.id.0 - 1), CheckpointId(asked.stats.id.0 + 1));
    let full = size(before);
    for id in [asked.stats.id, after] {
        let odd = size(id).abs_diff(full) * 10 > full;
        assert!(!odd, "checkpoint {id} has {} bytes, the one before {full}", size(id));
    }
}
