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
//! What a job at work holds is left alone, unless the operator insists; and so is, on a server that ties branches to their sessions, a
//! branch whose session is ending (see [`super::prepared_sessions`]).
//!
//! Owns: listing and settling. Does not own: what shall be done. Runs on: the I/O side, for tools.

use std::time::Duration;

use tidegate_engine::ids::CheckpointId;

use super::civil::{CivilDate, TimeOfDay};
use super::ledger::{self, LedgerEntry};
use super::preflight::{TRIAL, TRIAL_MS_MAX, trial_ms};
use super::recover::{NOT_A_BRANCH, prepared_branches};
use super::session_end::{wait_until_detached, wait_until_gone, wait_until_released};
use super::writer_session::holder_of;
use super::xid::{Xid, XidParts, branch_lock, writer_lock_of};
use super::{Connection, DateTime, MysqlError, staging_table};

/// A session whose client has died is gone within so many looks; one that is still there is at work.
const LOOKS: u32 = 10;
/// Between two looks.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

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
    /// The session of its subtask's writer, or the one that holds the branch, or that of the start, if it lives: the job may still be
    /// at work.
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
    Ok(LeftOver {
        kind: LeftOverKind::Branch,
        owner: Some(parts),
        target: entry.as_ref().map(|entry| entry.target.clone()),
        closed_by: entry.as_ref().map(|entry| entry.closed_by),
        rows: entry.map(|entry| entry.rows),
        since_ms,
        writer_session: at_work(connection, &xid).await?,
        xid,
    })
}

