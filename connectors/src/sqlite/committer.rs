//! Merges prepared transactions into their table, lists undecided ones, rolls them back.
//!
//! Owns: the SQL transaction in which merge, ledger and drop happen together or not at all. Does not own: which transaction is
//! committed or rolled back, and when. Runs on: the I/O side.

use std::path::Path;

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, ffi};
use tidegate_engine::api::{Committer, ConnectorError, Prepared};
use tidegate_engine::clock::SharedClock;
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::operator::{CommitOutcome, TransactionName, TransactionScope};
use tidegate_state::fault_point;

use super::database::{Database, on_database};
use super::sink::Target;
use super::table::{TableSpec, quoted, quoted_list};
use super::{SqliteError, StagedRows, staging};

/// Pause before a commit is asked for again when another process has the file locked (which already took the busy timeout).
const RETRY_MS: u64 = 100;

/// Committer of a [`super::SqliteSink`].
pub struct SqliteCommitter {
    target: Target,
    scope: TransactionScope,
    clock: SharedClock,
}

impl SqliteCommitter {
    pub(crate) fn new(target: Target, scope: TransactionScope, clock: SharedClock) -> Self {
        Self { target, scope, clock }
    }
}

impl Committer for SqliteCommitter {
    type Committable = StagedRows;

    async fn commit(&mut self, item: &Prepared<StagedRows>) -> Result<CommitOutcome, ConnectorError> {
        let (item, spec, now_ms) = (item.clone(), self.target.spec.clone(), self.clock.wall_ms());
        let merged = on_database(&self.target.io, &self.target.database, move |database| {
            database.write(&format!("merging into the table {}", spec.name), |transaction| {
                merge(transaction, database.file(), &spec, &item, now_ms)
            })
        });
        match merged.await {
            Ok(outcome) => Ok(outcome),
            Err(busy @ SqliteError::Busy { .. }) => {
                Ok(CommitOutcome::RetryAfter { ms: RETRY_MS, reason: busy.to_string() })
            }
            Err(error) => Err(error.into()),
        }
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        let scope = self.scope.clone();
        let listed = on_database(&self.target.io, &self.target.database, move |database: &Database| {
            database.read("listing staged transactions", |connection| staging::list(connection, &scope))
        });
        Ok(listed.await?)
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        let name = name.clone();
        let dropped = on_database(&self.target.io, &self.target.database, move |database: &Database| {
            let doing = format!("rolling back {name}");
            database.write(&doing, |transaction| {
                staging::drop(transaction, &name).map_err(|e| SqliteError::of(database.file(), &doing, e))
            })
        });
        Ok(dropped.await?)
    }

    async fn newest_committed(&mut self, since: AttemptId) -> Result<Option<CheckpointId>, ConnectorError> {
        let scope = self.scope.clone();
        let newest = on_database(&self.target.io, &self.target.database, move |database: &Database| {
            database.read("looking for the newest transaction in the ledger", |connection| {
                staging::newest_merged(connection, &scope, since)
            })
        });
        Ok(newest.await?)
    }
}

/// Decides one transaction, inside a SQL transaction: the ledger first, then the staging table.
fn merge(
    connection: &Connection,
    file: &Path,
    spec: &TableSpec,
    item: &Prepared<StagedRows>,
    now_ms: i64,
) -> Result<CommitOutcome, SqliteError> {
    let sorted = |e| SqliteError::of(file, format!("merging {} into the table {}", item.name, spec.name), e);
    if staging::is_merged(connection, &item.name).map_err(sorted)? {
        return Ok(CommitOutcome::AlreadyCommitted);
    }
    let Some(table) = staging::find(connection, &item.name).map_err(sorted)? else {
        let reason = format!(
            "{} has neither a staging table nor a ledger row for it: it was rolled back, or this is another file",
            file.display()
        );
        return Ok(CommitOutcome::Lost { reason });
    };
    let (there, expected) =
        (staging::count_rows(connection, &table).map_err(sorted)?, staging::number(item.committable.rows));
    if there != expected {
        let reason =
            format!("its staging table {table} in {} holds {there} rows of {expected}", file.display());
        return Ok(CommitOutcome::Lost { reason });
    }
    if let Err(error) = connection.execute(&spec.merge_sql(&table), []) {
        return Err(match taken_key(connection, spec, &table, &error) {
            Some(key) => {
                let (file, table) = (file.to_owned(), spec.name.clone());
                SqliteError::KeyTaken { file, table, key, source: Box::new(error) }
            }
            None => sorted(error),
        });
    }
    fault_point!("sqlite.merge.between");
    let rows = item.committable.rows;
    staging::note_merged(connection, &item.name, &spec.name, item.closed_by, rows, now_ms)
        .and_then(|()| staging::drop(connection, &item.name))
        .map_err(sorted)?;
    Ok(CommitOutcome::Committed)
}

/// Whether SQLite refused a second row of one key.
pub(crate) fn is_taken_key(error: &rusqlite::Error) -> bool {
    let code = match error {
        rusqlite::Error::SqliteFailure(failure, _) => failure.extended_code,
        _ => return false,
    };
    code == ffi::SQLITE_CONSTRAINT_PRIMARYKEY || code == ffi::SQLITE_CONSTRAINT_UNIQUE
}

/// The key that stood in the way of a merge, as `column = value`: one of the target's, or one that is staged twice.
fn taken_key(
    connection: &Connection,
    spec: &TableSpec,
    staging: &str,
    error: &rusqlite::Error,
) -> Option<String> {
    if !is_taken_key(error) || spec.key.is_empty() {
        return None;
    }
    let (staging, target) = (quoted(staging), quoted(&spec.name));
    let key = quoted_list(spec.key.iter().map(String::as_str));
    let same: Vec<String> =
        spec.key.iter().map(|name| quoted(name)).map(|name| format!("t.{name} = s.{name}")).collect();
    let in_target = format!(
        "SELECT {key} FROM {staging} AS s WHERE EXISTS (SELECT 1 FROM {target} AS t WHERE {}) LIMIT 1",
        same.join(" AND ")
    );
    let twice = format!("SELECT {key} FROM {staging} GROUP BY {key} HAVING count(*) > 1 LIMIT 1");
    let found = [in_target, twice].iter().find_map(|sql| {
        let values = connection.query_row(sql, [], |row| {
            (0..spec.key.len()).map(|index| row.get(index)).collect::<rusqlite::Result<Vec<Value>>>()
        });
        values.optional().ok().flatten()
    });
    Some(key_text(spec, &found.unwrap_or_default()))
}

/// A key as people read it.
pub(crate) fn key_text(spec: &TableSpec, values: &[Value]) -> String {
    let text = |(index, name): (usize, &String)| match values.get(index) {
        Some(Value::Integer(number)) => format!("{name} = {number}"),
        Some(Value::Real(number)) => format!("{name} = {number}"),
        Some(Value::Text(text)) => format!("{name} = '{text}'"),
        Some(Value::Blob(bytes)) => format!("{name} = {} bytes", bytes.len()),
        Some(Value::Null) | None => name.clone(),
    };
    spec.key.iter().enumerate().map(text).collect::<Vec<_>>().join(", ")
}
