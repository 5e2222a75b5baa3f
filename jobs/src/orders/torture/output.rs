//! What stands in the database of a process that has died.
//!
//! Owns: two counts, read without writing anything: the next process must find the file as the dead one left it.
//! Does not own: the comparison with the input ([`crate::verify`]).
//! Runs on: the main thread.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, OptionalExtension};

/// The counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Output {
    /// Rows of `t_order_log`: orders whose effect is there, doubles included.
    pub(crate) orders: u64,
    /// Transactions that are staged and not decided.
    pub(crate) staged: u64,
}

impl Output {
    /// Reads both; a table or a file that is not there yet holds nothing.
    ///
    /// # Errors
    /// What SQLite says.
    pub(crate) fn of(database: &Path) -> rusqlite::Result<Self> {
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_yet_holds_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("out.sqlite");
        assert_eq!(Output::of(&file).unwrap(), Output::default());
        let connection = Connection::open(&file).unwrap();
        connection
            .execute_batch(
                "CREATE TABLE t_order_log (order_id INTEGER); INSERT INTO t_order_log VALUES (1), (1);",
            )
            .unwrap();
        assert_eq!(Output::of(&file).unwrap(), Output { orders: 2, staged: 0 });
    }
}
