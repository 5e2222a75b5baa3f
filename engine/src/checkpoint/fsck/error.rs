//! Why a folder could not be looked at.
//!
//! Owns: the errors. Does not own: what is wrong inside a folder, which is a [`super::Finding`]. Runs on: plain data.

use std::io;
use std::path::PathBuf;

use tidegate_state::StorageError;

/// A folder could not be looked at.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FsckError {
    /// The store did not answer.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A folder on disk could not be read.
    #[error("{} cannot be read\n  help: use a user who may read the checkpoint folder", path.display())]
    Walk {
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Nothing of a job lies there.
    #[error(
        "{url} is no checkpoint folder: it has no log\n  help: name the folder that the job was given as --checkpoints"
    )]
    NoFolder {
        /// What was given.
        url: String,
    },
}
