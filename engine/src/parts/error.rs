//! What the protocol itself can refuse.
//!
//! Owns: the cases, their words, whether a restart may help. Does not own: failures of the file system (they come from the folder).
//! Runs on: plain data.

use crate::api::ConnectorError;
use crate::operator::TransactionName;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// Something else has the name of a finished file.
    #[error(
        "{finished} stands in the output folder with other content than the pending {pending} of {name}; a finished file is never \
         overwritten: move the one that is in the way out of the folder"
    )]
    NameTaken {
        /// The finished file.
        finished: String,
        /// The pending file.
        pending: String,
        /// The transaction.
        name: Box<TransactionName>,
    },
    /// A write failed or was cut short before: its records are no longer held.
    #[error(
        "the open part files of {name} failed before; their records are gone, restart from the last checkpoint"
    )]
    WriterBroken {
        /// The transaction.
        name: Box<TransactionName>,
    },
    /// What lies in the staging folder does not become less.
    #[error("files of {name} come back as fast as they are removed; see which other process writes them")]
    ComesBack {
        /// The transaction.
        name: Box<TransactionName>,
    },
}

impl From<PartError> for ConnectorError {
    fn from(error: PartError) -> Self {
        match error {
            PartError::NameTaken { .. } => Self::fatal(error),
            PartError::WriterBroken { .. } | PartError::ComesBack { .. } => Self::transient(error),
        }
    }
}
