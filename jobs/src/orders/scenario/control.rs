//! The control group: `orders torture --mode none` on the real chain, and the same kills on the job as it should be.
//!
//! Owns: that the damage shows. Does not own: the script of the kills ([`crate::torture`]).
//! Runs on: the main thread; torture is a process of its own.

use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::ScenarioError;
use super::grid::Grid;
use super::outcome::Outcome;
use super::stage::Set;
use crate::address::SinkAddress;
use crate::address::servers::MysqlMode;

/// What share of the orders must be there twice.
const DUPLICATE_RATE_MIN: f64 = 0.4;
/// Lines of a failed command that are shown.
const LINES_SHOWN: usize = 12;

/// Plays it.
///
/// # Errors
/// [`ScenarioError`].
pub(crate) fn play(set: &Set<'_>) -> Result<Outcome, ScenarioError> {
    let sink = SinkAddress::Mysql(set.servers.mysql.in_mode(MysqlMode::Xa));
    let args = set.args;
    let mut command = Command::new(std::env::current_exe().map_err(ScenarioError::Program)?);
    command
        .args(["torture", "--mode=none", "--force", "--json"])
        .arg(format!("--source={}", set.topic("control")))
        .arg(format!("--sink={sink}"))
        .arg(format!("--orders={}", args.orders.max(1_000)))
        .arg(format!("--users={}", args.users))
        .arg(format!("--seed={}", args.seed))
        .arg(format!("--partitions={}", args.parallelism))
        .arg(format!("--parallelism={}", args.parallelism))
        .arg(format!("--dir={}", set.folder.path().join("control").display()))
        .stdin(Stdio::null());
    let output = command.output().map_err(ScenarioError::Program)?;
    let failed = || ScenarioError::Command {
        command: "torture --mode none".to_owned(),
        status: output.status.to_string(),
        said: last_lines(&String::from_utf8_lossy(&output.stderr)),
    };
    let report: Value = serde_json::from_slice(&output.stdout).map_err(|_| failed())?;
    Ok(outcome(&report))
}

fn outcome(report: &Value) -> Outcome {
    let mut outcome = Outcome::of("control", "the same kills, without checkpoints and with them".to_owned());
    let mut grid = Grid::of(&["job", "kills", "expected", "rows", "duplicates", "lost", "deviation, cents"]);
    for (words, part) in [("without checkpoints", report), ("exactly once", &report["exactly_once"])] {
        let cells = ["kills", "expected", "actual", "duplicates", "lost", "deviation_cents"];
        grid.row([json!(words)].into_iter().chain(cells.map(|cell| part[cell].clone())));
    }
    outcome.grid = Some(grid);
    let rate = report["duplicate_rate"].as_f64().unwrap_or_default();
    let found = format!("{:.1} %", rate * 100.0);
    outcome.check(
        "without checkpoints more than 40 % of the orders are there twice",
        rate > DUPLICATE_RATE_MIN,
        found,
    );
    let exact = report["exactly_once"]["ok"] == true;
    let found = format!(
        "duplicates {}, lost {}, deviation {} cents",
        report["exactly_once"]["duplicates"],
        report["exactly_once"]["lost"],
        report["exactly_once"]["deviation_cents"]
    );
    outcome.check("the same kills leave the job as it should be at zeros", exact, found);
    outcome
}

fn last_lines(text: &str) -> String {
    let lines: Vec<_> = text.lines().collect();
    let first = lines.len().saturating_sub(LINES_SHOWN);
    lines[first..].iter().map(|line| format!("\n  | {line}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_control_without_damage_does_not_pass() {
        let report = |rate: f64, ok: bool| json!({"duplicate_rate": rate, "exactly_once": {"ok": ok}});
        assert!(outcome(&report(0.5, true)).ok());
        assert!(!outcome(&report(0.4, true)).ok());
        assert!(!outcome(&report(0.5, false)).ok());
    }
}
