//! What can go wrong with a directory of partitions.
//!
//! Owns: the cases, their words and whether a restart may help. Does not own: the policy for broken lines. Runs on: plain data.

use std::io;
use std::path::PathBuf;

use tidegate_engine::api::ConnectorError;
use tidegate_engine::io::IoGone;

/// A failure of the file source.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The directory is not there.
    #[error("the input folder {} does not exist; create it or give another one", folder.display())]
    FolderMissing {
        /// The folder.
        folder: PathBuf,
    },
    /// The input is not a directory.
    #[error("the input {} is not a folder; give the folder that holds the partition files", folder.display())]
    NotAFolder {
        /// The path.
        folder: PathBuf,
    },
    /// The directory has no file to read.
    #[error(
        "the input folder {} holds no file (hidden files, those that begin with `_` or end in `.tmp`, and folders do not count); \
         put partition files into it, or read it unbounded to wait for them",
        folder.display()
    )]
    FolderEmpty {
        /// The folder.
        folder: PathBuf,
    },
    /// A file name that is not text cannot be kept in state.
    #[error("the name of {} is not valid UTF-8; rename the file", file.display())]
    NameNotText {
        /// The file.
        file: PathBuf,
    },
    /// A rate of 0.
    #[error("a rate of 0 records per second never ends; leave the rate away for no limit")]
    RateZero,
    /// A file that was handed out is gone.
    #[error(
        "{} is gone, but it was read up to line {line} (byte {offset}); put it back, or start without restoring",
        file.display()
    )]
    Vanished {
        /// The file.
        file: PathBuf,
        /// Lines read.
        line: u64,
        /// Bytes read.
        offset: u64,
    },
    /// A file is shorter than its position, or than it was at discovery.
    #[error(
        "{} was truncated: it has {length} bytes, but had at least {expected}; a partition may only grow: put the file back as it \
         was, or start without restoring",
        file.display()
    )]
    Truncated {
        /// The file.
        file: PathBuf,
        /// Its length now.
        length: u64,
        /// The length it had.
        expected: u64,
    },
    /// The bytes before the position are not those that were read.
    #[error(
        "{} was replaced: the {window} bytes before line {} (byte {offset}) are not those that were read; a partition may only \
         grow: put the file back as it was, or start without restoring",
        file.display(), line + 1
    )]
    Replaced {
        /// The file.
        file: PathBuf,
        /// Lines read.
        line: u64,
        /// Bytes read.
        offset: u64,
        /// How many bytes were compared.
        window: usize,
    },
    /// A line that is no record.
    #[error(
        "{}:{line}:{column}: not a record: {problem}; mend the line, or choose to skip broken lines (--broken-lines skip, \
         where the job has this flag; `.on_broken_line(BrokenLine::Skip)` in its code)",
        file.display()
    )]
    BrokenLine {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The column, from 1.
        column: usize,
        /// What the parser says.
        problem: String,
    },
    /// A line that does not end.
    #[error(
        "{}:{line}: the line is longer than {limit_bytes} bytes; is this a file of lines?",
        file.display()
    )]
    LineTooLong {
        /// The file.
        file: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The limit.
        limit_bytes: usize,
    },
    /// This user has no right to read.
    #[error("{} cannot be read by this user; give the right to read it and start again", path.display())]
    NotReadable {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        #[source]
        source: io::Error,
    },
    /// The file system refused.
    #[error("{} of {} failed", doing, file.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// The file or folder.
        file: PathBuf,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// The I/O side went away.
    #[error("reading {} was cut short", file.display())]
    CutShort {
        /// The file or folder.
        file: PathBuf,
        /// Why.
        #[source]
        source: IoGone,
    },
}

impl FileError {
    /// Whether a restart from the last checkpoint may help.
    pub fn is_restartable(&self) -> bool {
        matches!(self, Self::Io { .. } | Self::CutShort { .. })
    }
}

impl From<FileError> for ConnectorError {
    fn from(error: FileError) -> Self {
        let connector = if error.is_restartable() { Self::transient(&error) } else { Self::fatal(&error) };
        match error {
            FileError::Io { source, .. } | FileError::NotReadable { source, .. } => {
                connector.caused_by(source)
            }
            FileError::CutShort { source, .. } => connector.caused_by(source),
            _ => connector,
        }
    }
}
