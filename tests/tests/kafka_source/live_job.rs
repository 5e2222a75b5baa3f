//! A job that runs beside the test.
//!
//! Owns: its thread, what it has completed, orderly cancels. Does not own: what it does. Runs on: a thread of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tidegate::engine::error::EngineError;
use tidegate::engine::execution::{CancelHandle, ExecutionConfig, ExecutionNotice, JobOutcome, LocalRunner};
use tidegate::engine::jobmanager::MasterNotice;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;

const LIMIT: Duration = Duration::from_secs(40);
const PAUSE: Duration = Duration::from_millis(5);

/// Waits until something holds.
#[allow(clippy::disallowed_methods, reason = "a test polls the outside with a deadline")]
pub(crate) fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LIMIT, "{what}: not within {LIMIT:?}");
        std::thread::sleep(PAUSE);
    }
}

/// Checkpoints that end with the test.
pub(crate) fn memory() -> CheckpointStorage {
    CheckpointStorage::over(Arc::new(object_store::memory::InMemory::new()), "memory://scenario")
}

/// See the module.
pub(crate) struct LiveJob {
    /// `None`: it was refused before it ran.
    cancel: Option<CancelHandle>,
    completed: Arc<AtomicU32>,
    thread: JoinHandle<Result<JobOutcome, EngineError>>,
}

impl LiveJob {
    pub(crate) fn start(
        build: impl FnOnce(&StreamEnvironment) + Send + 'static,
        parallelism: u32,
        config: ExecutionConfig,
        storage: Option<CheckpointStorage>,
    ) -> Self {
        let (handles, handle) = sync_channel(1);
        let completed = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&completed);
        let storage = storage.unwrap_or_else(memory);
        let thread = std::thread::spawn(move || {
            let env = StreamEnvironment::new();
            build(&env);
            let mut runner =
                LocalRunner::new(env.into_graph("scenario", parallelism, 128)?, config, Some(storage))?;
            handles.send(runner.cancel_handle()).unwrap();
            runner.run(|notice| {
                if let ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) = notice {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            })
        });
        Self { cancel: handle.recv().ok(), completed, thread }
    }

    /// Waits until `more` checkpoints are complete that began after this call.
    pub(crate) fn wait_for_checkpoints(&self, more: u32) {
        let before = self.completed.load(Ordering::Relaxed);
        // One may be under way.
        eventually("a checkpoint", || self.completed.load(Ordering::Relaxed) > before + more);
    }

    pub(crate) fn cancel(self) {
        if let Some(cancel) = &self.cancel {
            cancel.cancel();
        }
        assert_eq!(self.end().unwrap(), JobOutcome::Canceled);
    }

    pub(crate) fn end(self) -> Result<JobOutcome, EngineError> {
        eventually("the end of the job", || self.thread.is_finished());
        self.thread.join().unwrap()
    }

    /// Why it failed, in all its words.
    pub(crate) fn failure(self) -> String {
        let error = self.end().unwrap_err();
        let mut text = error.to_string();
        let mut source = std::error::Error::source(&error);
        while let Some(cause) = source {
            text.push_str(&format!("\n{cause}"));
            source = cause.source();
        }
        text
    }
}
