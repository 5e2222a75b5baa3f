//! Scenario A: no fault. Topic → engine → tables and a second topic, each what a plain loop makes of the orders.
//!
//! Owns: the play. Does not own: the stage. Runs on: the main thread.

use super::ScenarioError;
use super::notes::Notes;
use super::outcome::Outcome;
use super::stage::{Plan, Set, Stage};
use crate::address::servers::MysqlMode;
use tidegate_jobs::digits::{counted, grouped};

/// Plays it.
///
/// # Errors
/// [`ScenarioError`].
pub(crate) fn play(set: &Set<'_>) -> Result<Outcome, ScenarioError> {
    let args = set.args;
    let plan = Plan { name: "a", mode: MysqlMode::Xa, orders: args.orders, rate: None, has_detail: true };
    let stage = Stage::set(set, plan)?;
    let title = format!(
        "no fault · {} orders of {} · {}, parallelism {}",
        grouped(args.orders),
        counted(args.users, "user"),
        counted(args.parallelism.into(), "partition"),
        args.parallelism
    );
    let mut outcome = Outcome::of("A", title);
    let mut notes = Notes::started();
    let finished = stage.finish(&mut notes)?;
    outcome.line(format!(
        "finished    {} orders, {}",
        grouped(finished.records_in),
        counted(finished.checkpoints, "checkpoint")
    ));
    outcome.audited(stage.audit()?);
    outcome.nothing_left(stage.leftover()?);
    outcome.timeline = Some((notes.into_timeline(), args.orders));
    Ok(outcome)
}
