//! A user function that fails, panics, blocks or explodes, and a sink that hangs: each has a defined outcome.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, OnceLock};
use std::time::Duration;

use tidegate::connectors::blackhole::BlackholeSink;
use tidegate::engine::checkpoint::{CheckpointConfig, CheckpointMode};
use tidegate::engine::error::EngineError;
use tidegate::engine::execution::{CancelHandle, ExecutionConfig, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::engine::operator::process_function::ProcessFunction;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Until, checkpoints_every, run};

fn without_checkpoints(restart: RestartStrategy) -> ExecutionConfig {
    let checkpoints = CheckpointConfig { mode: CheckpointMode::None, ..CheckpointConfig::default() };
    ExecutionConfig { checkpoints, restart, threads: Some(2), ..ExecutionConfig::default() }
}

fn numbers(count: u64) -> Datagen<u64, impl Fn(u64) -> u64 + Clone + Send + 'static> {
    Datagen::new(|index: u64| index).bounded(count)
}

#[test]
fn a_panic_fails_the_subtask_with_the_operators_name_and_is_restarted_as_the_strategy_says() {
    for parallelism in [1, 3] {
        let (env, sink) = (StreamEnvironment::new(), CollectSink::<u64>::new());
        let panics = env.source("numbers", numbers(1_000)).map(|n: u64| {
            assert!(n != 500, "five hundred");
            n
        });
        let _ = panics.name("careful").sink("out", sink);
        let strategy = RestartStrategy::FixedDelay { attempts: 2, delay_ms: 1 };
        let error = run(env, parallelism, without_checkpoints(strategy), None, Until::End).unwrap_err();
        let EngineError::JobFailed { attempts, cause, .. } = error else { panic!("{error}") };
        assert_eq!(attempts, 3);
        assert!(cause.contains("\"careful\"") && cause.contains("five hundred"), "{cause}");
    }
}

#[test]
fn an_error_fails_the_subtask_with_the_operators_name() {
    let env = StreamEnvironment::new();
    let out = env.source("numbers", numbers(10)).key_by(|n: &u64| *n).process(
        "strict",
        value::<u64>("seen"),
        |n: u64, _seen, _ctx, _out: &mut Output<u64>| match n {
            7 => Err(JobError::msg("seven is not allowed")),
            _ => Ok(()),
        },
    );
    let _ = out.sink("out", CollectSink::new());
    let error =
        run(env, 2, without_checkpoints(RestartStrategy::None), None, Until::End).unwrap_err().to_string();
    assert!(error.contains("\"strict\"") && error.contains("seven is not allowed"), "{error}");
}

#[test]
fn one_record_that_becomes_ten_million_comes_out_whole() {
    let env = StreamEnvironment::new();
    let sink = BlackholeSink::<u64>::new();
    let many = env.source("numbers", numbers(1)).flat_map(|_| 0..10_000_000u64);
    let _ = many.filter(|n: &u64| n.is_multiple_of(5)).sink("out", sink.clone());
    let outcome = run(env, 1, without_checkpoints(RestartStrategy::None), None, Until::End).unwrap();
    assert_eq!((outcome, sink.records()), (JobOutcome::Finished, 2_000_000));
}

/// Lets user functions wait until a test opens it.
#[derive(Clone, Default)]
struct Door(Arc<(Mutex<bool>, Condvar)>);

impl Door {
    fn wait(&self) {
        let (open, changed) = &*self.0;
        let mut open = open.lock().unwrap();
        while !*open {
            open = changed.wait(open).unwrap();
        }
    }

    fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
}

