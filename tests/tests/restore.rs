//! A checkpoint that does not fit the job is refused, before anything is claimed, with its place and a remedy; one that fits by
//! the rules of evolution is restored.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::sync::Arc;

use tidegate::engine::execution::{ExecutionConfig, JobOutcome};
use tidegate::prelude::*;
use tidegate::state::{CheckpointStorage, StateDeclaration};
use tidegate_tests::{Until, checkpoints_every, run};

fn memory() -> CheckpointStorage {
    CheckpointStorage::over(Arc::new(object_store::memory::InMemory::new()), "memory://scenario")
}

fn numbers() -> Datagen<u64, impl Fn(u64) -> u64 + Clone + Send + 'static> {
    Datagen::new(|index: u64| index).rate_per_second(20_000)
}

/// A job that keeps `states` per key and emits what `see` reads from them.
fn job<S>(
    uid: &str,
    states: S,
    see: fn(&mut S::Handles<'_>) -> Result<i64>,
) -> (StreamEnvironment, CollectSink<i64>)
where
    S: StateDeclaration<u64>,
{
    let (env, sink) = (StreamEnvironment::new(), CollectSink::new());
    let totals = env.source("numbers", numbers()).key_by(|n: &u64| n % 10);
    let out = totals.process(uid, states, move |_n, state, _ctx, out: &mut Output<i64>| {
        out.emit(see(state)?);
        Ok(())
    });
    let _ = out.sink("out", sink.clone());
    (env, sink)
}

#[derive(Clone, Debug, Default, StateType)]
#[state(version = 1)]
struct Small {
    orders: u64,
    amount_cents: i32,
}

mod later {
    use super::*;

    /// `amount_cents` has another type.
    #[derive(Clone, Debug, Default, StateType)]
    #[state(version = 1)]
    pub(super) struct Small {
        pub(super) orders: u64,
        pub(super) amount_cents: i64,
    }

    pub(super) mod optional {
        use super::*;

        /// A field was added that may be absent.
        #[derive(Clone, Debug, Default, StateType)]
        #[state(version = 1)]
        pub(in super::super) struct Small {
            pub(in super::super) orders: u64,
            pub(in super::super) amount_cents: i32,
            pub(in super::super) note: Option<String>,
        }
    }
}

/// Runs the first version until its checkpoint has counted every key: how many records a few milliseconds bring is not for a test
/// to know.
fn first_run(storage: &CheckpointStorage) {
    for _ in 0..200 {
        let (env, sink) = job("total", value::<Small>("totals"), |state| {
            Ok(state.update(|t| t.orders += 1).map(|t| t.orders as i64)?)
        });
        let outcome = run(env, 2, checkpoints_every(20), Some(storage.clone()), Until::Checkpoints(2));
        assert_eq!(outcome.unwrap(), JobOutcome::Canceled);
        let counts = sink.records();
        if counts.len() > 100 && counts.iter().all(|count| *count > 1) {
            return;
        }
    }
    panic!("no checkpoint came to hold a record of every key");
}

fn refusal(storage: &CheckpointStorage, env: StreamEnvironment, config: ExecutionConfig) -> String {
    let entries = |s: &CheckpointStorage| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(s.list("log")).unwrap()
    };
    let before = entries(storage);
    let refused = run(env, 2, config, Some(storage.clone()), Until::Checkpoints(1));
    assert_eq!(entries(storage), before, "a refusal writes no claim");
    tidegate::engine::error::chain_text(&refused.unwrap_err())
}

#[test]
fn field_case_69_another_type_is_refused_with_state_field_was_and_is() {
    let storage = memory();
    first_run(&storage);
    let (env, _) = job("total", value::<later::Small>("totals"), |state| {
        Ok(state.update(|t| t.amount_cents += 1).map(|t| t.orders as i64)?)
    });
    let text = refusal(&storage, env, checkpoints_every(20));
    for word in ["total", "totals", "amount_cents", "i32", "i64"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
}

#[test]
fn field_case_69_an_added_optional_field_is_restored_as_absent() {
    let storage = memory();
    first_run(&storage);
    let counts = (0..200).find_map(|_| {
        let (env, sink) = job("total", value::<later::optional::Small>("totals"), |state| {
            let total = state.update(|t| t.orders += 1)?;
            assert!(total.note.is_none() && total.amount_cents == 0);
            Ok(total.orders as i64)
        });
        run(env, 3, checkpoints_every(20), Some(storage.clone()), Until::Checkpoints(1)).unwrap();
        Some(sink.records()).filter(|counts| !counts.is_empty())
    });
    let least = counts.iter().flatten().min();
    assert!(least.is_some_and(|least| *least > 1), "the counts went on");
}

#[test]
fn a_missing_operator_is_refused_unless_its_state_may_be_dropped() {
    let storage = memory();
    first_run(&storage);
    let renamed = || {
        job("renamed", value::<Small>("totals"), |state| {
            Ok(state.update(|t| t.orders += 1).map(|t| t.orders as i64)?)
        })
        .0
    };
    let text = refusal(&storage, renamed(), checkpoints_every(20));
    assert!(text.contains("\"total\"") && text.contains("allow-non-restored-state"), "{text}");
    let allowed = ExecutionConfig { allow_non_restored_state: true, ..checkpoints_every(20) };
    run(renamed(), 2, allowed, Some(storage), Until::Checkpoints(1)).unwrap();
}

#[test]
fn a_renamed_state_is_refused_unless_it_may_be_dropped() {
    let storage = memory();
    first_run(&storage);
    let renamed = || {
        job("total", value::<Small>("totalz"), |state| {
            Ok(state.update(|t| t.orders += 1).map(|t| t.orders as i64)?)
        })
        .0
    };
    let text = refusal(&storage, renamed(), checkpoints_every(20));
    for word in ["\"total\"", "\"totals\"", "totalz", "allow-non-restored-state"] {
        assert!(text.contains(word), "{word} is missing in:\n{text}");
    }
    let allowed = ExecutionConfig { allow_non_restored_state: true, ..checkpoints_every(20) };
    run(renamed(), 2, allowed, Some(storage), Until::Checkpoints(1)).unwrap();
}

#[test]
fn a_folder_that_has_lost_its_log_is_refused() {
    let storage = memory();
    first_run(&storage);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        for path in storage.list("log").await.unwrap() {
            storage.delete(&path).await.unwrap();
        }
    });
    let (env, _) = job("total", value::<Small>("totals"), |state| Ok(state.update(|_| ()).map(|_| 0)?));
    let text = refusal(&storage, env, checkpoints_every(20));
    assert!(text.contains("memory://scenario") && text.contains("no log"), "{text}");
}

