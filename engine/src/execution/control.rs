//! What people ask of a running job from other threads: how it stands, its last checkpoints, a checkpoint now, an orderly end.
//!
//! Owns: the questions, the handle that asks them, and what is kept for the answers. Does not own: how a question travels between
//! processes. Runs on: [`ControlHandle`] on any thread, which it blocks until the answer is there; [`JobMonitor`] on the thread that
//! steps the job. The monitor is pure: notices and questions in, answers out.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::Thread;
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvError, SendTimeoutError, Sender, bounded};

use super::job_execution::{ExecutionNotice, JobOutcome};
use super::local_runner::CancelHandle;
use crate::checkpoint::failure_manager::FailureReason;
use crate::checkpoint::stats::{CheckpointOutcome, CheckpointStats, HISTORY_MAX};
use crate::error::{EngineError, chain_text};
use crate::ids::{AttemptId, CheckpointId};
use crate::jobmanager::MasterNotice;
use crate::jobmanager::plan::JobPlan;

/// Questions that wait for the job's thread.
const QUESTIONS_MAX: usize = 16;
/// A job that takes up no question for so long does not step.
const PATIENCE: Duration = Duration::from_secs(10);
/// Questions whose answer is still to come: the outcome of a checkpoint, the end of the job.
const WAITING_MAX: usize = 64;

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
    /// Transactions that the sinks hold prepared, as they last said.
    pub prepared: u32,
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

/// What the running attempt says to a request for a checkpoint.
pub(super) enum MayTrigger {
    /// It will be this one, or a later one.
    Next(CheckpointId),
    /// No attempt takes checkpoints now.
    NotNow,
    /// Checkpoints are off.
    Off,
}

/// What is kept for the answers. See the module.
#[derive(Debug, Default)]
pub(super) struct JobMonitor {
    status: JobStatus,
    recent: VecDeque<CheckpointRecord>,
    triggered: Vec<(CheckpointId, Sender<CheckpointAnswer>)>,
    ends: Vec<Sender<JobEnd>>,
}

impl JobMonitor {
    /// Takes in a notice.
    pub(super) fn notice(&mut self, wall_ms: i64, notice: &ExecutionNotice) {
        match notice {
            ExecutionNotice::Started { attempt, restored, .. } => {
                self.status.attempt = Some(*attempt);
                self.status.restored = *restored;
                self.status.newest = restored.or(self.status.newest);
                self.status.attempts += 1;
                self.set_phase(JobPhase::Running);
            }
            ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) => {
                self.status.completed += 1;
                self.status.newest = Some(stats.id);
                self.checkpoint(wall_ms, stats);
            }
            ExecutionNotice::Master(MasterNotice::CheckpointFailed(stats)) => {
                self.status.failed += 1;
                self.checkpoint(wall_ms, stats);
            }
            ExecutionNotice::Master(MasterNotice::Progress { records_read, prepared, .. }) => {
                self.status.records_read = *records_read;
                self.status.prepared = *prepared;
            }
            ExecutionNotice::Master(MasterNotice::Recovered { .. } | MasterNotice::AllEnded) => {}
            ExecutionNotice::Restarting { cause, .. } => {
                self.status.last_failure = Some(cause.clone());
                self.set_phase(JobPhase::Restarting);
                for (_, reply) in self.triggered.drain(..) {
                    let _ = reply.try_send(CheckpointAnswer::AttemptFailed { cause: cause.clone() });
                }
            }
        }
    }

    /// The job is being canceled, whatever its attempts do meanwhile.
    pub(super) fn canceling(&mut self) {
        self.status.phase = JobPhase::Canceling;
    }

    fn set_phase(&mut self, phase: JobPhase) {
        if self.status.phase != JobPhase::Canceling {
            self.status.phase = phase;
        }
    }

    fn checkpoint(&mut self, wall_ms: i64, stats: &CheckpointStats) {
        let attempt = self.status.attempt.unwrap_or_default();
        let record = CheckpointRecord { attempt, ended_at_ms: wall_ms, stats: stats.clone() };
        // One that a later one made needless says nothing about what was asked for: the later one answers.
        let needless = matches!(stats.outcome, CheckpointOutcome::Failed(FailureReason::Subsumed { .. }));
        if !needless {
            self.triggered.retain(|(from, reply)| {
                let waits = stats.id < *from;
                if !waits {
                    let _ = reply.try_send(CheckpointAnswer::Ended(Box::new(record.clone())));
                }
                waits
            });
        }
        if self.recent.len() == HISTORY_MAX {
            self.recent.pop_front();
        }
        self.recent.push_back(record);
    }

    /// Answers at once, or keeps the question for later. `true`: a checkpoint is wanted.
    pub(super) fn ask(&mut self, question: Question, may: impl FnOnce() -> MayTrigger) -> bool {
        match question {
            Question::Status(reply) => {
                let _ = reply.try_send(self.status.clone());
            }
            Question::Checkpoints(reply) => {
                let _ = reply.try_send(self.recent.iter().rev().cloned().collect());
            }
            Question::Trigger(reply) => match may() {
                MayTrigger::Next(id) if self.triggered.len() < WAITING_MAX => {
                    self.triggered.push((id, reply));
                    return true;
                }
                MayTrigger::Next(_) | MayTrigger::NotNow => {
                    let _ = reply.try_send(CheckpointAnswer::NotNow(self.status.phase));
                }
                MayTrigger::Off => {
                    let _ = reply.try_send(CheckpointAnswer::Off);
                }
            },
            Question::End(reply) => {
                // One too many hears nothing: its sender is dropped, and it learns that it has to look for itself.
                if self.ends.len() < WAITING_MAX {
                    self.ends.push(reply);
                }
            }
        }
        false
    }

    /// The job is over: everybody who waits is told.
    pub(super) fn over(&mut self, end: &JobEnd) {
        self.status.phase = JobPhase::Over;
        for (_, reply) in self.triggered.drain(..) {
            let _ = reply.try_send(CheckpointAnswer::JobEnded(end.clone()));
        }
        for reply in self.ends.drain(..) {
            let _ = reply.try_send(end.clone());
        }
    }
}

#[cfg(test)]
mod tests;
