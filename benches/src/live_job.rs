//! A job of ours that runs until it is told to stop, while somebody watches.
//!
//! Owns: its settings, and a deadline so that a job that never does what is waited for ends. Does not own: the graph, what is
//! watched for. Runs on: the main thread, which steps the job, and a helper that waits.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::checkpoint::{CheckpointConfig, CheckpointMode};
use tidegate_engine::clock::{Clock, SystemClock};
use tidegate_engine::execution::{CancelHandle, ExecutionConfig, ExecutionNotice, LocalRunner};
use tidegate_state::CheckpointStorage;

use crate::error::BenchError;

/// Key groups of every measured job.
const MAX_PARALLELISM: u32 = 128;
/// No benchmark's job runs longer.
const LONGEST: Duration = Duration::from_secs(300);

/// How a job is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveJob<'a> {
    /// The candidate's name.
    pub(crate) candidate: &'static str,
    /// Subtasks of each vertex.
    pub(crate) parallelism: u32,
    /// Exactly-once checkpoints at this interval, into this folder; `None`: off.
    pub(crate) checkpoints: Option<(Duration, &'a Path)>,
    /// How long a record may wait for its batch to fill.
    pub(crate) batch_age_ms: u64,
}

impl LiveJob<'_> {
    /// Runs the job until `watch` cancels it, or to its end.
    ///
    /// # Errors
    /// A job that fails, or that is not over in time.
    pub(crate) fn run(
        &self,
        env: StreamEnvironment,
        mut watch: impl FnMut(&ExecutionNotice, &CancelHandle),
    ) -> Result<(), BenchError> {
        let failed = BenchError::job(self.candidate);
        let graph = env.into_graph("bench", self.parallelism, MAX_PARALLELISM).map_err(&failed)?;
        let storage = match self.checkpoints {
            None => None,
            Some((_, folder)) => {
                let opened = CheckpointStorage::open(&folder.to_string_lossy());
                Some(opened.map_err(|e| failed(e.into()))?)
            }
        };
        let mut runner = LocalRunner::new(graph, self.config(), storage).map_err(&failed)?;
        let cancel = runner.cancel_handle();
        let late = Arc::new(AtomicBool::new(false));
        let guard = {
            let (cancel, late) = (cancel.clone(), Arc::clone(&late));
            after(LONGEST, move || {
                late.store(true, Ordering::Relaxed);
                cancel.cancel();
            })
        };
        runner.run(|notice| watch(notice, &cancel)).map_err(&failed)?;
        drop(guard);
        if late.load(Ordering::Relaxed) {
            return Err(BenchError::TooLong { candidate: self.candidate, seconds: LONGEST.as_secs() });
        }
        Ok(())
    }

    fn config(&self) -> ExecutionConfig {
        let checkpoints = match self.checkpoints {
            None => CheckpointConfig { mode: CheckpointMode::None, ..CheckpointConfig::default() },
            Some((every, _)) => {
                let interval_ms = u64::try_from(every.as_millis()).unwrap_or(u64::MAX).max(1);
                CheckpointConfig { interval_ms, ..CheckpointConfig::default() }
            }
        };
        ExecutionConfig { checkpoints, batch_age_ms: self.batch_age_ms, ..ExecutionConfig::default() }
    }
}

/// Waits for its moment, unless it is dropped before.
pub(crate) struct Waiting {
    given_up: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Does something later, on a thread of its own.
pub(crate) fn after(span: Duration, then: impl FnOnce() + Send + 'static) -> Waiting {
    let given_up = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&given_up);
    let thread = std::thread::spawn(move || {
        if pause(span, &flag) {
            then();
        }
    });
    Waiting { given_up, thread: Some(thread) }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.given_up.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// Waits on the calling thread. `false`: it was given up, and its thread unparked.
pub(crate) fn pause(span: Duration, given_up: &AtomicBool) -> bool {
    let clock = SystemClock::new();
    while !given_up.load(Ordering::Acquire) {
        let left = span.saturating_sub(clock.now());
        if left.is_zero() {
            return true;
        }
        std::thread::park_timeout(left);
    }
    false
}
