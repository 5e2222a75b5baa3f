//! What can go wrong with a SQLite file.
//!
//! Owns: the cases, their words, and whether a restart may help. Does not own: retries (the engine's driver). Runs on: plain data.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use tidegate_engine::api::ConnectorError;
use tidegate_engine::io::IoGone;

use super::{LockHolder, TableRefusal, ValueError};

/// A failure of the SQLite sink.
#[derive(Debug, thiserror::Error)]
pub enum SqliteError {
    /// Settings that cannot work.
    #[error("sqlite table {table} in {}: {refusal}", file.display())]
    Refused {
        /// The file.
        file: PathBuf,
        /// The table.
        table: String,
        /// Why.
        refusal: TableRefusal,
    },
    /// The folder of the file is not there.
    #[error("the folder of the SQLite file {} does not exist; create it", file.display())]
    FolderMissing {
        /// The file.
        file: PathBuf,
    },
    /// Nothing can be written where the file is or shall be: refused before anything runs.
    #[error(
        "{} cannot be written, and SQLite needs to write the file {} and others beside it\n  \
         help: give this user the right to write there, or name another file",
        place.display(), file.display()
    )]
    NotWritable {
        /// The file.
        file: PathBuf,
        /// The file or its folder, whichever cannot be written.
        place: PathBuf,
        /// What the system says.
        #[source]
        source: std::io::Error,
    },
    /// The table is there with other columns.
    #[error(
        "the table {table} in {} does not fit this sink\n  was  {was}\n  is   {is}\n  help: use another table or file, or change \
         the table by hand",
        file.display()
    )]
    TableMismatch {
        /// The file.
        file: PathBuf,
        /// The table.
        table: String,
        /// What is in the file.
        was: String,
        /// What the sink wants.
        is: String,
    },
    /// A value does not fit its column.
    #[error("row {row} for the table {table}: column \"{column}\": {source}")]
    Value {
        /// The table.
        table: String,
        /// The column.
        column: String,
        /// The row, from 1, among those this subtask wrote in this attempt.
        row: u64,
        /// Why.
        source: ValueError,
    },
    /// Two rows of one key where rows are only appended.
    #[error(
        "the table {table} in {} already has a row with the key {key}; a sink that appends never replaces a row: let it overwrite \
         by its key, or find out why the key comes twice",
        file.display()
    )]
    KeyTaken {
        /// The file.
        file: PathBuf,
        /// The table.
        table: String,
        /// The key columns and their values.
        key: String,
        /// What SQLite says.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// The file is locked by another process.
    #[error("{doing} in {} waited in vain: {} has the file locked; let it finish or stop it", file.display(), named(holder))]
    Busy {
        /// The file.
        file: PathBuf,
        /// What was tried.
        doing: String,
        /// Who has it locked, if the system tells.
        holder: Option<LockHolder>,
        /// What SQLite says.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// No space.
    #[error("{doing} in {} failed: the disk is full; make room and start again", file.display())]
    DiskFull {
        /// The file.
        file: PathBuf,
        /// What was tried.
        doing: String,
        /// What SQLite says.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// The file or its folder cannot be written.
    #[error("{doing} in {} failed: the file or its folder cannot be written; change its permissions and start again", file.display())]
    ReadOnly {
        /// The file.
        file: PathBuf,
        /// What was tried.
        doing: String,
        /// What SQLite says.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// The file that was opened is no longer at its path.
    #[error(
        "{} was deleted or replaced while the job ran, and what is written now would be lost; bring the file back, or start over \
         with --restore none",
        file.display()
    )]
    Vanished {
        /// The file.
        file: PathBuf,
        /// What the system says; nothing if another file is there now.
        #[source]
        source: Option<std::io::Error>,
    },
    /// Not a database, or a damaged one.
    #[error("{} is not a SQLite database, or is damaged; use another file, or restore it from a backup", file.display())]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What SQLite says.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// Anything else a statement can meet.
    #[error("{doing} in {} failed", file.display())]
    Statement {
        /// The file.
        file: PathBuf,
        /// What was tried.
        doing: String,
        /// What SQLite says.
        #[source]
        source: Box<rusqlite::Error>,
    },
    /// A transaction whose earlier statement failed: its rows are no longer held.
    #[error(
        "the open transaction for the table {table} failed before; its rows are gone, restart from the last checkpoint"
    )]
    WriterBroken {
        /// The table.
        table: String,
    },
    /// The I/O side went away.
    #[error("writing to {} was cut short", file.display())]
    CutShort {
        /// The file.
        file: PathBuf,
        /// Why.
        #[source]
        source: IoGone,
    },
}

fn named(holder: &Option<LockHolder>) -> String {
    holder.as_ref().map_or_else(|| "another process".to_owned(), LockHolder::to_string)
}

impl SqliteError {
    /// Sorts an answer of SQLite by what it asks people to do.
    pub(crate) fn of(file: &Path, doing: impl Into<String>, source: rusqlite::Error) -> Self {
        let (file, doing) = (file.to_owned(), doing.into());
        let code = source.sqlite_error_code();
        let source = Box::new(source);
        match code {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::Busy { holder: LockHolder::of(&file), file, doing, source }
            }
            Some(ErrorCode::DiskFull) => Self::DiskFull { file, doing, source },
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                Self::ReadOnly { file, doing, source }
            }
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Self::Damaged { file, source },
            _ => Self::Statement { file, doing, source },
        }
    }

    /// Whether a restart from the last checkpoint may help.
    pub fn is_restartable(&self) -> bool {
        match self {
            Self::Busy { .. }
            | Self::DiskFull { .. }
            | Self::ReadOnly { .. }
            | Self::WriterBroken { .. }
            | Self::CutShort { .. } => true,
            // The same rows would meet the same constraint again.
            Self::Statement { source, .. } => {
                source.sqlite_error_code() != Some(ErrorCode::ConstraintViolation)
            }
            Self::Refused { .. }
            | Self::FolderMissing { .. }
            | Self::NotWritable { .. }
            | Self::TableMismatch { .. }
            | Self::Value { .. }
            | Self::KeyTaken { .. }
            | Self::Vanished { .. }
            | Self::Damaged { .. } => false,
        }
    }
}

impl From<SqliteError> for ConnectorError {
    fn from(error: SqliteError) -> Self {
        let connector = if error.is_restartable() { Self::transient(&error) } else { Self::fatal(&error) };
        match error {
            SqliteError::KeyTaken { source, .. }
            | SqliteError::Busy { source, .. }
            | SqliteError::DiskFull { source, .. }
            | SqliteError::ReadOnly { source, .. }
            | SqliteError::Damaged { source, .. }
            | SqliteError::Statement { source, .. } => connector.caused_by(source),
            SqliteError::CutShort { source, .. } => connector.caused_by(source),
            SqliteError::Vanished { source: Some(source), .. } | SqliteError::NotWritable { source, .. } => {
                connector.caused_by(source)
            }
            _ => connector,
        }
    }
}
