//! `orders torture`: the job killed many times at chosen places, restarted from its checkpoints, and audited.
//!
//! Owns: the order of the steps.
//! Does not own: the flags ([`args`]), which kills ([`schedule`] over the [`place`]s), the killing ([`campaign`]), the control group
//! ([`control`]), the look into the checkpoint folder ([`checkpoint_folder`]), the audit ([`crate::verify`]), the [`report`].
//! Runs on: the main thread; the job runs in child processes.
//!
//! 1. A fresh folder, and the input in it: made-up orders, or the real purchases.
//! 2. With `--mode none` or `at-most-once` the control group: killed, and restarted without its checkpoints.
//! 3. The job, killed as the schedule (or the script of the control group) says, restarted from its latest checkpoint each
//!    time, and at last run to its end.
//! 4. The tables compared with the input, and the checkpoint folder with what the retained checkpoints refer to.

mod args;
mod campaign;
mod checkpoint_folder;
mod control;
mod display;
mod error;
mod kill;
mod output;
mod place;
mod report;
mod run_watch;
mod schedule;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

pub(crate) use self::args::TortureArgs;
use self::args::{CONTROL_KILLS, TortureMode};
use self::campaign::Campaign;
use self::control::{BadRestart, Script, in_time};
use self::display::Display;
pub(crate) use self::error::TortureError;
use self::place::SinkPoints;
use self::report::{Settings, Tortured, control_text};
use self::schedule::{Strike, schedule};
use crate::address::{SinkAddress, SourceAddress};
use crate::generate::{GenerateArgs, write_orders};
use crate::ground;
use crate::import::import_purchases;
use crate::leftover::Leftover;
use crate::run_line::RunLine;
use crate::verify::audit_all;
use crate::work_folder::WorkFolder;
use tidegate_jobs::digits::{counted, grouped};

/// Kills, when none are asked for.
const KILLS: u32 = 20;
/// Made-up orders for each kill and subtask, when none are asked for: enough for batches of more than one statement.
const ORDERS_PER_KILL: u64 = 1_000;
/// A job of fewer subtasks gets as many orders as this one.
const SUBTASKS_MIN: u32 = 3;
/// Made-up orders of a control group.
const CONTROL_ORDERS: u64 = 20_000;
/// Between two checkpoints, when nothing is asked for.
const INTERVAL: Duration = Duration::from_millis(100);
/// Between two checkpoints of a control group on servers, whose restarts take longer.
const SERVER_INTERVAL: Duration = Duration::from_millis(1_500);
/// Checkpoint intervals in the share of the input that a kill has.
const INTERVALS_PER_KILL: u64 = 3;
/// Rows of a statement into a server's table, when the address does not say.
#[cfg(feature = "mysql")]
const BATCH_ROWS: usize = 20;
/// Shares of the input beyond the kills: something must be left behind the last one.
const SHARES_LEFT: u64 = 4;

/// Runs all steps and prints what happens.
///
/// # Errors
/// [`TortureError`] when a step could not be done or a kill could not be made. Tables that differ, a place that was not struck,
/// files left over and a control without damage are no errors but exit status 1.
pub(crate) fn torture(args: &TortureArgs) -> Result<ExitCode, TortureError> {
    let folder = WorkFolder::fresh(&args.dir, "torture")?;
    let orders = write_input(args, &folder)?;
    // The tables first: a call that they refuse has filled no topic.
    ground::empty(&sink_of(args, &folder), args.partitions, args.force)?;
    if let Some(detail) = args.detail() {
        ground::empty(detail, args.partitions, args.force)?;
    }
    if let Some(source) = &args.source {
        ground::fill(source, &folder.input(), partitions(args), args.force)?;
    }
    match args.bad_restart() {
        None => exactly_once(args, &folder, orders),
        Some(restart) => control_group(args, restart, &folder, orders),
    }
}

fn exactly_once(args: &TortureArgs, folder: &WorkFolder, orders: u64) -> Result<ExitCode, TortureError> {
    let kills = args.kills.unwrap_or(KILLS);
    let interval = args.checkpoint_interval.unwrap_or(INTERVAL);
    let share = (orders / (u64::from(kills) + SHARES_LEFT)).max(1);
    let millis = u64::try_from(interval.as_millis()).unwrap_or(u64::MAX).saturating_mul(INTERVALS_PER_KILL);
    let rate = (share * 1_000 / millis.max(1)).max(1);
    let settings = settings(args, "exactly-once", true);
    let display = Display::new(args.json, u64::from(kills));
    display.line(&format!("{} · {kills} kills, seed {}", title(args, orders, interval), args.seed));
    let line = run_line(args, folder, interval, rate);
    let strikes = schedule(kills, args.seed, args.parallelism, SinkPoints::of(&line.sink));
    let tortured = tortured(line, folder, orders, share, &strikes, &display)?;
    match args.json {
        true => print(&format!("{}\n", report::to_json(&settings, None, &tortured))),
        false => print(&tortured.to_text(&settings)),
    }
    Ok(status(tortured.ok(&settings)))
}

