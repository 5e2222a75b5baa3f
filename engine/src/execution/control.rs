//! What people ask of a running job from other threads: how it stands, its last checkpoints, a checkpoint now, an orderly end.
//!
//! Owns: the questions, and the handle that asks them. Does not own: the answers ([`monitor`]), how a question travels between
//! processes. Runs on: any thread, which it blocks until the answer is there.

mod monitor;

use std::sync::Arc;
use std::thread::Thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, SendTimeoutError, Sender, bounded};

pub(super) use self::monitor::{JobMonitor, MayTrigger};
use super::job_execution::JobOutcome;
use super::local_runner::CancelHandle;
use crate::checkpoint::stats::CheckpointStats;
use crate::error::{EngineError, chain_text};
use crate::ids::{AttemptId, CheckpointId};
use crate::jobmanager::plan::JobPlan;

/// Questions that wait for the job's thread.
const QUESTIONS_MAX: usize = 16;
/// A job that takes up no question for so long does not step.
const PATIENCE: Duration = Duration::from_secs(10);

/// Where a job stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JobPhase {
    /// Its checkpoint folder is being claimed, or its state restored.
    #[default]
    Starting,
    /// It works.
    Running,
    /// It has failed and waits for its next attempt.
    Restarting,
    /// It is being canceled.
    Canceling,
    /// It is over.
    Over,
}

/// A job at one moment. Records and checkpoints are counted over all attempts of this process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobStatus {
    /// Where it stands.
    pub phase: JobPhase,
    /// The newest attempt.
    pub attempt: Option<AttemptId>,
    /// What that attempt has restored.
    pub restored: Option<CheckpointId>,
    /// How many attempts this process has made.
    pub attempts: u32,
    /// Read by the sources, what lies before the restored checkpoint included.
    pub records_read: u64,
    /// How many records the sources are behind the end of what they read, as they last said; `None` where none of them tells.
    pub lag: Option<u64>,
    /// Transactions that the sinks hold prepared, as they last said.
    pub prepared: u32,
    /// Records out per 1,000 records in of the sinks, over the last minute; `None` where nothing was written.
    pub out_per_1000_in: Option<u64>,
    /// The newest completed checkpoint, the restored one included.
    pub newest: Option<CheckpointId>,
    /// How many were completed.
    pub completed: u64,
    /// How many were given up.
    pub failed: u64,
    /// Why the last attempt failed, if one did.
    pub last_failure: Option<String>,
}

/// One of the last checkpoints.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointRecord {
    /// The attempt that took it.
    pub attempt: AttemptId,
    /// When it ended, in milliseconds since 1970.
    pub ended_at_ms: i64,
    /// What it was and what it cost.
    pub stats: CheckpointStats,
}

/// How a job ended, for those who ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JobEnd {
    /// All input is read and everything is committed.
    Finished,
    /// Stopped in order.
    Canceled,
    /// Canceled before an attempt of this process had begun: nothing is settled.
    CanceledUnbegun,
    /// Another process has taken it over.
    Fenced,
    /// It failed.
    Failed {
        /// Why.
        error: String,
    },
}

impl From<&Result<JobOutcome, EngineError>> for JobEnd {
    fn from(result: &Result<JobOutcome, EngineError>) -> Self {
        match result {
            Ok(JobOutcome::Finished) => Self::Finished,
            Ok(JobOutcome::Canceled) => Self::Canceled,
            Ok(JobOutcome::CanceledUnbegun) => Self::CanceledUnbegun,
            Err(EngineError::Fenced { .. }) => Self::Fenced,
            Err(error) => Self::Failed { error: chain_text(error) },
        }
    }
}

/// What became of a checkpoint that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointAnswer {
    /// It is complete, or it was given up.
    Ended(Box<CheckpointRecord>),
    /// None is taken now.
    NotNow(JobPhase),
    /// The job takes no checkpoints at all.
    Off,
    /// The attempt failed before it was complete.
    AttemptFailed {
        /// Why.
        cause: String,
    },
    /// The job ended before it was complete.
    JobEnded(JobEnd),
}

/// No answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlGone {
    /// Nobody is there to answer.
    #[error("the job is over")]
    Over,
    /// The job's thread takes up no question.
    #[error("the job does not take up questions: its thread is blocked, or too many wait already")]
    Busy,
}

pub(super) enum Question {
    Status(Sender<JobStatus>),
    Checkpoints(Sender<Vec<CheckpointRecord>>),
    Trigger(Sender<CheckpointAnswer>),
    End(Sender<JobEnd>),
}

/// Asks a running job from any thread.
#[derive(Clone, Debug)]
pub struct ControlHandle {
    questions: Sender<Question>,
    thread: Thread,
    cancel: CancelHandle,
    plan: Arc<JobPlan>,
}

impl ControlHandle {
    pub(super) fn new(
        thread: Thread,
        cancel: CancelHandle,
        plan: Arc<JobPlan>,
    ) -> (Self, Receiver<Question>) {
        let (questions, receiver) = bounded(QUESTIONS_MAX);
        (Self { questions, thread, cancel, plan }, receiver)
    }

    /// The job, for names.
    pub fn plan(&self) -> &Arc<JobPlan> {
        &self.plan
    }

    /// How the job stands.
    ///
    /// # Errors
    /// [`ControlGone`].
    pub fn status(&self) -> Result<JobStatus, ControlGone> {
        self.ask(Question::Status)
    }

    /// The last checkpoints, of all attempts of this process, newest first.
    ///
    /// # Errors
    /// [`ControlGone`].
    pub fn checkpoints(&self) -> Result<Vec<CheckpointRecord>, ControlGone> {
        self.ask(Question::Checkpoints)
    }

    /// Asks for a checkpoint as soon as the bounds allow it, and waits for what becomes of it. What is in flight already does not
    /// count: the answer is that of a checkpoint triggered after this call.
    ///
    /// # Errors
    /// [`ControlGone`].
    pub fn trigger_checkpoint(&self) -> Result<CheckpointAnswer, ControlGone> {
        self.ask(Question::Trigger)
    }

    /// Asks the job to stop in order, and waits for its end.
    ///
    /// # Errors
    /// [`ControlGone`].
    pub fn cancel(&self) -> Result<JobEnd, ControlGone> {
        let (reply, answer) = bounded(1);
        self.send(Question::End(reply))?;
        self.cancel.cancel();
        answer.recv().map_err(|RecvError| ControlGone::Over)
    }

    fn ask<T>(&self, question: impl FnOnce(Sender<T>) -> Question) -> Result<T, ControlGone> {
        let (reply, answer) = bounded(1);
        self.send(question(reply))?;
        answer.recv().map_err(|RecvError| ControlGone::Over)
    }

    fn send(&self, question: Question) -> Result<(), ControlGone> {
        let sent = self.questions.send_timeout(question, PATIENCE).map_err(|error| match error {
            SendTimeoutError::Timeout(_) => ControlGone::Busy,
            SendTimeoutError::Disconnected(_) => ControlGone::Over,
        });
        self.thread.unpark();
        sent
    }
}
