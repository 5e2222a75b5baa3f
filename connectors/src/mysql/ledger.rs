//! The ledger: one row for each transaction that is in the output, written in the same transaction as its rows.
//!
//! | column | says |
//! |---|---|
//! | `gtrid`, `bqual` | the branch, and the primary key |
//! | `target` | the table |
//! | `closed_by` | the checkpoint whose barrier closed it |
//! | `rows_written` | how many rows |
//! | `written_ms` | when, by the clock of the writer |
//! | `note` | NULL, or what an operator decided by hand |
//!
//! Owns: the statements. Does not own: the transaction around them. Runs on: the I/O side.

use mysql_async::Value;
use tidegate_engine::api::TwoPhaseContext;
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::operator::{CommitOutcome, TransactionName, TransactionScope};

use super::xid::{Xid, uid_spellings};
use super::{Connection, MysqlError, MysqlUrl, SessionLimits};

/// Name of the table.
pub const LEDGER_TABLE: &str = "tidegate_ledger";
/// There is no such table.
const NO_SUCH_TABLE: u16 = 1146;

/// What a ledger row says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The table that was written.
    pub target: String,
    /// The checkpoint whose barrier closed the transaction.
    pub closed_by: CheckpointId,
    /// Rows in it.
    pub rows: u64,
    /// What an operator decided by hand.
    pub note: Option<String>,
}

/// How the note begins of a branch that was rolled back by hand: its row does not say "committed".
pub(crate) const ROLLED_BACK: &str = "rolled back";

impl LedgerEntry {
    /// What a transaction that is in the ledger has become.
    pub(crate) fn outcome(self) -> CommitOutcome {
        match self.note {
            Some(note) if note.starts_with(ROLLED_BACK) => {
                CommitOutcome::Lost { reason: format!("it was {note}") }
            }
            _ => CommitOutcome::AlreadyCommitted,
        }
    }
}

/// Makes the table where it is missing.
///
/// # Errors
/// [`MysqlError`]: the user may not make tables, say.
pub(crate) async fn create(connection: &mut Connection) -> Result<(), MysqlError> {
    let doing = format!("looking at the table {LEDGER_TABLE}");
    match connection.rows(&doing, &format!("SELECT note FROM {LEDGER_TABLE} LIMIT 0"), Vec::new()).await {
        Ok(_) => return Ok(()),
        Err(error) if error.code() == Some(NO_SUCH_TABLE) => {}
        Err(error) => return Err(error),
    }
    let sql = format!(
        "CREATE TABLE IF NOT EXISTS {LEDGER_TABLE} (gtrid VARBINARY(64) NOT NULL, bqual VARBINARY(64) NOT NULL, \
         target VARCHAR(64) NOT NULL, closed_by BIGINT UNSIGNED NOT NULL, rows_written BIGINT UNSIGNED NOT NULL, \
         written_ms BIGINT NOT NULL, note VARCHAR(255), PRIMARY KEY (gtrid, bqual), KEY by_checkpoint (gtrid, closed_by)) ENGINE=InnoDB \
         DEFAULT CHARACTER SET utf8mb4"
    );
    connection.run(&format!("making the table {LEDGER_TABLE}"), &sql).await.map(drop)
}

fn key(xid: &Xid) -> Vec<Value> {
    vec![Value::Bytes(xid.gtrid.clone()), Value::Bytes(xid.bqual.clone())]
}

/// Writes a transaction's row.
pub(crate) async fn write(
    connection: &mut Connection,
    xid: &Xid,
    entry: &LedgerEntry,
    written_ms: i64,
) -> Result<(), MysqlError> {
    let sql = format!(
        "INSERT INTO {LEDGER_TABLE} (gtrid, bqual, target, closed_by, rows_written, written_ms, note) VALUES (?,?,?,?,?,?,?)"
    );
    let mut values = key(xid);
    values.push(Value::Bytes(entry.target.clone().into_bytes()));
    values.extend([Value::UInt(entry.closed_by.0), Value::UInt(entry.rows), Value::Int(written_ms)]);
    values.push(entry.note.as_ref().map_or(Value::NULL, |note| Value::Bytes(note.clone().into_bytes())));
    connection.execute(&format!("writing the ledger row of {xid}"), &sql, values).await.map(drop)
}

/// Writes down what was decided about a transaction by hand.
pub(crate) async fn note(connection: &mut Connection, xid: &Xid, note: &str) -> Result<u64, MysqlError> {
    let sql = format!("UPDATE {LEDGER_TABLE} SET note = ? WHERE gtrid = ? AND bqual = ?");
    let mut values = vec![Value::Bytes(note.as_bytes().to_vec())];
    values.extend(key(xid));
    connection.execute(&format!("noting a decision about {xid}"), &sql, values).await
}

/// Whether a transaction's row is there: by a *locking* read, which waits for whoever is committing or rolling it back right now.
/// A plain read would not see the winner's row.
///
/// # Errors
/// [`MysqlError::LockWait`]: the branch is still prepared, and its row locked.
pub(crate) async fn find(connection: &mut Connection, xid: &Xid) -> Result<Option<LedgerEntry>, MysqlError> {
    let sql = format!("{SELECT_ROW} LOCK IN SHARE MODE");
    row_of(connection, xid, &sql).await.map(|found| found.map(|(entry, _)| entry))
}

/// A transaction's row, also while it is not committed: by a dirty read, for people only. And when it was written.
pub(crate) async fn peek(
    connection: &mut Connection,
    xid: &Xid,
) -> Result<Option<(LedgerEntry, i64)>, MysqlError> {
    let doing = "looking into the ledger";
    connection.run(doing, "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED").await?;
    let found = row_of(connection, xid, SELECT_ROW).await;
    connection.run(doing, "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED").await?;
    match found {
        Err(MysqlError::Missing { .. }) => Ok(None),
        found => found,
    }
}