fn control_group(
    args: &TortureArgs,
    restart: BadRestart,
    folder: &WorkFolder,
    orders: u64,
) -> Result<ExitCode, TortureError> {
    let kills = args.kills.unwrap_or(CONTROL_KILLS);
    let slower = args.sink.is_some().then_some(SERVER_INTERVAL);
    let script = Script::new(restart, kills, orders, args.checkpoint_interval.or(slower));
    let settings = settings(args, restart.word(), false);
    let display = Display::new(args.json, u64::from(kills) * 2);
    display.line(&format!(
        "{} · {kills} kills, each 0.8 of an interval after a checkpoint",
        title(args, orders, script.interval)
    ));
    display.line(&format!("  control: --mode {}", restart.word()));
    let control = in_time("control", script, &display, |part, script| {
        let (part, line) = (folder.part(part)?, run_line(args, folder, script.interval, script.rate));
        let sink = control_sink(args, &part);
        ground::empty(&sink, args.partitions, true)?;
        control::run(restart, script, &line, &part, sink, &display)
    })?;
    if !args.json {
        display.line(&control_text(&control));
    }
    display.line("  the same kills with --mode exactly-once");
    let tortured = in_time("exactly-once", script, &display, |part, script| {
        let part = folder.part(part)?;
        let sink = sink_of(args, &part);
        ground::empty(&sink, args.partitions, true)?;
        let line = run_line(args, folder, script.interval, script.rate);
        let line = RunLine { sink, checkpoints: Some(part.checkpoints()), ..line };
        // Its kills have no shares: they fall where the control's fell, and so at the script's own speed.
        tortured(line, &part, orders, orders, &script.strikes(args.parallelism), &display)
    })?;
    match args.json {
        true => print(&format!("{}\n", report::to_json(&settings, Some(&control), &tortured))),
        false => print(&tortured.to_text(&settings)),
    }
    Ok(status(control.proves() && tortured.ok(&settings)))
}

/// The same place, written without two phases.
fn control_sink(args: &TortureArgs, folder: &WorkFolder) -> SinkAddress {
    match sink_of(args, folder) {
        #[cfg(feature = "mysql")]
        SinkAddress::Mysql(address) => {
            SinkAddress::Mysql(address.in_mode(crate::address::servers::MysqlMode::Plain))
        }
        other => other,
    }
}

/// The kills, the audit, and the look into the checkpoint folder.
fn tortured(
    line: RunLine,
    folder: &WorkFolder,
    orders: u64,
    share: u64,
    strikes: &[Strike],
    display: &Display,
) -> Result<Tortured, TortureError> {
    let kills = Campaign::new(line.clone(), orders, share, display).run(strikes)?;
    let verdict = audit_all(&line.source, &line.sink, line.detail.as_ref())?;
    let left = Leftover::of(&line)?;
    Ok(Tortured { kills, verdict, left, folder: checkpoint_folder::check(&folder.checkpoints())? })
}

fn run_line(args: &TortureArgs, folder: &WorkFolder, interval: Duration, rate: u64) -> RunLine {
    RunLine {
        source: args.source.clone().unwrap_or_else(|| SourceAddress::Files(folder.input())),
        sink: sink_of(args, folder),
        detail: args.detail().cloned(),
        checkpoints: Some(folder.checkpoints()),
        interval,
        parallelism: args.parallelism,
        rate: Some(rate),
        follow: false,
        mode: "exactly-once",
        restore: "latest",
    }
}

fn settings(args: &TortureArgs, mode: &'static str, every_place: bool) -> Settings {
    Settings {
        seed: args.seed,
        parallelism: args.parallelism,
        mode,
        on_servers: args.sink.is_some(),
        every_place,
    }
}

/// The server's database, or a file in the folder.
fn sink_of(args: &TortureArgs, folder: &WorkFolder) -> SinkAddress {
    match args.sink.clone() {
        None => SinkAddress::Sqlite(folder.database()),
        // A transaction of many statements can be struck between two of them.
        #[cfg(feature = "mysql")]
        Some(SinkAddress::Mysql(address)) if address.batch_rows.is_none() => {
            SinkAddress::Mysql(address.with_batch_rows(BATCH_ROWS))
        }
        Some(sink) => sink,
    }
}

/// Puts the input into the folder and answers the number of orders.
fn write_input(args: &TortureArgs, folder: &WorkFolder) -> Result<u64, TortureError> {
    let partitions = partitions(args);
    if let Some(purchases) = &args.purchases {
        return Ok(import_purchases(purchases, partitions, &folder.input(), false)?.orders);
    }
    let default = match args.mode {
        TortureMode::ExactlyOnce => {
            let subtasks = u64::from(args.parallelism.max(SUBTASKS_MIN));
            ORDERS_PER_KILL * subtasks * u64::from(args.kills.unwrap_or(KILLS))
        }
        TortureMode::None | TortureMode::AtMostOnce => CONTROL_ORDERS,
    };
    let orders = args.orders.unwrap_or(default);
    write_orders(&GenerateArgs {
        orders,
        users: args.users,
        partitions,
        seed: args.seed,
        out: folder.input(),
        force: false,
    })?;
    Ok(orders)
}

fn partitions(args: &TortureArgs) -> u32 {
    if args.mode == TortureMode::AtMostOnce { 1 } else { args.partitions }
}

fn title(args: &TortureArgs, orders: u64, interval: Duration) -> String {
    let kind = if args.purchases.is_some() { "real purchases" } else { "made-up orders" };
    format!(
        "Tidegate orders torture · {} {kind} · {} · parallelism {} · checkpoints every {} ms",
        grouped(orders),
        counted(u64::from(partitions(args)), "partition"),
        args.parallelism,
        interval.as_millis()
    )
}

fn print(text: &str) {
    // A reader that has seen enough closes the pipe: the exit status still tells.
    let _ = std::io::stdout().write_all(text.as_bytes());
}

fn status(ok: bool) -> ExitCode {
    if ok { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
