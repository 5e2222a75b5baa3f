//! The one connection of this process to a SQLite file.
//!
//! SQLite lets one connection write at a time. Sinks and subtasks that write to the same file therefore share a connection and take
//! turns on a mutex, which is fair enough and costs nothing, instead of meeting each other as "database is locked". The busy timeout
//! is left for other processes.
//!
//! Owns: connections by file, their pragmas. Does not own: tables. Runs on: the I/O side; every use is blocking work.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};
use rustix::fs::{Access, access};
use rustix::io::Errno;
use tidegate_engine::io::{SharedIo, blocking};

use super::SqliteError;

/// Files that are open in this process. Guards the map only, held while one file is looked up or opened, so that two sinks cannot
/// open it twice. A static, since sinks of one process know nothing of each other.
static OPEN_FILES: Mutex<BTreeMap<PathBuf, Weak<Database>>> = Mutex::new(BTreeMap::new());

/// A SQLite file with its only connection.
#[derive(Debug)]
pub(crate) struct Database {
    file: PathBuf,
    /// Which file that was when it was opened.
    identity: FileIdentity,
    /// Guards the connection. A mutex and no message: a transaction is one closure on a blocking thread, and never held over an await.
    connection: Mutex<Connection>,
}

impl Database {
    /// The connection to `path`, opened if no sink of this process has it open. Blocking.
    pub(crate) fn open(path: &Path, busy_timeout: Duration) -> Result<Arc<Self>, SqliteError> {
        let file = canonical(path)?;
        let mut open_files = OPEN_FILES.lock().unwrap_or_else(PoisonError::into_inner);
        open_files.retain(|_, database| database.strong_count() > 0);
        if let Some(database) = open_files.get(&file).and_then(Weak::upgrade) {
            return Ok(database);
        }
        let connection =
            connect(&file, busy_timeout).map_err(|e| SqliteError::of(&file, "opening the database", e))?;
        let identity = FileIdentity::of(&file)
            .map_err(|source| SqliteError::Vanished { file: file.clone(), source: Some(source) })?;
        let database = Arc::new(Self { file: file.clone(), identity, connection: Mutex::new(connection) });
        open_files.insert(file, Arc::downgrade(&database));
        Ok(database)
    }

    /// The file.
    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    /// The connection, for the calling thread alone. A panic of an earlier holder left no transaction open: it was rolled back when
    /// its guard was dropped.
    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` in one SQL transaction that may write; commits it if `work` succeeds. Blocking.
    pub(crate) fn write<T>(
        &self,
        doing: &str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, SqliteError>,
    ) -> Result<T, SqliteError> {
        let sorted = |e| SqliteError::of(&self.file, doing, e);
        let mut connection = self.lock();
        self.refuse_vanished()?;
        let transaction =
            connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(sorted)?;
        let result = work(&transaction)?;
        transaction.commit().map_err(sorted)?;
        Ok(result)
    }

    /// SQLite goes on writing to a file that was deleted or replaced, and says that all is well.
    fn refuse_vanished(&self) -> Result<(), SqliteError> {
        let vanished = |source| Err(SqliteError::Vanished { file: self.file.clone(), source });
        match FileIdentity::of(&self.file) {
            Ok(now) if now == self.identity => Ok(()),
            Ok(_) => vanished(None),
            Err(source) if source.kind() == io::ErrorKind::NotFound => vanished(Some(source)),
            // Not known to be gone: SQLite says what is wrong, if anything is.
            Err(_) => Ok(()),
        }
    }

    /// Lends the connection. Blocking.
    pub(crate) fn with_connection<T>(&self, work: impl FnOnce(&Connection) -> T) -> T {
        work(&self.lock())
    }

    /// Runs `work` on the connection, outside a transaction of ours. Blocking.
    pub(crate) fn read<T>(
        &self,
        doing: &str,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, SqliteError> {
        work(&self.lock()).map_err(|e| SqliteError::of(&self.file, doing, e))
    }
}

/// Device and inode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileIdentity(u64, u64);

impl FileIdentity {
    fn of(file: &Path) -> io::Result<Self> {
        file.metadata().map(|metadata| Self(metadata.dev(), metadata.ino()))
    }
}

/// Runs blocking work on a database away from slots and futures.
pub(crate) async fn on_database<T: Send + 'static>(
    io: &SharedIo,
    database: &Arc<Database>,
    work: impl FnOnce(&Database) -> Result<T, SqliteError> + Send + 'static,
) -> Result<T, SqliteError> {
    let shared = Arc::clone(database);
    let result = blocking(io, move || work(&shared)).await;
    result.map_err(|source| SqliteError::CutShort { file: database.file.clone(), source })?
}

fn connect(file: &Path, busy_timeout: Duration) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(busy_timeout)?;
    connection.pragma_update(None, "journal_mode", "wal")?;
    connection.pragma_update(None, "synchronous", "full")?;
    Ok(connection)
}

/// Refuses a file that cannot be written, or whose folder cannot: the write-ahead log and its index lie beside it. Nothing is made.
pub(crate) fn refuse_unwritable(file: &Path) -> Result<(), SqliteError> {
    let folder = file.parent().unwrap_or(Path::new("."));
    let places = [(folder, Access::WRITE_OK | Access::EXEC_OK), (file, Access::READ_OK | Access::WRITE_OK)];
    for (place, wanted) in places {
        match access(place, wanted) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(errno) => {
                let (file, place) = (file.to_owned(), place.to_owned());
                return Err(SqliteError::NotWritable { file, place, source: errno.into() });
            }
        }
    }
    Ok(())
}

/// One spelling per file, also before it exists.
pub(crate) fn canonical(path: &Path) -> Result<PathBuf, SqliteError> {
    if let Ok(file) = path.canonicalize() {
        return Ok(file);
    }
    let folder = match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    };
    let folder = folder.canonicalize().map_err(|_| SqliteError::FolderMissing { file: path.to_owned() })?;
    Ok(folder.join(path.file_name().unwrap_or(OsStr::new(""))))
}
