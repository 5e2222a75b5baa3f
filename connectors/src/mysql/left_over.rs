//! What an operator can see of transactions that are left over, and decide about them by hand.
//!
//! | left over | by whom | can be |
//! |---|---|---|
//! | a prepared branch | a job with the XA sink | committed, rolled back |
//! | a staging table | a job with the staging sink | rolled back; only its job knows how it is merged |
//! | a trial branch | a start that died in its preflight | rolled back |
//!
//! A branch's ledger row is not committed before the branch is, but a dirty read (READ UNCOMMITTED) sees it: so its table, its rows and
//! its age are known. A decision is written down in the ledger: the row of a branch that was committed by hand gets a note; for one
//! that was rolled back a row is made whose note says so, and a job that still lists it then learns that, and not "already committed".
//!
//! Owns: listing and settling. Does not own: what shall be done. Runs on: the I/O side, for tools.

use tidegate_engine::ids::{CheckpointId, JobName, LogId, OperatorUid};
use tidegate_engine::operator::TransactionScope;

use super::civil::{CivilDate, TimeOfDay};
use super::ledger::{self, LedgerEntry};
use super::preflight::{TRIAL, trial_of};
use super::recover::prepared_branches;
use super::session_end::lives;
use super::writer_session::holder_of;
use super::xid::{Xid, XidParts, writer_lock};
use super::{Connection, DateTime, MysqlError, staging_table};

/// What is left over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeftOverKind {
    /// A prepared branch: its rows are not visible, and what it changed is locked.
    Branch,
    /// A staging table of the database that was asked: its rows are not in their table yet.
    StagingTable {
        /// Its name.
        table: String,
    },
    /// A branch that a start prepared in order to try the server, and did not roll back before it died.
    Trial,
}

/// A transaction of some Tidegate job that is not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOver {
    /// What it is.
    pub kind: LeftOverKind,
    /// Its name.
    pub xid: Xid,
    /// The name in components; a trial has none.
    pub owner: Option<XidParts>,
    /// The table that is written, if it is known: of a branch whose ledger row is in this database.
    pub target: Option<String>,
    /// The checkpoint whose barrier closed it, if it is known.
    pub closed_by: Option<CheckpointId>,
    /// Rows in it, if they are known.
    pub rows: Option<u64>,
    /// When it was prepared, by the clock of its writer, or its table made, by the server's: milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// The session of its subtask's writer, or of the start, if it lives: the job may still be at work.
    pub writer_session: Option<u64>,
}

impl LeftOver {
    /// Whether it belongs to the database that was asked: a branch without a row in its ledger writes into another database of this server, whose
    /// ledger has to be told what is decided.
    pub fn is_of_this_database(&self) -> bool {
        self.kind != LeftOverKind::Branch || self.target.is_some()
    }
}

/// What an operator decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandDecision {
    /// Its rows appear.
    Commit,
    /// Its rows are thrown away.
    RollBack,
}

/// Everything that is left of whatever Tidegate job: prepared branches of the whole server, staging tables of this database.
///
/// # Errors
/// [`MysqlError`]: a right is missing (MySQL), say.
pub async fn left_overs(connection: &mut Connection) -> Result<Vec<LeftOver>, MysqlError> {
    let mut found = Vec::new();
    for xid in prepared_branches(connection).await? {
        if xid.gtrid == TRIAL.as_bytes() {
            found.push(trial(connection, xid).await?);
        } else if let Some(parts) = xid.parts().filter(|_| xid.is_ours()) {
            found.push(branch(connection, xid, parts).await?);
        }
    }
    for (table, xid) in staging_table::tables(connection).await? {
        found.extend(staged(connection, table, xid).await?);
    }
    found.sort_by(|a, b| a.xid.cmp(&b.xid));
    Ok(found)
}

async fn branch(connection: &mut Connection, xid: Xid, parts: XidParts) -> Result<LeftOver, MysqlError> {
    let (entry, since_ms) = ledger::peek(connection, &xid).await?.unzip();
    let lock = writer_lock(&scope_of(&parts), parts.subtask);
    Ok(LeftOver {
        kind: LeftOverKind::Branch,
        owner: Some(parts),
        target: entry.as_ref().map(|entry| entry.target.clone()),
        closed_by: entry.as_ref().map(|entry| entry.closed_by),
        rows: entry.map(|entry| entry.rows),
        since_ms,
        writer_session: holder_of(connection, &lock).await?,
        xid,
    })
}

/// Its name says which session made it and when.
async fn trial(connection: &mut Connection, xid: Xid) -> Result<LeftOver, MysqlError> {
    let (session, ms) = trial_of(&xid).unzip();
    let id = session.unwrap_or(0);
    let lives = lives(connection, id).await?;
    Ok(LeftOver {
        kind: LeftOverKind::Trial,
        owner: None,
        target: ledger::peek(connection, &xid).await?.map(|(entry, _)| entry.target),
        closed_by: None,
        rows: Some(0),
        since_ms: ms,
        writer_session: lives.then_some(id),
        xid,
    })
}

