//! Scenario B: killed inside a transaction and restored; and what hangs when nobody restores.
//!
//! Owns: the play. Does not own: the stage. Runs on: the main thread.
//!
//! 1. The job dies when its branches are prepared and the checkpoint is not in the log.
//! 2. The control: nothing recovers. The branches stand in `XA RECOVER`, and an update of their rows waits for a lock until it is
//!    refused. An operator rolls them back ([`super::settle`]); the same update passes.
//! 3. The job starts again from its checkpoint, and dies when the checkpoint is in the log and nothing is committed.
//! 4. It starts again: its recovery commits what the checkpoint lists. It finishes; nothing counts twice.

use super::ScenarioError;
use super::notes::Notes;
use super::outcome::Outcome;
use super::settle;
use super::stage::{Plan, Set, Stage};
use crate::address::servers::MysqlMode;
use crate::attempt::Position;
use crate::database::{DatabaseError, Session};
use tidegate_jobs::digits::grouped;
use tidegate_jobs::stopwatch::Stopwatch;

/// The server's word for a lock that did not come.
const LOCK_WAIT_TIMEOUT: u16 = 1205;
/// Seconds in which a run at its rate reads all orders.
pub(crate) const RUN_S: u64 = 4;

/// Plays it.
///
/// # Errors
/// [`ScenarioError`].
pub(crate) fn play(set: &Set<'_>) -> Result<Outcome, ScenarioError> {
    let args = set.args;
    let rate = Some((args.orders / RUN_S).max(1));
    let plan = Plan { name: "b", mode: MysqlMode::Xa, orders: args.orders, rate, has_detail: true };
    let stage = Stage::set(set, plan)?;
    let mut outcome = Outcome::of("B", "killed inside a transaction, restored; and left alone".to_owned());
    let mut notes = Notes::started();

    let (died, _) = stage.die_at_work("commit_log.checkpoint.before", 2, &mut notes)?;
    outcome.line(killed("branches prepared, checkpoint not in the log", &died));
    left_alone(&stage, &mut outcome)?;

    let (died, _) = stage.die_at_work("commit_log.checkpoint.after", 2, &mut notes)?;
    outcome.line(killed("checkpoint in the log, nothing committed", &died));
    let prepared = stage.leftover()?.branches;
    let finished = stage.finish(&mut notes)?;
    let back = notes.returns().last().copied();
    let committed = back.map_or(0, |back| back.committed);
    outcome.line(format!(
        "restored    in {} ms: committed {committed}, rolled back {}; finished with {} orders",
        back.map_or(0, |back| back.recovery_ms),
        back.map_or(0, |back| back.rolled_back),
        grouped(finished.records_in)
    ));
    let found = format!(
        "{prepared} branches were prepared; the restart committed {committed} transactions, those of the second topic among them"
    );
    outcome.check("what the log says is complete is committed by the restart", committed > 0, found);
    outcome.audited(stage.audit()?);
    outcome.nothing_left(stage.leftover()?);
    outcome.timeline = Some((notes.into_timeline(), args.orders));
    Ok(outcome)
}

/// The control: what stands in the server when nobody recovers, and that it is gone when an operator has settled it.
fn left_alone(stage: &Stage, outcome: &mut Outcome) -> Result<(), ScenarioError> {
    let mut session = Session::open(stage.tables())?;
    let branches = stage.branches(&mut session)?;
    let found = format!("{} in XA RECOVER", branches.len());
    outcome.check("without a restart the branches hang, prepared", !branches.is_empty(), found);
    let (waited_ms, refused) = update_all(&mut session)?;
    let found = match refused {
        true => format!("refused after {waited_ms} ms (error {LOCK_WAIT_TIMEOUT})"),
        false => format!("passed in {waited_ms} ms"),
    };
    outcome.check("an update of their rows waits for their locks", refused, found);
    let settled = settle::roll_back(stage.tables(), &branches)?;
    let left = stage.branches(&mut session)?.len();
    let (waited_ms, refused) = update_all(&mut session)?;
    let found = format!(
        "{settled} rolled back, {left} left; the update {} in {waited_ms} ms",
        if refused { "refused" } else { "passed" }
    );
    outcome.check("an operator (tidegate xa rollback) clears them", left == 0 && !refused, found);
    Ok(())
}

/// Touches every sum; answers how long it took, and whether a lock was missing.
fn update_all(session: &mut Session) -> Result<(u64, bool), DatabaseError> {
    session.run("wait a second for locks", "SET SESSION innodb_lock_wait_timeout = 1")?;
    let watch = Stopwatch::started();
    let sql =
        "UPDATE t_order_stat SET order_count = order_count + 0, total_amount_cents = total_amount_cents + 0";
    match session.run("update the sums", sql) {
        Ok(()) => Ok((watch.elapsed_ms(), false)),
        Err(error) if error.code() == Some(LOCK_WAIT_TIMEOUT) => Ok((watch.elapsed_ms(), true)),
        Err(error) => Err(error),
    }
}

/// One line.
pub(crate) fn killed(place: &str, died: &Position) -> String {
    let checkpoint = died.newest_checkpoint.map_or_else(|| "none".to_owned(), |id| id.to_string());
    format!("kill -9     {place}: {} orders read, newest checkpoint {checkpoint}", grouped(died.records_in))
}
