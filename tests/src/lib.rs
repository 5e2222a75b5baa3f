//! Shared pieces of the scenario tests.
//!
//! Owns: running a job in this process until something has happened, how one has ended. Does not own: scenarios. Runs on: the test's
//! thread.

use tidegate::engine::checkpoint::CheckpointConfig;
use tidegate::engine::error::EngineError;
use tidegate::engine::execution::{ExecutionConfig, ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::MasterNotice;
use tidegate::prelude::StreamEnvironment;
use tidegate::state::CheckpointStorage;

/// When a run is canceled in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Never: it ends by itself.
    End,
    /// After so many completed checkpoints.
    Checkpoints(u32),
}

/// Settings with a checkpoint every `interval_ms`.
pub fn checkpoints_every(interval_ms: u64) -> ExecutionConfig {
    let checkpoints = CheckpointConfig { interval_ms, ..CheckpointConfig::default() };
    ExecutionConfig { checkpoints, threads: Some(2), ..ExecutionConfig::default() }
}

/// Runs a job here.
///
/// # Errors
/// Why it did not end well.
pub fn run(
    env: StreamEnvironment,
    parallelism: u32,
    config: ExecutionConfig,
    storage: Option<CheckpointStorage>,
    until: Until,
) -> Result<JobOutcome, EngineError> {
    let graph = env.into_graph("scenario", parallelism, 128)?;
    let mut runner = LocalRunner::new(graph, config, storage)?;
    let cancel = runner.cancel_handle();
    let mut completed = 0;
    runner.run(|notice| {
        if let ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) = notice {
            completed += 1;
        }
        if until == Until::Checkpoints(completed) {
            cancel.cancel();
        }
    })
}

/// How a job ended.
#[derive(Debug)]
pub struct Ended {
    /// What came of it.
    pub outcome: Result<JobOutcome, EngineError>,
    /// Why it was restarted, each time.
    pub restarts: Vec<String>,
}

impl Ended {
    /// It came to its end.
    ///
    /// # Panics
    /// It did not.
    pub fn finished(&self) {
        assert_eq!(self.outcome.as_ref().ok(), Some(&JobOutcome::Finished), "{self:?}");
    }

    /// It came to its end in one attempt.
    ///
    /// # Panics
    /// It did not.
    pub fn unbroken(&self) {
        self.finished();
        assert_eq!(self.restarts, Vec::<String>::new());
    }

    /// What it failed of.
    ///
    /// # Panics
    /// It did not fail.
    pub fn failure(&self) -> String {
        match &self.outcome {
            Ok(outcome) => panic!("it did not fail: {outcome:?}"),
            Err(error) => tidegate::error_text(error),
        }
    }
}
