//! Runs a job: the job manager on the calling thread, subtasks on slots' threads, I/O on a tokio runtime.
//!
//! Owns: the runtime, parking between steps, cancel and questions from another thread. Does not own: the steps. Runs on: the calling thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use crossbeam_channel::Receiver;
use tidegate_state::CheckpointStorage;

use super::attempt::Slots;
use super::config::ExecutionConfig;
use super::control::{ControlHandle, JobEnd, JobMonitor, MayTrigger, Question};
use super::job_execution::{
    ExecutionNotice, ExecutionSetup, ExecutionStep, JobExecution, JobOutcome, LAST_WORDS,
};
use crate::clock::{SharedClock, SystemClock};
use crate::error::EngineError;
use crate::graph::JobGraph;
use crate::io::{ThreadWake, TokioIo};
use crate::jobmanager::Control;

/// Threads that run futures.
const IO_THREADS: usize = 2;
/// The longest park: a lost wake-up costs no more than this.
const PARK_MAX: Duration = Duration::from_millis(50);

/// Cancels a job from another thread, in order.
#[derive(Clone, Debug)]
pub struct CancelHandle {
    wanted: Arc<AtomicBool>,
    thread: Thread,
}

impl CancelHandle {
    /// Asks the job to stop in order. Idempotent.
    pub fn cancel(&self) {
        self.wanted.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

/// See the module.
pub struct LocalRunner {
    /// Gone when the job is over.
    runtime: Option<tokio::runtime::Runtime>,
    handle: tokio::runtime::Handle,
    execution: JobExecution,
    cancel: CancelHandle,
    control: ControlHandle,
    /// Gone when the job is over: whoever asks then hears so.
    questions: Option<Receiver<Question>>,
    monitor: JobMonitor,
    clock: SharedClock,
}

impl std::fmt::Debug for LocalRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalRunner").field("execution", &self.execution).finish_non_exhaustive()
    }
}