#[test]
fn field_case_65_another_max_parallelism_is_refused() {
    let storage = memory();
    first_run(&storage);
    let (env, _) = job("total", value::<Small>("totals"), |state| Ok(state.update(|_| ()).map(|_| 0)?));
    let graph = env.into_graph("scenario", 2, 256).unwrap();
    let mut runner =
        tidegate::engine::execution::LocalRunner::new(graph, checkpoints_every(20), Some(storage)).unwrap();
    let text = runner.run(|_| ()).unwrap_err().to_string();
    assert!(text.contains("128") && text.contains("256"), "{text}");
}

#[test]
fn a_folder_of_another_job_is_refused_with_both_names() {
    let storage = memory();
    first_run(&storage);
    let (env, _) = job("total", value::<Small>("totals"), |state| Ok(state.update(|_| ()).map(|_| 0)?));
    let graph = env.into_graph("another", 2, 128).unwrap();
    let mut runner =
        tidegate::engine::execution::LocalRunner::new(graph, checkpoints_every(20), Some(storage)).unwrap();
    let text = runner.run(|_| ()).unwrap_err().to_string();
    assert!(text.contains("scenario") && text.contains("another"), "{text}");
}

#[test]
fn a_store_that_does_not_refuse_a_second_create_is_refused() {
    use tidegate::state::storage::{FaultAction, FaultyStore, StoreFaults, StoreOp};

    /// Says "done" to every create, whether or not the name is taken.
    #[derive(Debug)]
    struct Agreeable;
    impl StoreFaults for Agreeable {
        fn after(
            &self,
            op: StoreOp,
            _path: &object_store::path::Path,
            _succeeded: bool,
        ) -> futures::future::BoxFuture<'static, FaultAction> {
            let _ = op;
            Box::pin(async { FaultAction::Proceed })
        }
        fn before(
            &self,
            op: StoreOp,
            _path: &object_store::path::Path,
        ) -> futures::future::BoxFuture<'static, FaultAction> {
            let action = if op == StoreOp::Create { FaultAction::SayDone } else { FaultAction::Proceed };
            Box::pin(async move { action })
        }
    }
    let store = FaultyStore::new(Arc::new(object_store::memory::InMemory::new()), Arc::new(Agreeable));
    let storage = CheckpointStorage::over(Arc::new(store), "agreeable://store");
    let (env, _) = job("total", value::<Small>("totals"), |state| Ok(state.update(|_| ()).map(|_| 0)?));
    let text = run(env, 1, checkpoints_every(20), Some(storage), Until::End).unwrap_err().to_string();
    assert!(text.contains("agreeable://store"), "{text}");
    assert!(text.contains("second") || text.contains("refuse"), "{text}");
}

#[test]
fn a_missing_uid_and_two_equal_ones_are_refused_at_submit() {
    let env = StreamEnvironment::new();
    let _ = env.source("", numbers()).sink("out", CollectSink::new());
    let text = env.into_graph("scenario", 1, 128).unwrap_err().to_string();
    assert!(text.contains("uid") && text.contains("help"), "{text}");
    let env = StreamEnvironment::new();
    let _ = env.source("same", numbers()).sink("same", CollectSink::new());
    assert!(env.into_graph("scenario", 1, 128).unwrap_err().to_string().contains("\"same\""));
}

#[test]
fn field_case_65_parallelism_over_max_parallelism_is_refused_at_submit() {
    let env = StreamEnvironment::new();
    let _ = env.source("numbers", numbers()).sink("out", CollectSink::new());
    let text = env.into_graph("scenario", 200, 128).unwrap_err().to_string();
    assert!(text.contains("200") && text.contains("128"), "{text}");
}
