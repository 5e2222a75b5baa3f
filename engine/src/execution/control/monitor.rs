//! What is kept of a running job for the answers.
//!
//! Owns: the status, the last checkpoints, and who waits for the outcome of one, or for the end. Does not own: the questions
//! ([`super`]). Runs on: the thread that steps the job. Pure: notices and questions in, answers out.

use std::collections::VecDeque;

use crossbeam_channel::Sender;

use super::{CheckpointAnswer, CheckpointRecord, JobEnd, JobPhase, JobStatus, Question};
use crate::checkpoint::failure_manager::FailureReason;
use crate::checkpoint::stats::{CheckpointOutcome, CheckpointStats, HISTORY_MAX};
use crate::execution::job_execution::ExecutionNotice;
use crate::ids::CheckpointId;
use crate::jobmanager::MasterNotice;

/// Questions whose answer is still to come: the outcome of a checkpoint, the end of the job.
const WAITING_MAX: usize = 64;

/// What the running attempt says to a request for a checkpoint.
pub(in crate::execution) enum MayTrigger {
    /// It will be this one, or a later one.
    Next(CheckpointId),
    /// No attempt takes checkpoints now.
    NotNow,
    /// Checkpoints are off.
    Off,
}

/// What is kept for the answers. See the module.
#[derive(Debug, Default)]
pub(in crate::execution) struct JobMonitor {
    status: JobStatus,
    recent: VecDeque<CheckpointRecord>,
    triggered: Vec<(CheckpointId, Sender<CheckpointAnswer>)>,
    ends: Vec<Sender<JobEnd>>,
}

impl JobMonitor {
    /// Takes in a notice.
    pub(in crate::execution) fn notice(&mut self, wall_ms: i64, notice: &ExecutionNotice) {
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
            ExecutionNotice::Master(MasterNotice::Progress { records_read, prepared, lag, .. }) => {
                self.status.records_read = *records_read;
                self.status.lag = *lag;
                self.status.prepared = *prepared;
            }
            ExecutionNotice::Master(
                MasterNotice::Recovered { .. }
                | MasterNotice::Committed { .. }
                | MasterNotice::TransactionGivenUp(_)
                | MasterNotice::AllEnded,
            ) => {}
            ExecutionNotice::RepeatedOutput(_) => {}
            ExecutionNotice::Restarting { cause, .. } => {
                self.status.last_failure = Some(cause.clone());
                self.set_phase(JobPhase::Restarting);
                for (_, reply) in self.triggered.drain(..) {
                    let _ = reply.try_send(CheckpointAnswer::AttemptFailed { cause: cause.clone() });
                }
            }
        }
    }

    /// Records out per 1,000 records in, as of now.
    pub(in crate::execution) fn output(&mut self, per_mille: Option<u64>) {
        self.status.out_per_1000_in = per_mille;
    }

    /// The job is being canceled, whatever its attempts do meanwhile.
    pub(in crate::execution) fn canceling(&mut self) {
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
    pub(in crate::execution) fn ask(&mut self, question: Question, may: impl FnOnce() -> MayTrigger) -> bool {
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
    pub(in crate::execution) fn over(&mut self, end: &JobEnd) {
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
