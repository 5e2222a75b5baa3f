//! What can go wrong with a folder of part files.
//!
//! Owns: the cases, their words, and whether a restart may help. Does not own: what the protocol refuses
//! ([`tidegate_engine::parts::PartError`]). Runs on: plain data.

use std::io;
use std::path::{Path, PathBuf};

use tidegate_engine::api::ConnectorError;
use tidegate_engine::io::IoGone;

use super::BucketRefusal;

/// A failure of the file sink.
#[derive(Debug, thiserror::Error)]
pub enum FileSinkError {
    /// A limit of 0.
    #[error("the file sink into {}: {limit} of 0 would never let a part grow; give it a value above 0", folder.display())]
    LimitZero {
        /// The output folder.
        folder: PathBuf,
        /// Which limit.
        limit: &'static str,
    },
    /// An extension that cannot be part of a name.
    #[error(
        "the file sink into {}: the extension {extension:?} is not 1 to 16 letters, digits and dots, with no dot at its ends",
        folder.display()
    )]
    BadExtension {
        /// The output folder.
        folder: PathBuf,
        /// The extension.
        extension: String,
    },
    /// A file is where the folder should be.
    #[error("the output folder {} cannot be: {} is not a folder; give another one", folder.display(), path.display())]
    NotAFolder {
        /// The output folder.
        folder: PathBuf,
        /// The path, it or one above it.
        path: PathBuf,
    },
    /// This user has no right to write.
    #[error(
        "the output folder {} cannot be written by this user ({doing} {}); change its permissions, or give another one",
        folder.display(), path.display()
    )]
    NotWritable {
        /// The output folder.
        folder: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// No file system for this sink.
    #[error(
        "the output folder {} is on a file system without hard links, and a part is published by one; give a folder elsewhere",
        folder.display()
    )]
    NoHardLinks {
        /// The output folder.
        folder: PathBuf,
        /// What the system says; nothing if a link replaced a name that was taken.
        #[source]
        source: Option<io::Error>,
    },
    /// No space.
    #[error(
        "{doing} {} failed: the disk is full; make room in {}, the job goes on from its last checkpoint",
        path.display(), folder.display()
    )]
    DiskFull {
        /// The output folder.
        folder: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// Anything else that the file system can answer.
    #[error("{doing} {} failed", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On which path.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// A bucket that is no folder name.
    #[error(
        "record {record} of this subtask for {}: the bucket {bucket:?} is no simple folder name: {refusal}",
        folder.display()
    )]
    Bucket {
        /// The output folder.
        folder: PathBuf,
        /// The record, from 1, among those this subtask wrote in this attempt.
        record: u64,
        /// What the function gave.
        bucket: String,
        /// Why it is refused.
        refusal: BucketRefusal,
    },
    /// A record that has no line.
    #[error("record {record} of this subtask for {} cannot be encoded", folder.display())]
    Encode {
        /// The output folder.
        folder: PathBuf,
        /// The record, from 1, among those this subtask wrote in this attempt.
        record: u64,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A record that would be two lines.
    #[error(
        "record {record} of this subtask for {} has a line break in it and would be read as several records; encode it as JSON, or \
         escape it",
        folder.display()
    )]
    LineBreak {
        /// The output folder.
        folder: PathBuf,
        /// The record, from 1, among those this subtask wrote in this attempt.
        record: u64,
    },
    /// The I/O side went away.
    #[error("{doing} {} was cut short", path.display())]
    CutShort {
        /// What was tried.
        doing: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why.
        #[source]
        source: IoGone,
    },
}

/// Whether the system says that there is no room.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl FileSinkError {
    /// Sorts an answer of the system by what it asks people to do.
    pub(crate) fn of(folder: &Path, doing: &'static str, path: &Path, source: io::Error) -> Self {
        let (folder, path) = (folder.to_owned(), path.to_owned());
        match source.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                Self::NotWritable { folder, doing, path, source }
            }
            io::ErrorKind::NotADirectory => Self::NotAFolder { folder, path },
            _ if is_full(&source) => Self::DiskFull { folder, doing, path, source },
            _ => Self::Io { doing, path, source },
        }
    }

    /// Whether a restart from the last checkpoint may help.
    pub fn is_restartable(&self) -> bool {
        match self {
            Self::NotWritable { .. } | Self::DiskFull { .. } | Self::Io { .. } | Self::CutShort { .. } => {
                true
            }
            Self::LimitZero { .. }
            | Self::BadExtension { .. }
            | Self::NotAFolder { .. }
            | Self::NoHardLinks { .. }
            | Self::Bucket { .. }
            | Self::Encode { .. }
            | Self::LineBreak { .. } => false,
        }
    }
}

impl From<FileSinkError> for ConnectorError {
    fn from(error: FileSinkError) -> Self {
        let connector = if error.is_restartable() { Self::transient(&error) } else { Self::fatal(&error) };
        match error {
            FileSinkError::NotWritable { source, .. }
            | FileSinkError::DiskFull { source, .. }
            | FileSinkError::Io { source, .. }
            | FileSinkError::NoHardLinks { source: Some(source), .. } => connector.caused_by(source),
            FileSinkError::Encode { source, .. } => connector.caused_by(source),
            FileSinkError::CutShort { source, .. } => connector.caused_by(source),
            _ => connector,
        }
    }
}
