//! What can keep a torture run from its end.
//!
//! Owns: the enum.
//! Does not own: the failures of the steps it is made of.
//! Runs on: the main thread.

use std::io;
use std::path::PathBuf;

use super::checkpoint_folder::FolderError;
use super::output::ReadOutputError;
use crate::attempt::AttemptError;
use crate::ground::GroundError;
use crate::import::ImportError;
use crate::verify::VerifyError;
use crate::work_folder::WorkFolderError;
use tidegate_jobs::output_folder::OutputError;

/// What can keep a torture run from its end. Tables that differ and controls without damage are no errors but exit status 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TortureError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] WorkFolderError),
    /// The path of this program is unknown, so that it cannot start itself.
    #[error("cannot find the path of this program\n  help: start it by its path")]
    Program(#[source] io::Error),
    /// Making up orders.
    #[error(transparent)]
    Output(#[from] OutputError),
    /// Importing the purchases.
    #[error(transparent)]
    Import(#[from] ImportError),
    /// A run that was to die did not.
    #[error(
        "kill {number} ({place}) was not made\n  help: the same --seed makes the same kills; try more --orders"
    )]
    NotKilled {
        /// Which one, from 1.
        number: usize,
        /// Where it was to fall.
        place: String,
        /// What happened instead.
        #[source]
        source: AttemptError,
    },
    /// A run died too often before there was a checkpoint, or after the input was read.
    #[error(
        "kill {number} ({place}) does not count after {tries} tries: no checkpoint was complete, or no input was left\n  \
         help: give more --orders, or a shorter --checkpoint-interval"
    )]
    NotCounted {
        /// Which one, from 1.
        number: usize,
        /// Where it was to fall.
        place: String,
        /// How often it was tried.
        tries: u32,
    },
    /// The last run did not finish.
    #[error("the run after the last kill did not finish")]
    LastRun(#[source] AttemptError),
    /// A run began further back than it must.
    #[error(
        "after kill {number} the job restored {}, although checkpoint {complete} was complete",
        restored.map_or_else(|| "nothing".to_owned(), |id| format!("checkpoint {id}"))
    )]
    NotRestored {
        /// The kill before it.
        number: usize,
        /// What it restored.
        restored: Option<u64>,
        /// What was known to be complete.
        complete: u64,
    },
    /// The database of a dead process cannot be read.
    #[error(transparent)]
    ReadOutput(#[from] ReadOutputError),
    /// The position last read is one of a file.
    #[error(
        "{source_address} cannot be cut at the position last read\n  help: --mode at-most-once takes its own files"
    )]
    NotCut {
        /// The source.
        source_address: String,
    },
    /// The topic or the tables.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// The input cannot be cut.
    #[error("cannot cut {path} at the position last read")]
    Cut {
        /// The file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// The tables could not be compared.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The checkpoint folder could not be looked through.
    #[error(transparent)]
    Checkpoints(#[from] FolderError),
}
