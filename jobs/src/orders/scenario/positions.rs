//! A kill at each of four places between a record's arrival and its commit, for each way to write.
//!
//! Owns: the places and the grid. Does not own: the stage. Runs on: the main thread.
//!
//! By XA and by staging tables everything must be zero at the end, and nothing may be left in the servers. By upsert rows are written
//! again after a restart, over what is there: zeros in the final tables, while a reader in between could see sums go back
//! ([`super::latency`] measures that).

use serde_json::json;

use super::ScenarioError;
use super::b::RUN_S;
use super::grid::Grid;
use super::notes::Notes;
use super::outcome::{Outcome, figures};
use super::stage::{Plan, Set, Stage, TRIES_MAX};
use crate::address::servers::MysqlMode;
use crate::attempt::Position;

/// Between which steps, the point, and the pass that strikes.
const PLACES: [(&str, &str, Pass); 4] = [
    ("record in the buffer", "sink.write.before", Pass::Batch(50)),
    ("batch half written", HALF_WRITTEN, Pass::Batch(30)),
    ("batch written, checkpoint not complete", "commit_log.checkpoint.before", Pass::Checkpoint(2)),
    ("checkpoint complete, not committed", "commit_log.checkpoint.after", Pass::Checkpoint(2)),
];
/// Between two statements of a transaction; by upsert, where each is one of its own, behind one of them.
const HALF_WRITTEN: &str = "mysql.insert.between";
const HALF_WRITTEN_BY_UPSERT: &str = "mysql.upsert.write.after";
/// Rows of a statement: a subtask has some fifty in each checkpoint, and is to be struck with a part of them written.
const BATCH_ROWS: usize = 5;
const MODES: [MysqlMode; 3] = [MysqlMode::Xa, MysqlMode::Staging, MysqlMode::Upsert];
/// Orders of a run, of those of the call: there are twelve runs.
const SHARE: u64 = 3;
/// Sinks of the job.
const SINKS: u64 = 4;

/// Which pass through a point.
#[derive(Debug, Clone, Copy)]
enum Pass {
    /// So many batches, or statements, of each subtask of each sink.
    Batch(u64),
    /// So many checkpoints.
    Checkpoint(u64),
}

impl Pass {
    fn nth(self, parallelism: u32) -> u64 {
        match self {
            Self::Batch(batches) => batches * SINKS * u64::from(parallelism),
            Self::Checkpoint(checkpoints) => checkpoints,
        }
    }
}

/// Plays it.
///
/// # Errors
/// [`ScenarioError`].
pub(crate) fn play(set: &Set<'_>) -> Result<Outcome, ScenarioError> {
    let orders = (set.args.orders / SHARE).max(1);
    let mut outcome = Outcome::of("positions", "killed at four places, written in three ways".to_owned());
    let mut grid = Grid::of(&[
        "killed at",
        "written by",
        "read",
        "checkpoint",
        "committed",
        "rolled back",
        "audit",
        "left",
        "ok",
    ]);
    for (place, point, pass) in PLACES {
        for mode in MODES {
            let name = point_name(point);
            let plan = Plan { name, mode, orders, rate: Some((orders / RUN_S).max(1)), has_detail: false };
            // Upsert too needs aligned checkpoints: the sums in keyed state must be exact, only their rows may be written again.
            let stage = Stage::set(set, plan)?.with_batch_rows(BATCH_ROWS);
            let point = match (point, mode) {
                (HALF_WRITTEN, MysqlMode::Upsert) => HALF_WRITTEN_BY_UPSERT,
                _ => point,
            };
            let mut notes = Notes::started();
            let nth = pass.nth(set.args.parallelism);
            let (died, at_work) = match pass {
                Pass::Batch(_) => (die_after_a_checkpoint(&stage, point, nth, &mut notes)?, true),
                Pass::Checkpoint(_) => stage.die_at_work(point, nth, &mut notes)?,
            };
            stage.finish(&mut notes)?;
            let back = notes.returns().last().copied();
            let (verdict, left) = (stage.audit()?, stage.leftover()?);
            let ok = verdict.ok() && left.is_none();
            let what = format!("{place}, by {}", mode.word());
            let counts = at_work && died.newest_checkpoint.is_some();
            outcome.timelines.push((what.clone(), notes.into_timeline(), orders));
            outcome.check(what, ok && counts, format!("{}; {}", figures(&verdict), left.words()));
            let zeros = if verdict.ok() { "zeros".to_owned() } else { figures(&verdict) };
            grid.row([
                json!(place),
                json!(mode.word()),
                json!(died.records_in),
                json!(died.newest_checkpoint),
                json!(back.map(|back| back.committed)),
                json!(back.map(|back| back.rolled_back)),
                json!(zeros),
                json!(left.branches + left.staging + left.held_back),
                json!(ok && counts),
            ]);
        }
    }
    outcome.grid = Some(grid);
    Ok(outcome)
}

/// Batches are counted and not foreseen: a kill that comes before any checkpoint is made again, later.
fn die_after_a_checkpoint(
    stage: &Stage,
    point: &str,
    mut nth: u64,
    notes: &mut Notes,
) -> Result<Position, ScenarioError> {
    let mut died = stage.die_at(point, nth, notes)?;
    for _ in 1..TRIES_MAX {
        if died.newest_checkpoint.is_some() {
            break;
        }
        nth *= 2;
        died = stage.die_at(point, nth, notes)?;
    }
    Ok(died)
}

/// A part of the names of topics and folders.
fn point_name(point: &str) -> &'static str {
    match point {
        "sink.write.before" => "buffer",
        HALF_WRITTEN => "half",
        "commit_log.checkpoint.before" => "written",
        _ => "complete",
    }
}
