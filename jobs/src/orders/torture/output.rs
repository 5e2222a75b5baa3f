//! What stands in the output of a process that has died.
//!
//! Owns: two counts, read without writing anything: the next process must find the database as the dead one left it.
//! Does not own: the comparison with the input ([`crate::verify`]).
//! Runs on: the main thread.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, OptionalExtension};

use crate::address::SinkAddress;

/// The counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Output {
    /// Rows of `t_order_log`, or records of a topic: orders whose effect is there, doubles included.
    pub(crate) orders: u64,
    /// Transactions that are staged and not decided.
    pub(crate) staged: u64,
}

/// Why they cannot be had.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadOutputError {
    /// A file.
    #[error("cannot read {database} after a kill\n  help: nothing but the job may hold the file")]
    Sqlite {
        /// The file.
        database: PathBuf,
        /// What SQLite says.
        #[source]
        source: rusqlite::Error,
    },
    /// A server.
    #[cfg(feature = "mysql")]
    #[error(transparent)]
    Mysql(#[from] crate::database::DatabaseError),
    /// A broker.
    #[cfg(feature = "rdkafka")]
    #[error(transparent)]
    Kafka(#[from] crate::topic::TopicError),
}

impl Output {
    /// Reads both; a table or a file that is not there yet holds nothing.
    ///
    /// # Errors
    /// [`ReadOutputError`].
    #[cfg_attr(
        not(any(feature = "mysql", feature = "rdkafka")),
        expect(unused_variables, reason = "only a server's transactions bear the log's id")
    )]
    pub(crate) fn of(sink: &SinkAddress, checkpoints: &Path) -> Result<Self, ReadOutputError> {
        match sink {
            SinkAddress::Sqlite(file) => Self::of_file(file)
                .map_err(|source| ReadOutputError::Sqlite { database: file.clone(), source }),
            #[cfg(feature = "mysql")]
            SinkAddress::Mysql(address) => Ok(Self::of_server(address, checkpoints)?),
            #[cfg(feature = "rdkafka")]
            SinkAddress::Kafka(address) => {
                let orders = crate::topic::read::count(address)?;
                let staged = match crate::log_id::log_id(checkpoints) {
                    Some(log_id) => crate::topic::admin::open_transactions(address, &log_id)?,
                    None => 0,
                };
                Ok(Self { orders, staged })
            }
            // Nothing can be asked of these; torture refuses them.
            _ => Ok(Self::default()),
        }
    }

    fn of_file(database: &Path) -> rusqlite::Result<Self> {
        if !database.is_file() {
            return Ok(Self::default());
        }
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(database, flags)?;
        let rows = |table: &str| -> rusqlite::Result<u64> {
            let there = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
            if connection.query_row(there, [table], |_| Ok(())).optional()?.is_none() {
                return Ok(0);
            }
            let count: i64 =
                connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0))?;
            Ok(count.unsigned_abs())
        };
        Ok(Self { orders: rows("t_order_log")?, staged: rows("tidegate_staging")? })
    }

    #[cfg(feature = "mysql")]
    fn of_server(
        address: &crate::address::servers::MysqlAddress,
        checkpoints: &Path,
    ) -> Result<Self, crate::database::DatabaseError> {
        use crate::database::{Session, leftover, tables};
        let mut session = Session::open(address)?;
        let orders = tables::rows_of(&mut session, "t_order_log")?.unwrap_or_default();
        let branches = match crate::log_id::log_id(checkpoints) {
            Some(log_id) => leftover::branches(&mut session, &log_id)?.len(),
            None => 0,
        };
        let staged = branches + leftover::staging_tables(&mut session)?.len();
        Ok(Self { orders, staged: staged as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_yet_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.sqlite");
        let sink = SinkAddress::Sqlite(file.clone());
        assert_eq!(Output::of(&sink, folder.path()).unwrap(), Output::default());
        let connection = Connection::open(&file).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t_order_log (order_id INTEGER); INSERT INTO t_order_log VALUES (1), (1);",
            )
            .unwrap();
        assert_eq!(Output::of(&sink, folder.path()).unwrap(), Output { orders: 2, staged: 0 });
    }
}