/// Its name says which session made it and when.
async fn trial(connection: &mut Connection, xid: Xid) -> Result<LeftOver, MysqlError> {
    let ms = trial_ms(&xid);
    Ok(LeftOver {
        kind: LeftOverKind::Trial,
        owner: None,
        target: ledger::peek(connection, &xid).await?.map(|(entry, _)| entry.target),
        closed_by: None,
        rows: Some(0),
        since_ms: ms,
        writer_session: at_work(connection, &xid).await?,
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
    Ok(Some(LeftOver {
        since_ms: staging_table::made_ms(connection, &table).await?,
        kind: LeftOverKind::StagingTable { table },
        owner: Some(parts),
        target: None,
        closed_by: None,
        rows: Some(rows),
        writer_session: at_work(connection, &xid).await?,
        xid,
    }))
}

/// The session that is at work for a transaction: the one that holds the branch (a start's too), else that of its writer.
async fn at_work(connection: &mut Connection, xid: &Xid) -> Result<Option<u64>, MysqlError> {
    if let Some(session) = holder_of(connection, &branch_lock(xid)).await? {
        return Ok(Some(session));
    }
    match writer_lock_of(xid) {
        Some(lock) => holder_of(connection, &lock).await,
        None => Ok(None),
    }
}

/// What has become of a transaction that was to be settled by hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOutcome {
    /// It was settled, as decided.
    Settled,
    /// It is gone: its job, or somebody else, has settled it meanwhile.
    Gone,
}

/// Commits or rolls a transaction back, and writes the decision down. With `force` also a branch whose job is at work; where it is tied
/// to a session, that is ended.
///
/// # Errors
/// [`MysqlError`]; [`MysqlError::NotByHand`] if it cannot be settled so by hand, or its job is at work.
pub async fn settle_by_hand(
    connection: &mut Connection,
    left: &LeftOver,
    decision: HandDecision,
    force: bool,
    now_ms: i64,
) -> Result<HandOutcome, MysqlError> {
    let (server, xid) = (connection.url().place(), &left.xid);
    let refused =
        |why: String, remedy: &str| MysqlError::NotByHand { server, why, remedy: remedy.to_owned() };
    match (&left.kind, decision) {
        (LeftOverKind::Branch, HandDecision::Commit) => {
            let_alone(connection, left, force).await?;
            if run_xa(connection, "COMMIT", xid).await? == HandOutcome::Gone {
                return Ok(HandOutcome::Gone);
            }
            ledger::create(connection).await?;
            let note = decided(connection, "committed", now_ms);
            ledger::note(connection, xid, &note).await?;
        }
        (LeftOverKind::Branch, HandDecision::RollBack) => {
            let_alone(connection, left, force).await?;
            if run_xa(connection, "ROLLBACK", xid).await? == HandOutcome::Gone {
                return Ok(HandOutcome::Gone);
            }
            note_rollback(connection, left, now_ms).await?;
        }
        (LeftOverKind::Trial, HandDecision::RollBack) => {
            // A start may be between the end of the session that prepared it and its second look.
            if !force && left.since_ms.is_some_and(|since| since.saturating_add(TRIAL_MS_MAX) > now_ms) {
                return Err(refused(
                    format!(
                        "the branch {xid} is the trial of a start that may be at work: it is younger than a minute"
                    ),
                    "leave it: its start rolls it back, or, if that has died, the next one; or --force, which makes a start at work fail",
                ));
            }
            let_alone(connection, left, force).await?;
            return run_xa(connection, "ROLLBACK", xid).await;
        }
        (LeftOverKind::Trial, HandDecision::Commit) => {
            return Err(refused(
                format!("the branch {xid} was a trial and holds no rows"),
                "roll it back: `tidegate xa rollback`",
            ));
        }
        (LeftOverKind::StagingTable { table }, HandDecision::Commit) => {
            return Err(refused(
                format!("how the staging table {table} is merged, and into which table, only its job knows"),
                "start the job again, which merges it; or throw its rows away: `tidegate xa rollback`",
            ));
        }
        (LeftOverKind::StagingTable { .. }, HandDecision::RollBack) => {
            // Its writer would only fail at its next row, and then once more at its next start: no force.
            let_alone(connection, left, false).await?;
            drop_staged(connection, left, now_ms).await?;
        }
    }
    Ok(HandOutcome::Settled)
}

/// Waits until nobody is at work for a transaction, and its session, if it was tied to one, has let it go. With `force` the session that
/// it is tied to is ended, and no other: not that of the writer, which has gone on to another branch.
async fn let_alone(connection: &mut Connection, left: &LeftOver, force: bool) -> Result<(), MysqlError> {
    let is_branch = !matches!(left.kind, LeftOverKind::StagingTable { .. });
    let is_tied = is_branch && connection.ties_branches();
    if force && !is_tied {
        return Ok(());
    }
    let (lock, mut seen) = (branch_lock(&left.xid), None);
    for look in 1..=LOOKS {
        let found = match force {
            true => holder_of(connection, &lock).await?,
            false => at_work(connection, &left.xid).await?,
        };
        let Some(session) = found else { break };
        seen = Some(session);
        match look {
            LOOKS if !force => return Err(is_at_work(connection, left, session)),
            LOOKS => connection.kill(session).await?,
            _ => connection.io().sleep(LOOK_PAUSE).await,
        }
    }
    if !is_tied {
        return Ok(());
    }
    let (io, seen) = (connection.io().clone(), seen.as_slice());
    if let Some(session) = wait_until_gone(connection, &io, seen).await? {
        return Err(is_at_work(connection, left, session));
    }
    // Who may end a session need not see it: the lock, which goes with it, is seen by everybody.
    if let Some(session) = wait_until_released(connection, &io, &lock).await? {
        return Err(is_at_work(connection, left, session));
    }
    wait_until_detached(connection, &io).await;
    Ok(())
}

fn is_at_work(connection: &Connection, left: &LeftOver, session: u64) -> MysqlError {
    let (what, force) = match &left.kind {
        LeftOverKind::StagingTable { table } => {
            (format!("the subtask that wrote the staging table {table}"), "")
        }
        LeftOverKind::Branch => (
            format!("the subtask that wrote the branch {}", left.xid),
            "; or --force, which settles it against what that job decides",
        ),
        LeftOverKind::Trial => (format!("the start that tries the branch {}", left.xid), "; or --force"),
    };
    MysqlError::NotByHand {
        server: connection.url().place(),
        why: format!("connection {session} is at work for {what}"),
        remedy: format!("cancel that job, which settles what is its own{force}"),
    }
}

async fn run_xa(connection: &mut Connection, verb: &str, xid: &Xid) -> Result<HandOutcome, MysqlError> {
    let doing = format!("XA {verb} of {xid} by hand");
    match connection.run(&doing, &format!("XA {verb} {}", xid.sql())).await {
        Ok(_) => Ok(HandOutcome::Settled),
        // Gone, or attached to a session.
        Err(error) if error.code() == Some(NOT_A_BRANCH) => {
            match prepared_branches(connection).await?.contains(xid) {
                true => Err(error),
                false => Ok(HandOutcome::Gone),
            }
        }
        Err(error) => Err(error),
    }
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
