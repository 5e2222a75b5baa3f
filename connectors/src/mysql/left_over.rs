//! What an operator can see of prepared branches, and decide about them by hand.
//!
//! A branch's ledger row is not committed before the branch is, but a dirty read (READ UNCOMMITTED) sees it: so its table, its rows and
//! its age are known. A decision is written down in the ledger: the row of a branch that was committed by hand gets a note; for one
//! that was rolled back a row is made whose note says so, and a job that still lists it then learns that, and not "already committed".
//!
//! Owns: listing and settling. Does not own: what shall be done. Runs on: the I/O side, for tools.

use tidegate_engine::ids::{CheckpointId, JobName, LogId, OperatorUid};
use tidegate_engine::operator::TransactionScope;

use super::ledger::{self, LedgerEntry};
use super::recover::prepared_branches;
use super::writer_session::holder_of;
use super::xid::{Xid, XidParts, writer_lock};
use super::{Connection, MysqlError};

/// A prepared branch of some Tidegate job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOverBranch {
    /// Its name.
    pub xid: Xid,
    /// The name in components.
    pub parts: XidParts,
    /// What its ledger row says, if that is in this database: table, rows, closing checkpoint.
    pub entry: Option<LedgerEntry>,
    /// When it was prepared, by the clock of its writer: milliseconds since 1970.
    pub written_ms: Option<i64>,
    /// The session of its subtask's writer, if one lives: the job may still be at work.
    pub writer_session: Option<u64>,
}

/// What an operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandDecision {
    /// Its rows appear.
    Commit,
    /// Its rows are thrown away.
    RollBack,
}

/// Lists prepared branches of Tidegate's jobs, whichever database they wrote to.
///
/// # Errors
/// [`MysqlError`]: a right is missing, say.
pub async fn left_over_branches(connection: &mut Connection) -> Result<Vec<LeftOverBranch>, MysqlError> {
    let mut found = Vec::new();
    for xid in prepared_branches(connection).await? {
        let Some(parts) = xid.parts().filter(|_| xid.is_ours()) else { continue };
        let seen = ledger::peek(connection, &xid).await?;
        let (entry, written_ms) = seen.map_or((None, None), |(entry, ms)| (Some(entry), Some(ms)));
        let lock = writer_lock(&scope_of(&parts), parts.subtask);
        let writer_session = holder_of(connection, &lock).await?;
        found.push(LeftOverBranch { xid, parts, entry, written_ms, writer_session });
    }
    found.sort_by(|a, b| a.xid.cmp(&b.xid));
    Ok(found)
}

/// Commits or rolls a branch back, and writes the decision down.
///
/// # Errors
/// [`MysqlError`]: the branch is gone, or belongs to a session that still lives (1397), say.
pub async fn settle_by_hand(
    connection: &mut Connection,
    xid: &Xid,
    decision: HandDecision,
    now_ms: i64,
) -> Result<(), MysqlError> {
    let seen = ledger::peek(connection, xid).await?;
    let (verb, word) = match decision {
        HandDecision::Commit => ("COMMIT", "committed"),
        HandDecision::RollBack => ("ROLLBACK", ledger::ROLLED_BACK),
    };
    connection.run(&format!("{word} {xid} by hand"), &format!("XA {verb} {}", xid.sql())).await?;
    ledger::create(connection).await?;
    if decision == HandDecision::RollBack {
        let unknown =
            || LedgerEntry { target: String::new(), closed_by: CheckpointId(0), rows: 0, note: None };
        let entry = seen.map_or_else(unknown, |(entry, _)| entry);
        ledger::write(connection, xid, &entry, now_ms).await?;
    }
    let by = connection.url().user().to_owned();
    ledger::note(connection, xid, &format!("{word} by hand, user {by}, at {now_ms} ms")).await?;
    Ok(())
}

/// The scope, where no component was hashed.
fn scope_of(parts: &XidParts) -> TransactionScope {
    TransactionScope {
        job: JobName(parts.job.clone()),
        log_id: LogId(parts.log_id.clone()),
        lineage: parts.lineage,
        uid: OperatorUid(parts.uid.clone()),
    }
}
