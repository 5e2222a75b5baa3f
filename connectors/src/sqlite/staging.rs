//! Staging tables, the registry of them, and the ledger of what was merged.
//!
//! | table | a row says |
//! |---|---|
//! | `tidegate_staging` | transaction *name* is staged in table *t*, and not decided |
//! | `tidegate_ledger` | transaction *name* was merged |
//!
//! A registry row and its table are made, and dropped, in one SQL transaction, and a ledger row is made in the one that merges and
//! drops; so at every moment a transaction is in exactly one of them, or in none. Names stand in columns of their own and are compared
//! component by component; the staging table's name is a hash of them, since only people ever look at it.
//!
//! Owns: the statements on these tables. Does not own: the SQL transaction around them (the caller's). Runs on: the I/O side.

use rusqlite::{Connection, OptionalExtension, Params, named_params};
use tidegate_engine::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};
use tidegate_engine::operator::{TransactionName, TransactionScope};
use tidegate_state::StateType;

use super::table::{TableSpec, quoted};

/// A prepared transaction, as the sink's state lists it beside its name.
#[derive(Clone, Debug, PartialEq, Eq, StateType)]
pub struct StagedRows {
    /// The staging table.
    pub table: String,
    /// How many rows it holds.
    pub rows: u64,
}

const NAME_COLUMNS: &str = "job TEXT NOT NULL, log_id TEXT NOT NULL, lineage INTEGER NOT NULL, uid TEXT NOT NULL, \
     subtask INTEGER NOT NULL, opened_after INTEGER NOT NULL, attempt INTEGER NOT NULL";
const NAME_KEY: &str = "PRIMARY KEY (job, log_id, lineage, uid, subtask, opened_after, attempt)";
const NAME_MATCHES: &str = "job = :job AND log_id = :log_id AND lineage = :lineage AND uid = :uid AND subtask = :subtask \
     AND opened_after = :opened_after AND attempt = :attempt";

/// Makes registry and ledger where they are missing.
pub(crate) fn create_tables(connection: &Connection) -> rusqlite::Result<()> {
    connection.execute_batch(&format!(
        "CREATE TABLE IF NOT EXISTS tidegate_staging ({NAME_COLUMNS}, table_name TEXT NOT NULL UNIQUE, {NAME_KEY}) \
           STRICT, WITHOUT ROWID;
         CREATE TABLE IF NOT EXISTS tidegate_ledger ({NAME_COLUMNS}, target TEXT NOT NULL, closed_by INTEGER NOT NULL, \
           rows INTEGER NOT NULL, committed_ms INTEGER NOT NULL, {NAME_KEY}) STRICT, WITHOUT ROWID;"
    ))
}

/// A number as SQL keeps it. Attempts and checkpoints count from 1; what does not fit cannot be reached by counting.
pub(crate) fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn with_name<T>(name: &TransactionName, run: impl FnOnce(&[(&str, &dyn rusqlite::ToSql)]) -> T) -> T {
    let TransactionScope { job, log_id, lineage, uid } = &name.scope;
    run(named_params! {
        ":job": job.as_str(),
        ":log_id": log_id.as_str(),
        ":lineage": number(lineage.0),
        ":uid": uid.as_str(),
        ":subtask": name.subtask,
        ":opened_after": number(name.opened_after.0),
        ":attempt": number(name.attempt.0),
    })
}