impl LocalRunner {
    /// A runner for the calling thread.
    ///
    /// # Errors
    /// Settings that cannot work, or a runtime that cannot be made.
    pub fn new(
        graph: JobGraph,
        config: ExecutionConfig,
        storage: Option<CheckpointStorage>,
    ) -> Result<Self, EngineError> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(IO_THREADS)
            .thread_name("tidegate-io")
            .enable_all()
            .build()
            .map_err(|source| EngineError::System { tried: "making the I/O runtime", source })?;
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads = config.threads.unwrap_or_else(cores);
        let clock = SystemClock::shared();
        let execution = JobExecution::new(ExecutionSetup {
            graph,
            config,
            storage,
            io: TokioIo::shared(runtime.handle().clone()),
            clock: Arc::clone(&clock),
            waker: ThreadWake::current(),
            slots: Slots::Threads(threads),
            seed: random_seed(),
        })?;
        let cancel = CancelHandle { wanted: Arc::default(), thread: std::thread::current() };
        let plan = Arc::clone(execution.plan());
        let (control, questions) = ControlHandle::new(std::thread::current(), cancel.clone(), plan);
        let (questions, monitor) = (Some(questions), JobMonitor::default());
        let handle = runtime.handle().clone();
        let runtime = Some(runtime);
        Ok(Self { runtime, handle, execution, cancel, control, questions, monitor, clock })
    }

    /// The runtime's handle, for what runs beside the job.
    pub fn runtime(&self) -> &tokio::runtime::Handle {
        &self.handle
    }

    /// Cancels this job.
    pub fn cancel_handle(&self) -> CancelHandle {
        self.cancel.clone()
    }

    /// Asks this job from other threads, while it runs.
    pub fn control_handle(&self) -> ControlHandle {
        self.control.clone()
    }

    /// The execution, to look at.
    pub fn execution(&mut self) -> &mut JobExecution {
        &mut self.execution
    }

    /// Runs to the end. `watch` is called with each notice.
    ///
    /// # Errors
    /// Why the job did not end well.
    pub fn run(&mut self, watch: impl FnMut(&ExecutionNotice)) -> Result<JobOutcome, EngineError> {
        let result = self.run_to_the_end(watch);
        let result = self.end_io(result);
        self.answer();
        self.questions = None;
        self.monitor.over(&JobEnd::from(&result));
        result
    }

    fn run_to_the_end(&mut self, mut watch: impl FnMut(&ExecutionNotice)) -> Result<JobOutcome, EngineError> {
        loop {
            self.answer();
            if !self.execution.is_canceling() && self.cancel.wanted.load(Ordering::Acquire) {
                self.monitor.canceling();
                if let Some(outcome) = self.execution.control(Control::Cancel) {
                    return Ok(outcome);
                }
            }
            if self.execution.cancel_is_late() {
                return Err(self.execution.give_up_cancel());
            }
            let step = self.execution.step();
            while let Some(notice) = self.execution.take_notice() {
                self.monitor.notice(self.clock.wall_ms(), &notice);
                watch(&notice);
            }
            match step {
                ExecutionStep::Progress => {}
                ExecutionStep::Idle(deadline) => self.park(deadline),
                ExecutionStep::Over(result) => return result,
            }
        }
    }

    /// Ends the I/O side, and waits for it no longer than is promised: a connector may block a thread of it for ever.
    fn end_io(&mut self, result: Result<JobOutcome, EngineError>) -> Result<JobOutcome, EngineError> {
        let Some(runtime) = self.runtime.take() else { return result };
        self.execution.stop();
        let patience = match &result {
            Err(EngineError::IoStuck { .. }) => LAST_WORDS,
            // However a cancel ended, also by a failure: who waits for it shall not wait for more.
            _ if self.execution.is_canceling() => LAST_WORDS,
            _ => self.execution.cancellation_timeout(),
        };
        let presence = Arc::clone(self.execution.presence());
        runtime.shutdown_timeout(patience);
        let (stuck, blocks_poll) = (presence.all(), !presence.polling().is_empty());
        if stuck.is_empty() {
            return result;
        }
        let who = stuck.join(", ");
        match result {
            Err(EngineError::JobFailed { cause, .. }) => {
                Err(self.execution.io_stuck(patience, &stuck, blocks_poll, cause))
            }
            Err(EngineError::CancelTimedOut { job, after, .. }) => Err(EngineError::CancelTimedOut {
                job,
                after,
                waiting: if blocks_poll { format!("{who}, which blocks its thread") } else { who },
            }),
            other => {
                tracing::warn!(%who, "a connector did not come back to the I/O side, and was left there");
                other
            }
        }
    }

    /// Takes up the questions that have come.
    fn answer(&mut self) {
        while let Some(question) = self.questions.as_ref().and_then(|questions| questions.try_recv().ok()) {
            let execution = &mut self.execution;
            self.monitor.output(execution.output().and_then(|figures| figures.per_mille()));
            let may = || match execution.has_checkpoints() {
                false => MayTrigger::Off,
                true => match execution.attempt().and_then(|attempt| attempt.master().next_checkpoint()) {
                    Some(id) => MayTrigger::Next(id),
                    None => MayTrigger::NotNow,
                },
            };
            if self.monitor.ask(question, may) {
                self.execution.control(Control::TriggerCheckpoint);
            }
        }
    }

    fn park(&self, deadline: Option<Duration>) {
        let left = deadline.map(|at| at.saturating_sub(self.clock.now()));
        std::thread::park_timeout(left.map_or(PARK_MAX, |left| left.min(PARK_MAX)));
    }
}

impl Drop for LocalRunner {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            self.execution.stop();
            runtime.shutdown_timeout(self.execution.cancellation_timeout());
        }
    }
}

/// A seed from the operating system's entropy, by way of the standard library's hasher keys.
fn random_seed() -> u128 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    let draw = || RandomState::new().build_hasher().finish();
    let pid = u64::from(std::process::id());
    (u128::from(draw()) << 64) | u128::from(draw().rotate_left(7) ^ pid)
}
