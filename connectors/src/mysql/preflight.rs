//! What the MySQL sinks look at before a job runs.
//!
//! The XA sink prepares a real, non-empty branch, leaves, finds it again and rolls it back: a server that forgets a prepared branch
//! when its client leaves would lose records, and is refused with that reason.
//!
//! Owns: the looks. Does not own: the table's comparison (see [`super::table_check`]). Runs on: the I/O side, once per process, before
//! the job is claimed.

use std::time::Duration;

use tidegate_engine::api::PreflightContext;
use tidegate_engine::ids::CheckpointId;

use super::constraints::Constraints;
use super::ledger::{self, LedgerEntry};
use super::recover::{NOT_A_BRANCH, prepared_branches};
use super::session_end::{wait_until_detached, wait_until_gone};
use super::session_room::check_room;
use super::sink::Target;
use super::table_check::check_table;
use super::writer_session::holder_of;
use super::xid::{FORMAT_ID, Xid, branch_lock};
use super::{Connection, MysqlError, SessionLimits, rights};

/// Sessions of one subtask beside its writer's: one that asks who holds a lock.
const LOCK_ASKER: u64 = 1;
/// And a committer's.
const COMMITTER: u64 = 1;
/// A left branch is looked for so often.
const TRIES: u32 = 60;
/// Between two looks.
const TRY_PAUSE: Duration = Duration::from_millis(50);
/// A trial takes a second or two: one that is older was left by a start that died in it.
pub(crate) const TRIAL_MS_MAX: i64 = 60_000;
/// The first part of a trial branch's name. No job is called so: its branches have another number of components.
pub(crate) const TRIAL: &str = "tidegate-trial";

/// For the plain sink: the server answers, has room for its sessions, and the table fits and can be written to.
pub(crate) async fn look_at_table(
    target: &Target,
    context: &PreflightContext,
) -> Result<Vec<String>, MysqlError> {
    let mut connection = connect(target, context).await?;
    let mut warnings = check_table(&mut connection, &target.spec).await?;
    rights::try_writing(&mut connection, &target.spec).await?;
    warnings.extend(check_room(&mut connection, context, 1 + LOCK_ASKER).await?);
    connection.close().await;
    Ok(warnings)
}

/// For the staging sink: besides, what shows at a merge only.
pub(crate) async fn look_for_staging(
    target: &Target,
    context: &PreflightContext,
) -> Result<Vec<String>, MysqlError> {
    let mut connection = connect(target, context).await?;
    let mut warnings = look_for_two_phases(&mut connection, target).await?;
    rights::try_staging(&mut connection, &target.spec).await?;
    warnings.extend(check_room(&mut connection, context, 1 + LOCK_ASKER + COMMITTER).await?);
    let constraints = Constraints::read(&mut connection, &target.spec).await?;
    connection.close().await;
    warnings.extend(constraints.warnings(&target.spec, &target.url.place()));
    Ok(warnings)
}

/// For sinks in two phases: besides, the ledger can be made and written to.
async fn look_for_two_phases(
    connection: &mut Connection,
    target: &Target,
) -> Result<Vec<String>, MysqlError> {
    let warnings = check_table(connection, &target.spec).await?;
    rights::try_writing(connection, &target.spec).await?;
    ledger::create(connection).await?;
    rights::try_ledger(connection).await?;
    Ok(warnings)
}

/// For the XA sink: besides, a branch survives its session.
pub(crate) async fn look_for_xa(
    target: &Target,
    context: &PreflightContext,
) -> Result<Vec<String>, MysqlError> {
    let mut connection = connect(target, context).await?;
    let mut warnings = look_for_two_phases(&mut connection, target).await?;
    let writers = if connection.ties_branches() { context.places as u64 } else { 1 };
    warnings.extend(check_room(&mut connection, context, writers + LOCK_ASKER + COMMITTER).await?);
    // Before anything is prepared: whoever may not list branches could not clear this one either.
    sweep_trials(&mut connection, context).await?;
    let (bqual, format_id) = (format!("{}.{}", connection.id(), context.clock.wall_ms()), FORMAT_ID);
    let xid = Xid { gtrid: TRIAL.into(), bqual: bqual.into_bytes(), format_id };
    let (prepared, session) =
        (prepare_trial(&mut connection, &xid, &target.spec.name, context).await, connection.id());
    connection.close().await;
    prepared?;
    find_and_roll_back(target, context, &xid, session).await?;
    Ok(warnings)
}