#[test]
fn a_function_declared_as_blocking_holds_nobody_else_up() {
    let (env, door) = (StreamEnvironment::new(), Door::default());
    let (slow_sink, fast_sink) = (CollectSink::<u64>::new(), BlackholeSink::<u64>::new());
    let source = env.source("numbers", numbers(50_000));
    let waits = door.clone();
    let first = Arc::new(AtomicBool::new(true));
    let slow = source.filter(|n: &u64| n.is_multiple_of(10_000)).map(move |n: u64| {
        if first.swap(false, Ordering::Relaxed) {
            waits.wait();
        }
        n
    });
    let _ = slow.blocking().sink("slow", slow_sink.clone());
    let _ = source.sink("fast", fast_sink.clone());
    let graph = env.into_graph("scenario", 1, 128).unwrap();
    let config = ExecutionConfig { threads: Some(1), ..without_checkpoints(RestartStrategy::None) };
    let mut runner = LocalRunner::new(graph, config, None).unwrap();
    // Everybody else is through while the blocking function still waits: then the door is opened.
    let seen = fast_sink.clone();
    let opener = std::thread::spawn(move || {
        let polls = (0..60_000).take_while(|_| seen.records() < 50_000);
        polls.for_each(|_| std::thread::park_timeout(Duration::from_millis(1)));
        door.open();
        seen.records()
    });
    let outcome = runner.run(|_| ());
    assert_eq!(opener.join().unwrap(), 50_000, "the fast sink waited for the blocking function");
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    assert_eq!((slow_sink.records().len(), fast_sink.records()), (5, 50_000));
}

#[test]
fn a_job_whose_function_never_returns_is_given_up_some_time_after_cancel() {
    let (env, door) = (StreamEnvironment::new(), Door::default());
    let cancel: Arc<OnceLock<CancelHandle>> = Arc::default();
    let (waits, cancels) = (door.clone(), Arc::clone(&cancel));
    let stuck = env.source("numbers", numbers(10)).map(move |n: u64| {
        // Canceled from inside the function that then never returns.
        cancels.get().unwrap().cancel();
        waits.wait();
        n
    });
    let _ = stuck.name("stuck").sink("out", CollectSink::new());
    let graph = env.into_graph("scenario", 1, 128).unwrap();
    let config =
        ExecutionConfig { cancellation_timeout_ms: 100, ..without_checkpoints(RestartStrategy::None) };
    let mut runner = LocalRunner::new(graph, config, None).unwrap();
    cancel.set(runner.cancel_handle()).unwrap();
    let error = runner.run(|_| ()).unwrap_err();
    door.open();
    let text = error.to_string();
    assert!(matches!(error, EngineError::CancelTimedOut { .. }), "{text}");
    assert!(text.contains("stuck"), "{text}");
}

/// A sink that blocks its thread of the I/O side until a test opens its door.
#[derive(Clone)]
struct BlockingSink {
    door: Door,
    entered: Arc<AtomicBool>,
}

impl Sink for BlockingSink {
    type Record = u64;
    type Writer = Self;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(self.clone()))
    }
}

impl Writer for BlockingSink {
    type Record = u64;

