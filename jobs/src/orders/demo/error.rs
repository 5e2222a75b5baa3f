//! What can keep the demo from its end.
//!
//! Owns: the enum.
//! Does not own: the failures of the steps it is made of.
//! Runs on: the main thread.

use std::io;

use crate::attempt::AttemptError;
use crate::import::ImportError;
use crate::verify::VerifyError;
use crate::work_folder::WorkFolderError;
use tidegate_jobs::output_folder::OutputError;

/// What can keep the demo from its end.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DemoError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] WorkFolderError),
    /// The path of this program is unknown, so that it cannot start itself.
    #[error("cannot find the path of this program\n  help: start it by its path, as scripts/orders does")]
    Program(#[source] io::Error),
    /// Making up orders, or writing the report.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Importing the purchases.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// The run that was to be killed.
    #[error("the run that was to be killed did not come to that")]
    FirstRun(#[source] AttemptError),
    /// The run after the kill.
    #[error("the run after the kill did not finish")]
    SecondRun(#[source] AttemptError),
    /// The second run began further back than it must.
    #[error(
        "the second run restored {}, although checkpoint {} was complete",
        restored.map_or_else(|| "nothing".to_owned(), |id| format!("checkpoint {id}")),
        complete.map_or_else(|| "?".to_owned(), |id| id.to_string())
    )]
    NotRestored {
        /// What it restored.
        restored: Option<u64>,
        /// What the first run had completed.
        complete: Option<u64>,
    },
    /// The tables could not be compared.
    #[error(transparent)]
    Verify(#[from] VerifyError),
}
