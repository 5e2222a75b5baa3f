//! Exactly-once beside at-least-once on the same orders, the same kill and the same server: how long an order takes to its visible
//! row, how long nothing new shows after a kill, and what a reader sees twice who looks all the time.
//!
//! Owns: the play and the table. Does not own: the feeding ([`feeder`]), the looking ([`reader`]), percentiles ([`percentile`]).
//! Runs on: the main thread, with a thread that feeds and one that looks.

mod feeder;
mod percentile;
mod plot;
mod reader;

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use self::feeder::Feeder;
use self::percentile::percentile;
use self::plot::{Series, plot};
use self::reader::{Reader, Sight};
use super::ScenarioError;
use super::grid::Grid;
use super::notes::Notes;
use super::outcome::Outcome;
use super::stage::{Plan, Set, Stage};
use crate::address::servers::MysqlMode;
use crate::attempt::{AttemptError, KillPoint, Observer, Position};
use tidegate::RunEvent;
use tidegate_jobs::child::Child;
use tidegate_jobs::stopwatch::Stopwatch;

/// How the tables are written, in words, and the job's checkpoints. Those of upsert are aligned, so that the sums in keyed state are
/// exact: at least once is how its rows are written.
const MODES: [(&str, MysqlMode, &str); 4] = [
    ("XA, exactly once", MysqlMode::Xa, "exactly-once"),
    ("staging, exactly once", MysqlMode::Staging, "exactly-once"),
    ("upsert, at least once", MysqlMode::Upsert, "exactly-once"),
    ("plain, at least once", MysqlMode::Plain, "at-least-once"),
];
/// Of the orders of the call.
const SHARE: u64 = 5;
/// Seconds of feeding.
const FEED_S: u64 = 4;
/// Between a kill and the first row that can come from the next process: none starts faster.
const RETURN_MS_MIN: u64 = 20;
/// The kill waits for so many checkpoints, so that rows have been seen before it.
const CHECKPOINTS_MIN: u64 = 3;
/// All rows are there after this time, or something hangs.
const PATIENCE: Duration = Duration::from_secs(60);
/// An order is visible an interval later, and this much more.
const ALLOWANCE_MS: u64 = 100;

/// What was measured for one way to write.
#[derive(Debug)]
struct Measured {
    /// From the order's sending to the first sight of its row, in microseconds, sorted; only what was seen before the kill.
    latencies_us: Vec<u64>,
    recovery_ms: Option<u64>,
    /// Every order: when it was sent, and how much later it was seen.
    dots: Vec<(u64, u64)>,
    killed_us: u64,
    sight: Sight,
    audit_ok: bool,
}

/// Plays it.
///
/// # Errors
/// [`ScenarioError`].
pub(crate) fn play(set: &Set<'_>) -> Result<Outcome, ScenarioError> {
    let orders = (set.args.orders / SHARE).max(1);
    let interval_ms = u64::try_from(set.args.checkpoint_interval.as_millis()).unwrap_or(u64::MAX);
    let title =
        format!("exactly once beside at least once · checkpoints every {interval_ms} ms, one kill -9 each");
    let mut outcome = Outcome::of("latency", title);
    let mut grid = Grid::of(&[
        "written by",
        "p50, ms",
        "p99, ms",
        "back after, ms",
        "orders seen twice",
        "sums seen going back",
        "final tables as asked",
    ]);
    let mut series = Vec::new();
    for (words, mode, guarantee) in MODES {
        let measured = measure(set, mode, guarantee, orders)?;
        series.push(Series { name: words, dots: measured.dots.clone(), killed_us: measured.killed_us });
        let at = |percent| percentile(&measured.latencies_us, percent).map(|us| us / 1_000);
        grid.row([
            json!(words),
            json!(at(50)),
            json!(at(99)),
            json!(measured.recovery_ms),
            json!(measured.sight.orders_twice),
            json!(measured.sight.sums_back),
            json!(measured.audit_ok),
        ]);
        if matches!(mode, MysqlMode::Xa | MysqlMode::Staging) {
            let (twice, back) = (measured.sight.orders_twice, measured.sight.sums_back);
            let what = format!("{words}: a reader sees no order twice and no sum going back");
            outcome.check(what, twice == 0 && back == 0, format!("{twice} orders, {back} sums"));
            let found = if measured.audit_ok { "zeros" } else { "differences" };
            outcome.check(format!("{words}: the final tables are as asked"), measured.audit_ok, found);
        }
        if mode == MysqlMode::Upsert {
            let found = if measured.audit_ok { "zeros" } else { "differences" };
            outcome.check(format!("{words}: the final tables are as asked"), measured.audit_ok, found);
        }
        if mode == MysqlMode::Plain && measured.sight.orders_twice == 0 {
            outcome.line(format!(
                "{words}: the kill fell where nothing had been written behind a checkpoint, and no difference shows in this run"
            ));
        }
        if mode == MysqlMode::Xa {
            let p99_ms = at(99).unwrap_or(u64::MAX);
            outcome.line(format!(
                "p99 of XA   {p99_ms} ms; on an idle machine at most the interval and {ALLOWANCE_MS} ms: {}",
                interval_ms + ALLOWANCE_MS
            ));
        }
    }
    outcome.grid = Some(grid);
    outcome.drawing = Some(plot(&series));
    Ok(outcome)
}