    async fn write(&mut self, _batch: Batch<u64>) -> Result<(), ConnectorError> {
        self.entered.store(true, Ordering::Release);
        self.door.wait();
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}

#[test]
fn a_failed_job_whose_sinks_block_the_io_side_ends_in_time_and_names_them() {
    let delay = RestartStrategy::FixedDelay { attempts: 5, delay_ms: 1 };
    for (parallelism, strategy) in [(1, RestartStrategy::None), (4, RestartStrategy::None), (4, delay)] {
        let (env, door, entered) =
            (StreamEnvironment::new(), Door::default(), Arc::new(AtomicBool::new(false)));
        let source = env.source("numbers", numbers(1_000_000).rate_per_second(5_000));
        let _ = source.sink("blocks", BlockingSink { door: door.clone(), entered: Arc::clone(&entered) });
        // Fails as soon as a sink holds a thread.
        let fails = source.map(move |n: u64| {
            assert!(!entered.load(Ordering::Acquire), "a sink is in");
            n
        });
        let _ = fails.sink("out", BlackholeSink::new());
        let graph = env.into_graph("scenario", parallelism, 128).unwrap();
        let config = ExecutionConfig { cancellation_timeout_ms: 200, ..without_checkpoints(strategy) };
        let mut runner = LocalRunner::new(graph, config, None).unwrap();
        let presence = Arc::clone(runner.execution().presence());
        let error = runner.run(|_| ()).unwrap_err();
        assert!(!presence.polling().is_empty());
        door.open();
        let text = error.to_string();
        assert!(matches!(error, EngineError::IoStuck { blocks_poll: true, .. }), "{text}");
        assert!(
            text.contains("blocks") && text.contains("(plain sink)") && text.contains("a sink is in"),
            "{text}"
        );
    }
}

#[test]
fn a_function_that_never_returns_after_a_failed_attempt_is_named_with_its_thread() {
    let (env, door, inside) = (StreamEnvironment::new(), Door::default(), Arc::new(AtomicBool::new(false)));
    let (waits, entered) = (door.clone(), Arc::clone(&inside));
    let stuck = env.source("numbers", numbers(10)).map(move |n: u64| {
        entered.store(true, Ordering::Release);
        waits.wait();
        n
    });
    let _ = stuck.name("stuck").blocking().sink("out", CollectSink::new());
    // Another one fails meanwhile: that ends the attempt.
    let others = env.source("others", Datagen::new(|index: u64| index).rate_per_second(10_000));
    let fails = others.map(move |n: u64| {
        assert!(!inside.load(Ordering::Acquire), "the other one is inside");
        n
    });
    let _ = fails.sink("other", BlackholeSink::new());
    let config =
        ExecutionConfig { cancellation_timeout_ms: 200, ..without_checkpoints(RestartStrategy::None) };
    let error = run(env, 2, config, None, Until::End).unwrap_err();
    door.open();
    let text = error.to_string();
    assert!(matches!(error, EngineError::SlotStuck { .. }), "{text}");
    assert!(text.contains("stuck") && text.contains("thread tidegate-slot-"), "{text}");
}

#[test]
fn a_panic_in_the_closure_of_key_by_is_not_told_of_its_neighbours() {
    let env = StreamEnvironment::new();
    let source = env.source("numbers", numbers(1_000)).map(|n: u64| n);
    let _ = source.sink("beside", CollectSink::new());
    let keyed = source.key_by(|n: &u64| {
        assert!(*n != 500, "no key");
        *n
    });
    let counts =
        keyed.process("totals", value::<u64>("seen"), |_: u64, _seen, _ctx, _out: &mut Output<u64>| Ok(()));
    let _ = counts.sink("out", CollectSink::new());
    let error =
        run(env, 2, without_checkpoints(RestartStrategy::None), None, Until::End).unwrap_err().to_string();
    assert!(error.contains("key_by in front of totals") && error.contains("no key"), "{error}");
}

/// Counts, and cannot take a count over.
#[derive(Clone, Default)]
struct Forgetful(u64);

impl ProcessFunction<u64, u64> for Forgetful {
    type State = u64;

    fn process(&mut self, n: u64, _at: Option<i64>, out: &mut Output<u64>) -> Result<(), JobError> {
        self.0 += 1;
        out.emit(n);
        Ok(())
    }

    fn snapshot(&self) -> Vec<u64> {
        vec![self.0]
    }

    fn restore(&mut self, state: Vec<u64>) {
        assert!(state.is_empty(), "a count is there already");
    }
}

#[test]
fn a_panic_while_state_is_restored_names_the_subtask() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    let job = || {
        let env = StreamEnvironment::new();
        let endless = env.source("numbers", Datagen::new(|index: u64| index).rate_per_second(10_000));
        let _ = endless.process_function("forgetful", Forgetful::default()).sink("out", BlackholeSink::new());
        env
    };
    let config = ExecutionConfig { restart: RestartStrategy::None, ..checkpoints_every(10) };
    let first = run(job(), 1, config.clone(), Some(storage.clone()), Until::Checkpoints(2));
    assert_eq!(first.unwrap(), JobOutcome::Canceled);
    let error = run(job(), 1, config, Some(storage), Until::End).unwrap_err().to_string();
    assert!(error.contains("forgetful") && error.contains("a count is there already"), "{error}");
}

#[test]
fn cancel_is_quick_at_any_moment() {
    for at in [0, 1, 5, 50] {
        let env = StreamEnvironment::new();
        let endless = env.source("numbers", Datagen::new(|index: u64| index).rate_per_second(100_000));
        let _ = endless.rebalance().sink("out", BlackholeSink::new());
        let graph = env.into_graph("scenario", 3, 128).unwrap();
        let mut runner = LocalRunner::new(graph, without_checkpoints(RestartStrategy::None), None).unwrap();
        let cancel = runner.cancel_handle();
        let mut notices = 0;
        if at == 0 {
            cancel.cancel();
        }
        let outcome = runner.run(|_| {
            notices += 1;
            if notices >= at {
                cancel.cancel();
            }
        });
        assert_eq!(outcome.unwrap(), JobOutcome::Canceled);
    }
}
