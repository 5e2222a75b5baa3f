//! Errors of the engine.
//!
//! Owns: [`JobError`] for user code, [`EngineError`] for everything else, and what a caller may do about one ([`Recovery`]).
//! Does not own: errors of state ([`tidegate_state::StateError`]) and of connectors ([`crate::api::ConnectorError`]).
//! Runs on: everywhere.

use std::fmt;

use crate::api::ConnectorError;
use crate::ids::{CheckpointId, JobName};
use crate::operator::LostTransaction;
use crate::quoted::quoted;
use crate::taskworker::restore::RestoreError;

/// Any error of user code. Every `std::error::Error` converts into it with `?`; [`JobError::msg`] makes one from text.
pub struct JobError {
    source: Box<dyn std::error::Error + Send + Sync>,
    restartable: bool,
}

/// The result of user code.
pub type Result<T, E = JobError> = std::result::Result<T, E>;

impl JobError {
    /// An error from text.
    pub fn msg(message: impl fmt::Display) -> Self {
        Self { source: message.to_string().into(), restartable: true }
    }

    /// Marks it as one that no restart can mend.
    #[must_use]
    pub fn final_(mut self) -> Self {
        self.restartable = false;
        self
    }

    /// Whether a restart from the last checkpoint may help.
    pub fn is_restartable(&self) -> bool {
        self.restartable
    }

    /// The error and its sources, a line each.
    pub fn full_text(&self) -> String {
        with_causes(self.source.to_string(), self.source.source())
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for JobError {
    fn from(source: E) -> Self {
        Self { source: Box::new(source), restartable: true }
    }
}

impl fmt::Debug for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.full_text())
    }
}

impl fmt::Display for JobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.source.fmt(f)
    }
}

/// What a caller may do about an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Restore the newest checkpoint and go on.
    RestartFromCheckpoint,
    /// Stop; somebody has to mend something first.
    FailJob,
    /// Another attempt owns the job: end the process, restart nothing.
    Fenced,
}

/// The start that writes lost records again; there is none where they lie before the first checkpoint.
fn rewind_before(lost: &LostTransaction, folder: &str) -> String {
    let before = lost.name.opened_after;
    if before == CheckpointId(0) {
        return String::new();
    }
    let restored = quoted(&format!("{folder}#{before}"));
    format!("`--restore {restored} --rewind`, which repeats what other sinks have written since; ")
}

/// For the author of the connector.
const BLOCKS_POLL: &str = "; whoever wrote this connector: a writer or reader must not block its thread (`engine::io::blocking` gives such a \
                           call a thread of its own)";

