//! The tables as they stand in a SQLite database.
//!
//! Owns: the connection (read-only), the queries, and what they need of the tables.
//! Does not own: how the tables came about.
//! Runs on: the main thread of `verify`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, OptionalExtension};

use super::VerifyError;
use super::expected::{EventRow, Expected, LogRow, TotalRow};
use super::tally::{Row, Tally};
use super::verdict::{TableVerdict, Verdict};

/// A table, and its columns with the id first.
#[derive(Debug, Clone, Copy)]
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static str,
}

pub(super) const ORDER_EVENT: Table =
    Table { name: "t_order_event", columns: "order_id, user_id, amount_cents, status, event_time_ms" };
pub(super) const ORDER_LOG: Table =
    Table { name: super::verdict::ORDER_LOG, columns: "order_id, user_id, amount_cents" };
pub(super) const ORDER_STAT: Table =
    Table { name: "t_order_stat", columns: "user_id, order_count, total_amount_cents" };
pub(super) const USER_TOTAL: Table =
    Table { name: "t_user_total", columns: "user_id, order_count, total_amount_cents" };

/// A database, open for reading.
#[derive(Debug)]
pub(crate) struct Database {
    file: PathBuf,
    connection: Connection,
}

impl Database {
    /// Opens `file`, and waits for locks as long as `patience`.
    ///
    /// # Errors
    /// [`VerifyError::NoDatabase`], [`VerifyError::Open`].
    pub(crate) fn open(file: &Path, patience: Duration) -> Result<Self, VerifyError> {
        if !file.is_file() {
            return Err(VerifyError::NoDatabase { file: file.into() });
        }
        let connect = || {
            let connection = Connection::open_with_flags(
                file,
                OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
            )?;
            connection.busy_timeout(patience)?;
            Ok(connection)
        };
        let connection = connect().map_err(|source| VerifyError::Open { file: file.into(), source })?;
        Ok(Self { file: file.into(), connection })
    }

    /// Reads all tables as of one moment and compares them.
    ///
    /// # Errors
    /// [`VerifyError::Locked`], [`VerifyError::NoTable`], [`VerifyError::Table`].
    pub(crate) fn compare(mut self, expected: &Expected) -> Result<Verdict, VerifyError> {
        let file = self.file;
        let moment = self
            .connection
            .transaction()
            .map_err(|source| VerifyError::Open { file: file.clone(), source })?;
        let reader = Reader { file: &file, connection: &moment };
        let total = |row: &rusqlite::Row<'_>| {
            Ok(TotalRow { order_count: row.get(1)?, total_amount_cents: row.get(2)? })
        };
        let event = reader.compare(ORDER_EVENT, Tally::against(&expected.events), |row| {
            Ok(EventRow {
                user_id: row.get(1)?,
                amount_cents: row.get(2)?,
                status: row.get(3)?,
                event_time_ms: row.get(4)?,
            })
        })?;
        let log = reader.compare(ORDER_LOG, Tally::against(&expected.log), |row| {
            Ok(LogRow { user_id: row.get(1)?, amount_cents: row.get(2)? })
        })?;
        let stat = reader.compare(ORDER_STAT, Tally::against(&expected.totals), total)?;
        let user = reader.compare(USER_TOTAL, Tally::against(&expected.totals), total)?;
        Ok(Verdict::of([
            (ORDER_EVENT.name, event),
            (ORDER_LOG.name, log),
            (ORDER_STAT.name, stat),
            (USER_TOTAL.name, user),
        ]))
    }
}

struct Reader<'a> {
    file: &'a Path,
    connection: &'a Connection,
}

impl Reader<'_> {
    fn compare<R: Row>(
        &self,
        table: Table,
        mut tally: Tally<'_, R>,
        read: impl Fn(&rusqlite::Row<'_>) -> rusqlite::Result<R>,
    ) -> Result<TableVerdict, VerifyError> {
        let failed = |source| self.failed(table, source);
        if !self.exists(table).map_err(failed)? {
            return Err(VerifyError::NoTable { file: self.file.into(), table: table.name });
        }
        let query = format!("SELECT {} FROM {}", table.columns, table.name);
        let mut statement = self.connection.prepare(&query).map_err(failed)?;
        let mut rows = statement.query(()).map_err(failed)?;
        while let Some(row) = rows.next().map_err(failed)? {
            tally.add(row.get(0).map_err(failed)?, &read(row).map_err(failed)?);
        }
        Ok(tally.finish())
    }

    fn exists(&self, table: Table) -> rusqlite::Result<bool> {
        let query = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?1";
        Ok(self.connection.query_row(query, [table.name], |_| Ok(())).optional()?.is_some())
    }

    fn failed(&self, table: Table, source: rusqlite::Error) -> VerifyError {
        let file = self.file.to_path_buf();
        match source.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => VerifyError::Locked { file, source },
            Some(ErrorCode::NotADatabase) => VerifyError::Open { file, source },
            _ => VerifyError::Table { file, table: table.name, columns: table.columns, source },
        }
    }
}
