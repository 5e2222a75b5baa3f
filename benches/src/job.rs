//! Runs a job of ours as production does, on the calling thread, and measures it.
//!
//! Owns: settings of a measured job, the checkpoint folder, what is taken from notices. Does not own: the graph.
//! Runs on: the main thread, which steps the job.

use std::time::Duration;

use tempfile::TempDir;
use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::checkpoint::{CheckpointConfig, CheckpointMode};
use tidegate_engine::error::EngineError;
use tidegate_engine::execution::{ExecutionConfig, ExecutionNotice, LocalRunner};
use tidegate_engine::jobmanager::MasterNotice;
use tidegate_state::CheckpointStorage;

use crate::error::BenchError;
use crate::harness::Run;
use crate::stopwatch::Stopwatch;

/// Key groups of every measured job.
const MAX_PARALLELISM: u32 = 128;

/// How a job is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JobSetup {
    /// The candidate's name.
    pub(crate) candidate: &'static str,
    /// Subtasks of each vertex.
    pub(crate) parallelism: u32,
    /// Exactly-once checkpoints at this interval, into a folder on disk; `None`: off.
    pub(crate) checkpoint_every: Option<Duration>,
}

/// The largest costs of the checkpoints of a run.
#[derive(Default)]
struct CheckpointCosts {
    completed: u32,
    end_to_end: Duration,
    sync: Duration,
    step: Duration,
    bytes: u64,
}

impl CheckpointCosts {
    fn note(&mut self, notice: &ExecutionNotice) {
        let ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) = notice else { return };
        self.completed += 1;
        self.end_to_end = self.end_to_end.max(stats.end_to_end);
        self.bytes = self.bytes.max(stats.size_bytes);
        self.sync = self.sync.max(stats.longest_sync());
        self.step = self.step.max(stats.longest_step());
    }

    fn add_to(&self, run: Run) -> Run {
        run.note("checkpoints", f64::from(self.completed))
            .note("end_to_end_ms", self.end_to_end.as_secs_f64() * 1e3)
            .note("sync_ms", self.sync.as_secs_f64() * 1e3)
            .note("longest_step_ms", self.step.as_secs_f64() * 1e3)
            .note("checkpoint_mb", self.bytes as f64 / 1e6)
    }
}

/// Runs the job that `env` holds to its end; `written` says afterwards how many records came out.
///
/// # Errors
/// A job that fails, or other than `expected` records that came out.
pub(crate) fn run_job(
    env: StreamEnvironment,
    setup: JobSetup,
    records: u64,
    expected: u64,
    written: impl FnOnce() -> u64,
) -> Result<Run, BenchError> {
    let failed = BenchError::job(setup.candidate);
    let graph = env.into_graph("bench", setup.parallelism, MAX_PARALLELISM).map_err(&failed)?;
    // The folder lives as long as the job.
    let (storage, _folder) = storage(setup).map_err(&failed)?.unzip();
    let mut runner = LocalRunner::new(graph, config(setup), storage).map_err(&failed)?;
    let mut costs = CheckpointCosts::default();
    let watch = Stopwatch::start();
    runner.run(|notice| costs.note(notice)).map_err(&failed)?;
    let run = watch.stop(records);
    let got = written();
    if got != expected {
        return Err(BenchError::WrongResult { candidate: setup.candidate.to_owned(), got, expected });
    }
    Ok(if setup.checkpoint_every.is_some() { costs.add_to(run) } else { run })
}

fn config(setup: JobSetup) -> ExecutionConfig {
    let checkpoints = match setup.checkpoint_every {
        None => CheckpointConfig { mode: CheckpointMode::None, ..CheckpointConfig::default() },
        Some(every) => {
            let interval_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1);
            CheckpointConfig { interval_ms, ..CheckpointConfig::default() }
        }
    };
    ExecutionConfig { checkpoints, ..ExecutionConfig::default() }
}

fn storage(setup: JobSetup) -> Result<Option<(CheckpointStorage, TempDir)>, EngineError> {
    if setup.checkpoint_every.is_none() {
        return Ok(None);
    }
    let folder = tempfile::tempdir()
        .map_err(|source| EngineError::System { tried: "making a folder for checkpoints", source })?;
    let storage = CheckpointStorage::open(&folder.path().to_string_lossy())?;
    Ok(Some((storage, folder)))
}