/// When a trial branch was made, in milliseconds since 1970; its name has the session before it.
pub(crate) fn trial_ms(xid: &Xid) -> Option<i64> {
    let bqual = std::str::from_utf8(&xid.bqual).ok().filter(|_| xid.gtrid == TRIAL.as_bytes())?;
    let (session, ms) = bqual.split_once('.')?;
    session.parse::<u64>().ok().and(ms.parse().ok())
}

/// Rolls back what starts that died in their preflight have left.
async fn sweep_trials(connection: &mut Connection, context: &PreflightContext) -> Result<(), MysqlError> {
    let now_ms = context.clock.wall_ms();
    for xid in prepared_branches(connection).await? {
        let Some(ms) = trial_ms(&xid) else { continue };
        // Not by the session's number, which another one may have once the server was restarted.
        if ms.saturating_add(TRIAL_MS_MAX) > now_ms
            || holder_of(connection, &branch_lock(&xid)).await?.is_some()
        {
            continue;
        }
        wait_until_detached(connection, &context.io).await;
        let doing = format!("rolling {xid} back, which a start has left");
        match connection.run(&doing, &format!("XA ROLLBACK {}", xid.sql())).await {
            Ok(_) => {}
            Err(error) if error.code() == Some(NOT_A_BRANCH) => {} // another start was quicker
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

async fn connect(target: &Target, context: &PreflightContext) -> Result<Connection, MysqlError> {
    Connection::open(&target.url, SessionLimits::below(context.checkpoints.timeout()), &context.io).await
}

async fn prepare_trial(
    connection: &mut Connection,
    xid: &Xid,
    table: &str,
    context: &PreflightContext,
) -> Result<(), MysqlError> {
    let doing = "trying an XA branch";
    let entry = LedgerEntry { target: table.to_owned(), closed_by: CheckpointId(0), rows: 0, note: None };
    // For as long as this session lives, the branch is its own.
    connection.run(doing, &format!("DO GET_LOCK('{}', 0)", branch_lock(xid))).await?;
    connection.run(doing, &format!("XA START {}", xid.sql())).await?;
    ledger::write(connection, xid, &entry, context.clock.wall_ms()).await?;
    connection.run(doing, &format!("XA END {}", xid.sql())).await?;
    connection.run(doing, &format!("XA PREPARE {}", xid.sql())).await?;
    Ok(())
}

async fn find_and_roll_back(
    target: &Target,
    context: &PreflightContext,
    xid: &Xid,
    session: u64,
) -> Result<(), MysqlError> {
    let mut connection = connect(target, context).await?;
    // A branch whose session is ending must be left alone.
    wait_until_gone(&mut connection, &context.io, &[session]).await?;
    wait_until_detached(&connection, &context.io).await;
    let listed = prepared_branches(&mut connection).await?.contains(xid);
    if !listed {
        return Err(MysqlError::Unusable {
            server: target.url.place(),
            why: format!(
                "{} forgets a prepared XA branch when its client leaves, and records would be lost",
                connection.version()
            ),
            remedy: "use a server that keeps them (MariaDB 10.5, MySQL 8.0, or later), connected to directly, or the staging mode"
                .to_owned(),
        });
    }
    for _ in 0..TRIES {
        let doing = format!("rolling the trial branch {xid} back");
        match connection.run(&doing, &format!("XA ROLLBACK {}", xid.sql())).await {
            Ok(_) => {
                connection.close().await;
                return Ok(());
            }
            // The session that prepared it is still ending.
            Err(error) if error.code() == Some(NOT_A_BRANCH) => context.io.sleep(TRY_PAUSE).await,
            Err(error) => return Err(error),
        }
    }
    Err(MysqlError::Unusable {
        server: target.url.place(),
        why: format!(
            "the prepared branch {xid} can be neither committed nor rolled back after its client has left"
        ),
        remedy: format!("XA ROLLBACK {} by hand; does a proxy keep connections open?", xid.sql()),
    })
}
