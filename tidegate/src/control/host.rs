//! Who stands behind the doors: a job, or a check of its folder.
//!
//! Owns: an answer to each question. Does not own: sockets ([`super::server`]), the job. Runs on: the thread of a connection, which it
//! may block until a checkpoint or the job has ended.

use super::protocol::{Answer, Ask};
use super::registry::Listed;
use super::report::{CheckpointReport, EndReport, JobReport, JobState};
use super::server::Host;
use crate::engine::execution::control::{CheckpointAnswer, ControlGone, ControlHandle, JobPhase};

/// A running job.
#[derive(Debug)]
pub(crate) struct JobHost {
    pub(crate) handle: ControlHandle,
    pub(crate) job: String,
    pub(crate) checkpoint_folder: Option<String>,
    pub(crate) since_ms: i64,
}

impl JobHost {
    fn status(&self, control: &[String]) -> Result<Answer, ControlGone> {
        let status = self.handle.status()?;
        let job = JobReport {
            state: status.phase.into(),
            attempt: status.attempt.map(|attempt| attempt.0),
            attempts: status.attempts,
            restored: status.restored.map(|id| id.0),
            records_in: status.records_read,
            lag: status.lag,
            prepared: status.prepared,
            out_per_1000_in: status.out_per_1000_in,
            newest_checkpoint: status.newest.map(|id| id.0),
            checkpoints: status.completed,
            checkpoints_failed: status.failed,
            last_failure: status.last_failure,
            ..nobody(&self.job, self.checkpoint_folder.clone(), control, self.since_ms)
        };
        Ok(Answer::Status { job })
    }

    fn checkpoints(&self) -> Result<Answer, ControlGone> {
        let plan = self.handle.plan();
        let checkpoints =
            self.handle.checkpoints()?.iter().map(|record| CheckpointReport::of(record, plan)).collect();
        Ok(Answer::Checkpoints { checkpoints })
    }

    fn trigger(&self) -> Result<Answer, ControlGone> {
        let refused = |reason: String| Answer::Refused { reason };
        Ok(match self.handle.trigger_checkpoint()? {
            CheckpointAnswer::Ended(record) => {
                Answer::Checkpoint { checkpoint: CheckpointReport::of(&record, self.handle.plan()) }
            }
            CheckpointAnswer::NotNow(JobPhase::Running) => {
                refused("the job comes to its end: its last checkpoint is complete".to_owned())
            }
            CheckpointAnswer::NotNow(phase) => {
                let state = JobState::from(phase).word();
                refused(format!("the job is {state} and takes no checkpoint now"))
            }
            CheckpointAnswer::Off => {
                refused("the job takes no checkpoints: it runs with --mode none".to_owned())
            }
            CheckpointAnswer::AttemptFailed { cause } => {
                refused(format!("the attempt failed before its checkpoint was complete: {cause}"))
            }
            CheckpointAnswer::JobEnded(end) => Answer::Ended { end: end.into() },
        })
    }
}

impl Host for JobHost {
    fn answer(&self, ask: Ask, control: &[String]) -> Answer {
        let answer = match ask {
            Ask::Status => self.status(control),
            Ask::Checkpoints => self.checkpoints(),
            Ask::TriggerCheckpoint => self.trigger(),
            Ask::Cancel => self.handle.cancel().map(|end| Answer::Ended { end: EndReport::from(end) }),
        };
        answer.unwrap_or_else(|gone| Answer::Refused { reason: gone.to_string() })
    }
}

/// A check of a folder, which keeps jobs from starting on it meanwhile.
#[derive(Debug)]
pub(crate) struct FsckHost {
    pub(crate) job: String,
    pub(crate) checkpoint_folder: String,
    pub(crate) since_ms: i64,
}

impl Host for FsckHost {
    fn answer(&self, ask: Ask, control: &[String]) -> Answer {
        match ask {
            Ask::Status => {
                let folder = Some(self.checkpoint_folder.clone());
                Answer::Status { job: nobody(&self.job, folder, control, self.since_ms) }
            }
            _ => Answer::Refused {
                reason: "no job runs here: its checkpoint folder is being checked".to_owned(),
            },
        }
    }
}

/// What is known of a job in the list whose process is stopped.
pub(crate) fn stopped(listed: &Listed) -> JobReport {
    let control = std::slice::from_ref(&listed.control);
    JobReport { pid: listed.pid, state: JobState::Stopped, ..nobody(&listed.job, None, control, 0) }
}

/// A report of this process in which nothing has happened.
fn nobody(job: &str, checkpoint_folder: Option<String>, control: &[String], since_ms: i64) -> JobReport {
    JobReport {
        job: job.to_owned(),
        pid: std::process::id(),
        tidegate: env!("CARGO_PKG_VERSION").to_owned(),
        state: JobState::Checking,
        checkpoint_folder,
        control: control.to_vec(),
        since_ms,
        attempt: None,
        attempts: 0,
        restored: None,
        records_in: 0,
        lag: None,
        prepared: 0,
        out_per_1000_in: None,
        newest_checkpoint: None,
        checkpoints: 0,
        checkpoints_failed: 0,
        last_failure: None,
    }
}