/// `None`: it went meanwhile.
async fn staged(
    connection: &mut Connection,
    table: String,
    xid: Xid,
) -> Result<Option<LeftOver>, MysqlError> {
    let Some(parts) = xid.parts() else { return Ok(None) };
    let Some(rows) = staging_table::count(connection, &table).await? else { return Ok(None) };
    let lock = writer_lock(&scope_of(&parts), parts.subtask);
    Ok(Some(LeftOver {
        since_ms: staging_table::made_ms(connection, &table).await?,
        kind: LeftOverKind::StagingTable { table },
        owner: Some(parts),
        target: None,
        closed_by: None,
        rows: Some(rows),
        writer_session: holder_of(connection, &lock).await?,
        xid,
    }))
}

/// Commits or rolls a transaction back, and writes the decision down.
///
/// # Errors
/// [`MysqlError`]: the branch is gone, or belongs to a session that still lives (1397), say; [`MysqlError::NotByHand`] if it cannot be
/// settled so by hand.
pub async fn settle_by_hand(
    connection: &mut Connection,
    left: &LeftOver,
    decision: HandDecision,
    now_ms: i64,
) -> Result<(), MysqlError> {
    let (server, xid) = (connection.url().place(), &left.xid);
    let refused =
        |why: String, remedy: &str| MysqlError::NotByHand { server, why, remedy: remedy.to_owned() };
    match (&left.kind, decision) {
        (LeftOverKind::Branch, HandDecision::Commit) => {
            run_xa(connection, "COMMIT", xid).await?;
            ledger::create(connection).await?;
            let note = decided(connection, "committed", now_ms);
            ledger::note(connection, xid, &note).await.map(drop)
        }
        (LeftOverKind::Branch, HandDecision::RollBack) => {
            run_xa(connection, "ROLLBACK", xid).await?;
            note_rollback(connection, left, now_ms).await
        }
        (LeftOverKind::Trial, HandDecision::RollBack) => run_xa(connection, "ROLLBACK", xid).await,
        (LeftOverKind::Trial, HandDecision::Commit) => Err(refused(
            format!("the branch {xid} was a trial and holds no rows"),
            "roll it back: `tidegate xa rollback`",
        )),
        (LeftOverKind::StagingTable { table }, HandDecision::Commit) => Err(refused(
            format!("how the staging table {table} is merged, and into which table, only its job knows"),
            "start the job again, which merges it; or throw its rows away: `tidegate xa rollback`",
        )),
        (LeftOverKind::StagingTable { table }, HandDecision::RollBack) => match left.writer_session {
            Some(session) => Err(refused(
                format!(
                    "connection {session} is at work for the subtask that wrote the staging table {table}"
                ),
                "cancel that job, which settles what is its own",
            )),
            None => drop_staged(connection, left, now_ms).await,
        },
    }
}

async fn run_xa(connection: &mut Connection, verb: &str, xid: &Xid) -> Result<(), MysqlError> {
    let doing = format!("XA {verb} of {xid} by hand");
    connection.run(&doing, &format!("XA {verb} {}", xid.sql())).await.map(drop)
}

/// The decision first: a job that still lists the table must not find neither.
async fn drop_staged(connection: &mut Connection, left: &LeftOver, now_ms: i64) -> Result<(), MysqlError> {
    ledger::create(connection).await?;
    // One that is merged already was only not dropped.
    if ledger::find(connection, &left.xid).await?.is_none() {
        note_rollback(connection, left, now_ms).await?;
    }
    staging_table::drop_table(connection, &left.xid).await
}

async fn note_rollback(connection: &mut Connection, left: &LeftOver, now_ms: i64) -> Result<(), MysqlError> {
    ledger::create(connection).await?;
    let entry = LedgerEntry {
        target: left.target.clone().unwrap_or_default(),
        closed_by: left.closed_by.unwrap_or(CheckpointId(0)),
        rows: left.rows.unwrap_or(0),
        note: Some(decided(connection, ledger::ROLLED_BACK, now_ms)),
    };
    ledger::write(connection, &left.xid, &entry, now_ms).await
}

fn decided(connection: &Connection, word: &str, now_ms: i64) -> String {
    let (at, user) = (DateTime::from_millis(now_ms), connection.url().user());
    let TimeOfDay { hour, minute, second, .. } = at.time();
    let date = at
        .date()
        .civil()
        .map_or_else(String::new, |CivilDate { year, month, day }| format!("{year}-{month:02}-{day:02} "));
    format!("{word} by hand, user {user}, at {date}{hour:02}:{minute:02}:{second:02} UTC")
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