const SELECT_ROW: &str = "SELECT target, closed_by, rows_written, note, written_ms FROM tidegate_ledger WHERE gtrid = ? AND bqual = ?";

async fn row_of(
    connection: &mut Connection,
    xid: &Xid,
    sql: &str,
) -> Result<Option<(LedgerEntry, i64)>, MysqlError> {
    let doing = format!("looking for {xid} in the ledger");
    let rows = connection.rows(&doing, sql, key(xid)).await?;
    if rows.is_empty() {
        return Ok(None);
    }
    let (target, closed_by, rows, note, written_ms): (String, u64, u64, Option<String>, i64) =
        connection.only_row(&doing, rows)?;
    Ok(Some((LedgerEntry { target, closed_by: CheckpointId(closed_by), rows, note }, written_ms)))
}

/// The newest checkpoint beyond `own.opened_after` that closed a committed transaction of this sink, of an attempt that is not below
/// `since`: in whatever lineage, as a start without a checkpoint begins a new one.
pub(crate) async fn newest_committed(
    connection: &mut Connection,
    own: &TransactionName,
    since: AttemptId,
) -> Result<Option<CheckpointId>, MysqlError> {
    let doing = "looking for the newest transaction in the ledger";
    let sql = format!(
        "SELECT bqual, closed_by FROM {LEDGER_TABLE} WHERE gtrid = ? AND closed_by > ? AND (note IS NULL OR note NOT LIKE '{ROLLED_BACK}%')"
    );
    let gtrid = Xid::of(own).gtrid;
    let values = vec![Value::Bytes(gtrid.clone()), Value::UInt(own.opened_after.0)];
    let mut newest = None;
    for row in connection.rows(doing, &sql, values).await? {
        let (bqual, closed_by): (Vec<u8>, u64) = connection.only_row(doing, vec![row])?;
        let xid = Xid { gtrid: gtrid.clone(), bqual, format_id: super::xid::FORMAT_ID };
        let counts = |name: TransactionName| name.attempt >= since;
        if xid.read(&own.scope).is_some_and(counts) {
            newest = newest.max(Some(CheckpointId(closed_by)));
        }
    }
    Ok(newest)
}

/// The same before a job is claimed, in a session of its own; the ledger is there, its preflight has made it.
pub(crate) async fn newest_before_start(
    url: &MysqlUrl,
    context: &TwoPhaseContext,
    since: AttemptId,
) -> Result<Option<CheckpointId>, MysqlError> {
    let limits = SessionLimits::below(context.connector.checkpoint_timeout);
    let mut connection = Connection::open(url, limits, &context.connector.io).await?;
    newest_committed(&mut connection, &context.name, since).await
}

/// Rows of this sink that were written before `before_ms` and closed by checkpoint `up_to` or one before it, at most `most`. A plain read:
/// it waits for nobody, and sees no branch that is not committed.
pub(crate) async fn old_rows(
    connection: &mut Connection,
    own: &TransactionName,
    up_to: CheckpointId,
    before_ms: i64,
    most: usize,
) -> Result<Vec<Xid>, MysqlError> {
    let doing = "looking for old rows in the ledger";
    // The sink is the second component of `bqual`.
    let sql = format!(
        "SELECT bqual FROM {LEDGER_TABLE} WHERE gtrid = ? AND closed_by <= ? AND written_ms < ? \
         AND SUBSTRING_INDEX(SUBSTRING_INDEX(bqual, '.', 2), '.', -1) IN (?, ?) LIMIT {most}"
    );
    let Xid { gtrid, format_id, .. } = Xid::of(own);
    let mut values = vec![Value::Bytes(gtrid.clone()), Value::UInt(up_to.0), Value::Int(before_ms)];
    values.extend(uid_spellings(&own.scope).map(|uid| Value::Bytes(uid.into_bytes())));
    let mut found = Vec::new();
    for row in connection.rows(doing, &sql, values).await? {
        let (bqual,): (Vec<u8>,) = connection.only_row(doing, vec![row])?;
        let xid = Xid { gtrid: gtrid.clone(), bqual, format_id };
        found.extend(xid.read(&own.scope).is_some().then_some(xid));
    }
    Ok(found)
}

/// Deletes a transaction's row.
pub(crate) async fn delete(connection: &mut Connection, xid: &Xid) -> Result<(), MysqlError> {
    let sql = format!("DELETE FROM {LEDGER_TABLE} WHERE gtrid = ? AND bqual = ?");
    connection.execute("pruning the ledger", &sql, key(xid)).await.map(drop)
}

/// All rows of a job and log, for people and tests.
///
/// # Errors
/// [`MysqlError`].
pub async fn entries(
    connection: &mut Connection,
    scope: &TransactionScope,
) -> Result<Vec<(TransactionName, LedgerEntry)>, MysqlError> {
    let doing = "reading the ledger";
    let sql = format!(
        "SELECT gtrid, bqual, target, closed_by, rows_written, note FROM {LEDGER_TABLE} ORDER BY gtrid, bqual"
    );
    let mut found = Vec::new();
    for row in connection.rows(doing, &sql, Vec::new()).await? {
        let (gtrid, bqual, target, closed_by, rows, note): (
            Vec<u8>,
            Vec<u8>,
            String,
            u64,
            u64,
            Option<String>,
        ) = connection.only_row(doing, vec![row])?;
        let xid = Xid { gtrid, bqual, format_id: super::xid::FORMAT_ID };
        let entry = LedgerEntry { target, closed_by: CheckpointId(closed_by), rows, note };
        found.extend(xid.read(scope).map(|name| (name, entry)));
    }
    Ok(found)
}