fn measure(
    set: &Set<'_>,
    mode: MysqlMode,
    guarantee: &'static str,
    orders: u64,
) -> Result<Measured, ScenarioError> {
    let plan = Plan { name: "latency", mode, orders: 0, rate: None, has_detail: false };
    let mut stage = Stage::set(set, plan)?;
    stage.line_mut().follow = true;
    stage.line_mut().mode = guarantee;
    let clock = Stopwatch::started();
    let reader = Reader::start(stage.tables(), orders, clock)?;
    let feeder = Feeder::start(set, stage.source(), orders, (orders / FEED_S).max(1), clock)?;
    let mut notes = Notes::started();
    let half = orders / 2;
    let point = KillPoint {
        records_in: half,
        records_in_at_last: half,
        checkpoints: CHECKPOINTS_MIN,
        records_after_checkpoint: 0,
    };
    // Without a row seen before it there would be no latency to tell.
    let killed = stage.kill_when(&|position| point.is_reached(position) && reader.has_some(), &mut notes);
    let killed_us = micros(clock);
    killed?;
    let ran = run_until_seen(&stage, &reader, &mut notes);
    let sent_us = feeder.join()?;
    let sight = reader.join()?;
    ran?;
    let first = |order: usize| sight.first_us.get(order).copied().flatten();
    let dots: Vec<(u64, u64)> = (0..sent_us.len())
        .filter_map(|order| Some((*sent_us.get(order)?, first(order)?)))
        .map(|(sent, seen)| (sent, seen.saturating_sub(sent)))
        .collect();
    let before_the_kill = dots.iter().filter(|(sent, took)| sent + took <= killed_us);
    let mut latencies_us: Vec<u64> = before_the_kill.map(|(_, took)| *took).collect();
    latencies_us.sort_unstable();
    let new = sight.first_us.iter().flatten().filter(|&&seen| seen > killed_us + RETURN_MS_MIN * 1_000);
    let recovery_ms = new.min().map(|first| (first - killed_us) / 1_000);
    let audit_ok = stage.audit()?.ok();
    Ok(Measured { latencies_us, recovery_ms, dots, killed_us, sight, audit_ok })
}

/// The run after the kill: it goes on until the reader has seen every order, and is then told to end in order.
fn run_until_seen(stage: &Stage, reader: &Reader, notes: &mut Notes) -> Result<(), ScenarioError> {
    let failed = |source| ScenarioError::Run {
        scenario: "latency",
        what: "the run after the kill did not go on".to_owned(),
        source: AttemptError::Child(source),
    };
    let mut command = stage.line().command().map_err(ScenarioError::Program)?;
    command.stdin(Stdio::null());
    let mut child = Child::<RunEvent>::start(command).map_err(failed)?;
    let (watch, mut position, mut told) = (Stopwatch::started(), Position::default(), false);
    while let Some(event) = child.next_event(PATIENCE).map_err(failed)? {
        position.advance(&event);
        notes.event(&event, &position);
        let late = watch.elapsed() > PATIENCE;
        if !told && (reader.has_all() || late) {
            told = true;
            reader.stop();
            if let Some(pid) = i32::try_from(child.pid()).ok().and_then(Pid::from_raw) {
                // It has ended already, where this fails.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
    reader.stop();
    let ending = child.wait().map_err(failed)?;
    if watch.elapsed() > PATIENCE {
        let said = ending.error_output.join(" ");
        let what = format!("the last of the rows ({said})");
        return Err(ScenarioError::Waited { scenario: "latency", what, waited_s: PATIENCE.as_secs() });
    }
    Ok(())
}

/// Since the start, in microseconds.
fn micros(clock: Stopwatch) -> u64 {
    u64::try_from(clock.elapsed().as_micros()).unwrap_or(u64::MAX)
}

/// Joins a thread that measures.
fn joined<T>(
    handle: std::thread::JoinHandle<Result<T, ScenarioError>>,
    what: &str,
) -> Result<T, ScenarioError> {
    let waited = || ScenarioError::Waited { scenario: "latency", what: what.to_owned(), waited_s: 0 };
    handle.join().unwrap_or_else(|_| Err(waited()))
}

/// A flag that one thread raises for another.
type Flag = Arc<std::sync::atomic::AtomicBool>;