/// An error of the engine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The job graph cannot run as it was built.
    #[error(transparent)]
    Graph(#[from] crate::graph::GraphError),
    /// Settings contradict each other or are out of range.
    #[error("{setting}: {message}")]
    Settings {
        /// The setting.
        setting: &'static str,
        /// What is wrong and what would be right.
        message: String,
    },
    /// A connector refused its settings, or failed at the job manager.
    #[error("operator \"{operator}\": {message}")]
    Connector {
        /// The operator.
        operator: String,
        /// The error and its sources.
        message: String,
        /// Whether a restart may help.
        restartable: bool,
    },
    /// The checkpoint folder refused, or the log says no.
    #[error(transparent)]
    Log(Box<crate::checkpoint::commit_log::LogError>),
    /// Checkpoint storage cannot be used.
    #[error(transparent)]
    Storage(Box<tidegate_state::StorageError>),
    /// The checkpoint does not fit this job.
    #[error(transparent)]
    Restore(Box<crate::taskworker::restore::RestoreError>),
    /// A subtask failed and no restart strategy applies any more.
    #[error("job \"{job}\" failed after {attempts} attempt{}: {cause}", if *attempts == 1 { "" } else { "s" })]
    JobFailed {
        /// The job.
        job: JobName,
        /// How often it was started.
        attempts: u32,
        /// The last failure.
        cause: String,
    },
    /// A listed transaction is gone.
    #[error(
        "{lost}\n  \
         help: find out who rolled it back, or whether the output was moved. To go on without these records, put that decision into the log:\n    \
         tidegate txn forget {} '{}'\n  \
         To have them written again: {}`--restore none` begins anew, in addition to what is there",
        quoted(folder), lost.name, rewind_before(lost, folder)
    )]
    Lost {
        /// It.
        lost: Box<LostTransaction>,
        /// The checkpoint folder, as a command line takes it.
        folder: String,
    },
    /// A newer attempt has claimed the job.
    #[error("job \"{job}\" was taken over: {detail}; this process has stopped and published nothing more")]
    Fenced {
        /// The job.
        job: JobName,
        /// Where it was noticed.
        detail: String,
    },
    /// The newest checkpoint of a job that has finished.
    #[error(
        "job \"{job}\" has finished already (checkpoint {checkpoint}); \
         start it in another checkpoint folder to run it again"
    )]
    AlreadyFinished {
        /// The job.
        job: JobName,
        /// Its last checkpoint.
        checkpoint: CheckpointId,
    },
    /// The checkpoint was written by a job of another shape.
    #[error(transparent)]
    Refused(Box<crate::checkpoint::restore_check::RestoreRefusal>),
    /// An orderly cancel takes too long: user code does not return, or a server does not answer.
    #[error(
        "job \"{job}\" was not canceled in order within {} s and was stopped; still waiting for {waiting}\n  \
         help: nothing is lost: the next start commits or rolls back what is prepared",
        after.as_secs()
    )]
    CancelTimedOut {
        /// The job.
        job: JobName,
        /// How long it was waited for.
        after: std::time::Duration,
        /// Names of the subtasks that have not answered.
        waiting: String,
    },
    /// User code does not return: its thread cannot be ended, so the process has to be.
    #[error(
        "job \"{job}\": {stuck} did not return within {} s after its attempt had ended; the process ends\n  \
         help: a function of this subtask or a connector blocks; see what the thread waits for, and declare a function that may block as \
         blocking",
        after.as_secs()
    )]
    SlotStuck {
        /// The job.
        job: JobName,
        /// How long it was waited for.
        after: std::time::Duration,
        /// Each subtask whose function runs, with its thread.
        stuck: String,
    },
    /// A connector's part does not return to the I/O side: a thread that others need cannot be had back, so the process has to end.
    #[error(
        "job \"{job}\" failed: {cause}\n  {:.1} s after that {who} had not come back, and the process ends\n  \
         help: nothing is lost: the next start commits or rolls back what is prepared{}",
        after.as_secs_f64(),
        if *blocks_poll { BLOCKS_POLL } else { "" }
    )]
    IoStuck {
        /// The job.
        job: JobName,
        /// How long it was waited for.
        after: std::time::Duration,
        /// Subtasks, and which of their parts.
        who: String,
        /// Why the attempt had ended.
        cause: String,
        /// Whether it blocks a thread that it shares with others, which a connector must not; a call that was given a thread of its own waits
        /// for what the cause names.
        blocks_poll: bool,
    },
    /// The process's own resources failed: a thread or a runtime could not be made.
    #[error("{tried} failed")]
    System {
        /// What was tried.
        tried: &'static str,
        /// Why it failed.
        #[source]
        source: std::io::Error,
    },
}

macro_rules! from_boxed {
    ($($variant:ident: $source:ty),* $(,)?) => {
        $(impl From<$source> for EngineError {
            fn from(source: $source) -> Self {
                Self::$variant(Box::new(source))
            }
        })*
    };
}

from_boxed! {
    Log: crate::checkpoint::commit_log::LogError,
    Storage: tidegate_state::StorageError,
    Restore: crate::taskworker::restore::RestoreError,
    Refused: crate::checkpoint::restore_check::RestoreRefusal,
}

impl EngineError {
    /// What a caller may do about it.
    pub fn recovery(&self) -> Recovery {
        match self {
            Self::Fenced { .. } => Recovery::Fenced,
            Self::Storage(_) => Recovery::RestartFromCheckpoint,
            Self::Log(error) if error.is_away() => Recovery::RestartFromCheckpoint,
            Self::Restore(error) if matches!(**error, RestoreError::Storage { .. }) => {
                Recovery::RestartFromCheckpoint
            }
            Self::Connector { restartable: true, .. } => Recovery::RestartFromCheckpoint,
            _ => Recovery::FailJob,
        }
    }

    /// A connector's error with its operator's name.
    pub fn of_connector(operator: &str, error: &ConnectorError) -> Self {
        Self::Connector {
            operator: operator.to_owned(),
            message: error.full_text(),
            restartable: error.restartable,
        }
    }
}

/// An error and its sources, a line each.
pub fn chain_text(error: &dyn std::error::Error) -> String {
    with_causes(error.to_string(), error.source())
}

/// The text, and a line for each cause that says something new.
pub(crate) fn with_causes(mut text: String, mut source: Option<&dyn std::error::Error>) -> String {
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.contains(&words) {
            text.push_str("\n  because ");
            text.push_str(&words);
        }
        source = cause.source();
    }
    text
}