/// Name of the staging table of a transaction.
pub(crate) fn table_name(name: &TransactionName) -> String {
    let TransactionScope { job, log_id, lineage, uid } = &name.scope;
    let mut bytes = Vec::new();
    for text in [job.as_str(), log_id.as_str(), uid.as_str()] {
        bytes.extend_from_slice(&(text.len() as u64).to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
    }
    for part in [lineage.0, u64::from(name.subtask), name.opened_after.0, name.attempt.0] {
        bytes.extend_from_slice(&part.to_le_bytes());
    }
    format!("tidegate_staging_{:032x}", xxhash_rust::xxh3::xxh3_128(&bytes))
}

/// Makes the staging table of a transaction and registers it. Fails if either is there already.
pub(crate) fn open(
    connection: &Connection,
    spec: &TableSpec,
    name: &TransactionName,
) -> rusqlite::Result<()> {
    let table = table_name(name);
    connection.execute(&spec.create_staging_sql(&table), [])?;
    let sql = "INSERT INTO tidegate_staging (job, log_id, lineage, uid, subtask, opened_after, attempt, table_name) \
               VALUES (:job, :log_id, :lineage, :uid, :subtask, :opened_after, :attempt, :table_name)";
    with_name(name, |components| {
        let mut parameters = components.to_vec();
        parameters.push((":table_name", &table));
        connection.prepare_cached(sql)?.execute(parameters.as_slice()).map(|_| ())
    })
}

/// The staging table of a transaction that is not decided.
pub(crate) fn find(connection: &Connection, name: &TransactionName) -> rusqlite::Result<Option<String>> {
    let sql = format!("SELECT table_name FROM tidegate_staging WHERE {NAME_MATCHES}");
    with_name(name, |components| optional_text(connection, &sql, components))
}

/// Rows in a staging table.
pub(crate) fn count_rows(connection: &Connection, table: &str) -> rusqlite::Result<i64> {
    connection.query_row(&format!("SELECT count(*) FROM {}", quoted(table)), [], |row| row.get(0))
}

/// Drops a transaction's staging table and its registry row; one that is gone is fine.
pub(crate) fn drop(connection: &Connection, name: &TransactionName) -> rusqlite::Result<()> {
    if let Some(table) = find(connection, name)? {
        connection.execute(&format!("DROP TABLE {}", quoted(&table)), [])?;
        let sql = format!("DELETE FROM tidegate_staging WHERE {NAME_MATCHES}");
        with_name(name, |components| connection.prepare_cached(&sql)?.execute(components))?;
    }
    Ok(())
}

/// Whether a transaction was merged.
pub(crate) fn is_merged(connection: &Connection, name: &TransactionName) -> rusqlite::Result<bool> {
    let sql = format!("SELECT target FROM tidegate_ledger WHERE {NAME_MATCHES}");
    with_name(name, |components| optional_text(connection, &sql, components)).map(|found| found.is_some())
}

/// The newest checkpoint that closed a merged transaction of a sink in one log, of an attempt that is not below `since`: in whatever
/// lineage, as a start without a checkpoint begins a new one.
pub(crate) fn newest_merged(
    connection: &Connection,
    scope: &TransactionScope,
    since: AttemptId,
) -> rusqlite::Result<Option<CheckpointId>> {
    let sql = "SELECT max(closed_by) FROM tidegate_ledger \
               WHERE job = ?1 AND log_id = ?2 AND uid = ?3 AND attempt >= ?4";
    let TransactionScope { job, log_id, uid, .. } = scope;
    let of = (job.as_str(), log_id.as_str(), uid.as_str(), number(since.0));
    let newest: Option<i64> = connection.query_row(sql, of, |row| row.get(0))?;
    Ok(newest.map(|id| CheckpointId(id.unsigned_abs())))
}

/// Notes that a transaction was merged.
pub(crate) fn note_merged(
    connection: &Connection,
    name: &TransactionName,
    target: &str,
    closed_by: CheckpointId,
    rows: u64,
    committed_ms: i64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO tidegate_ledger (job, log_id, lineage, uid, subtask, opened_after, attempt, target, closed_by, rows, \
               committed_ms) VALUES (:job, :log_id, :lineage, :uid, :subtask, :opened_after, :attempt, :target, :closed_by, \
               :rows, :committed_ms)";
    let (closed_by, rows) = (number(closed_by.0), number(rows));
    with_name(name, |components| {
        let mut parameters = components.to_vec();
        parameters.extend_from_slice(named_params! {
            ":target": target, ":closed_by": closed_by, ":rows": rows, ":committed_ms": committed_ms,
        });
        connection.prepare_cached(sql)?.execute(parameters.as_slice()).map(|_| ())
    })
}

/// All undecided transactions of a sink, of any lineage, subtask and attempt, in the order of their names.
pub(crate) fn list(
    connection: &Connection,
    scope: &TransactionScope,
) -> rusqlite::Result<Vec<TransactionName>> {
    let sql = "SELECT lineage, subtask, opened_after, attempt FROM tidegate_staging \
               WHERE job = ?1 AND log_id = ?2 AND uid = ?3 ORDER BY lineage, subtask, opened_after, attempt";
    let mut statement = connection.prepare_cached(sql)?;
    let rows =
        statement.query_map([scope.job.as_str(), scope.log_id.as_str(), scope.uid.as_str()], |row| {
            Ok(TransactionName {
                scope: TransactionScope {
                    job: JobName::clone(&scope.job),
                    log_id: LogId::clone(&scope.log_id),
                    lineage: Lineage(row.get::<_, i64>(0)?.unsigned_abs()),
                    uid: OperatorUid::clone(&scope.uid),
                },
                subtask: row.get(1)?,
                opened_after: CheckpointId(row.get::<_, i64>(2)?.unsigned_abs()),
                attempt: AttemptId(row.get::<_, i64>(3)?.unsigned_abs()),
            })
        })?;
    rows.collect()
}

fn optional_text(
    connection: &Connection,
    sql: &str,
    parameters: impl Params,
) -> rusqlite::Result<Option<String>> {
    connection.prepare_cached(sql)?.query_row(parameters, |row| row.get(0)).optional()
}
