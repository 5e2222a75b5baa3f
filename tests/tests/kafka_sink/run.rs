//! Whole jobs in this process, with what they were restarted for.
//!
//! Owns: the run, a strike that comes once. Does not own: the job. Runs on: the test's thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, LocalRunner};
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Ended, checkpoints_every};

use crate::topic::Topic;

/// A checkpoint every 100 ms, and restarts whose pauses double, as by default: brokers that are away use up no number of attempts.
pub(crate) fn patient() -> ExecutionConfig {
    let restart =
        RestartStrategy::ExponentialDelay { initial_ms: 100, max_ms: 2_000, reset_after_ms: 600_000 };
    ExecutionConfig { restart, ..checkpoints_every(100) }
}

/// Runs a job, named as the topic, to its end.
pub(crate) fn run_job(
    topic: &Topic,
    env: StreamEnvironment,
    parallelism: u32,
    config: ExecutionConfig,
) -> Ended {
    let mut restarts = Vec::new();
    let storage = CheckpointStorage::open("memory://").unwrap();
    let run = || {
        let graph = env.into_graph(&topic.name, parallelism, 128)?;
        LocalRunner::new(graph, config, Some(storage))?.run(|notice| {
            if let ExecutionNotice::Restarting { cause, .. } = notice {
                println!("restart: {cause}");
                restarts.push(cause.clone());
            }
        })
    };
    let outcome = run();
    Ended { outcome, restarts }
}

/// Something that is done once, by whoever comes first.
#[derive(Clone)]
pub(crate) struct Once {
    done: Arc<AtomicBool>,
    strike: Arc<dyn Fn() + Send + Sync>,
}

impl Once {
    pub(crate) fn new(strike: impl Fn() + Send + Sync + 'static) -> Self {
        Self { done: Arc::default(), strike: Arc::new(strike) }
    }

    pub(crate) fn run(&self) {
        if !self.done.swap(true, Ordering::SeqCst) {
            (self.strike)();
        }
    }
}
