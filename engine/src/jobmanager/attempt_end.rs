//! How an attempt ends.
//!
//! Owns: the closed list of ends, and which failures a restart may mend. Does not own: the restart (see
//! [`super::restart_strategy`]). Runs on: plain data.

use crate::api::source::ConnectorError;
use crate::checkpoint::failure_manager::FailureReason;
use crate::ids::{EntryNumber, SubtaskId};
use crate::operator::LostTransaction;
use crate::taskworker::mail::TaskFailure;

/// How an attempt ended. Afterwards its job master says nothing more.
#[derive(Debug)]
pub enum AttemptEnd {
    /// All input is read, everything is committed, and the log says so.
    Finished,
    /// In order: what the newest completed checkpoint lists is committed, the rest is rolled back.
    Canceled,
    /// Another attempt holds the job. Nothing more may be published; no restart strategy applies.
    Fenced {
        /// Where its entry stands.
        at: EntryNumber,
    },
    /// The checkpoint folder was deleted or replaced. Never restarted: a start would begin anew.
    Replaced {
        /// What `log/id` is instead, for people.
        found: &'static str,
    },
    /// The restart strategy decides, unless the cause is final.
    Failed {
        /// Why.
        cause: AttemptFailure,
    },
    /// Records are gone from the server. Never restarted.
    Lost(LostTransaction),
}

/// Why an attempt failed.
#[derive(Debug, thiserror::Error)]
pub enum AttemptFailure {
    /// A subtask failed.
    #[error("subtask {name} failed: {source}")]
    Task {
        /// Which.
        subtask: SubtaskId,
        /// Its name for people.
        name: String,
        /// Why.
        #[source]
        source: Box<TaskFailure>,
    },
    /// A source's enumerator failed.
    #[error("the enumerator of source \"{source_name}\" failed: {}", source.full_text())]
    Enumerator {
        /// The source's name for people.
        source_name: String,
        /// Why.
        #[source]
        source: ConnectorError,
    },
    /// Too many checkpoints failed in a row.
    #[error("{failures} checkpoints failed in a row, {tolerable} are tolerable; the last one: {last}")]
    CheckpointsFailed {
        /// How many.
        failures: u32,
        /// How many are borne.
        tolerable: u32,
        /// Why the last one failed.
        #[source]
        last: FailureReason,
    },
    /// Each barrier since the newest completed checkpoint takes one of the places that a sink has for transactions.
    #[error(
        "no place is left for another transaction: {barriers} barriers have passed since the newest completed checkpoint, and a sink \
         holds one transaction for each\n  help: see why they did not complete; raise tolerable_failures if they may"
    )]
    NoTransactionPlace {
        /// How many.
        barriers: u32,
    },
    /// The job was being canceled when it failed.
    #[error("while the job was being canceled: {0}")]
    WhileCanceling(#[source] Box<AttemptFailure>),
}

impl AttemptFailure {
    /// Whether a restart from the newest completed checkpoint may help.
    pub fn restartable(&self) -> bool {
        match self {
            Self::Task { source, .. } => match source.as_ref() {
                TaskFailure::Operator { restartable, .. } => *restartable,
                TaskFailure::TakenOver { .. } | TaskFailure::Lost(_) => false,
            },
            Self::WhileCanceling(_) => false,
            Self::Enumerator { source, .. } => source.restartable,
            Self::CheckpointsFailed { .. } | Self::NoTransactionPlace { .. } => true,
        }
    }
}
