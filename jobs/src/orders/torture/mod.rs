//! `orders torture`: the job killed many times at chosen places, restarted from its checkpoints, and audited.
//!
//! Owns: the flags and the order of the steps.
//! Does not own: which kills ([`schedule`] over the [`place`]s), the killing ([`campaign`]), the control group
//! ([`control`]), the look into the checkpoint folder ([`checkpoint_folder`]), the audit ([`crate::verify`]), the [`report`].
//! Runs on: the main thread; the job runs in child processes.
//!
//! 1. A fresh folder, and the input in it: made-up orders, or the real purchases.
//! 2. With `--mode none` or `at-most-once` the control group: killed, and restarted without its checkpoints.
//! 3. The job, killed as the schedule (or the script of the control group) says, restarted from its latest checkpoint each
//!    time, and at last run to its end.
//! 4. The tables compared with the input, and the checkpoint folder with what the retained checkpoints refer to.

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
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use self::campaign::Campaign;
use self::control::{BadRestart, Script};
use self::display::Display;
pub(crate) use self::error::TortureError;
use self::report::{Settings, Tortured, control_text};
use self::schedule::{KILLS_MIN, Strike, schedule};
use crate::generate::{GenerateArgs, write_orders};
use crate::import::import_purchases;
use crate::partitions::MAX_PARTITIONS;
use crate::run_line::RunLine;
use crate::verify::audit;
use crate::work_folder::WorkFolder;
use tidegate::parse_duration;
use tidegate_jobs::digits::{counted, grouped};

/// Kills, when none are asked for.
const KILLS: u32 = 20;
/// Kills of a control group, and the fewest that replay half of its run.
const CONTROL_KILLS: u32 = 3;
/// Made-up orders for each kill and subtask, when none are asked for: enough for batches of more than one statement.
const ORDERS_PER_KILL: u64 = 1_000;
/// A job of fewer subtasks gets as many orders as this one.
const SUBTASKS_MIN: u32 = 3;
/// Made-up orders of a control group.
const CONTROL_ORDERS: u64 = 20_000;
/// Between two checkpoints, when nothing is asked for.
const INTERVAL: Duration = Duration::from_millis(100);
/// Checkpoint intervals in the share of the input that a kill has.
const INTERVALS_PER_KILL: u64 = 3;
/// Shares of the input beyond the kills: something must be left behind the last one.
const SHARES_LEFT: u64 = 4;

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TortureMode {
    /// The job as it should be.
    ExactlyOnce,
    /// Control group: no checkpoints, each restart begins at the beginning; orders count twice.
    None,
    /// Control group: each restart begins at the position last read; orders are lost.
    AtMostOnce,
}

/// Flags of `orders torture`.
#[derive(Debug, Args)]
pub(crate) struct TortureArgs {
    /// Number of kills that count: at least 7 (20 if not given), so that each named place is struck; a control group takes 3 or more.
    #[arg(long, value_name = "K")]
    pub(crate) kills: Option<u32>,
    /// Another seed makes other orders and other kills.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What is tortured; a control group runs beside the job as it should be, under the same kills.
    #[arg(long, value_enum, default_value_t = TortureMode::ExactlyOnce)]
    pub(crate) mode: TortureMode,
    /// The folder of everything that is made; what an earlier torture left there is removed.
    #[arg(long, value_name = "DIR", default_value = "target/torture")]
    pub(crate) dir: PathBuf,
    /// Use these real purchases (jobs/data/cdnow_purchases.txt) instead of made-up orders.
    #[arg(long, value_name = "FILE", conflicts_with = "orders")]
    pub(crate) purchases: Option<PathBuf>,
    /// Number of made-up orders; if not given, 1,000 for each kill and subtask, for a control group 20,000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) orders: Option<u64>,
    /// Made-up orders: number of users.
    #[arg(long, value_name = "U", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// Number of partition files; one for --mode at-most-once, whose position is a line number.
    #[arg(long, value_name = "P", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=MAX_PARTITIONS))]
    pub(crate) partitions: u32,
    /// Parallel subtasks of each operator.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) parallelism: u32,
    /// Between the triggers of two checkpoints: 100ms if not given, for a control group 500ms or more.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) checkpoint_interval: Option<Duration>,
    /// Print one JSON object at the end; what happens meanwhile goes to standard error.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags that are right one by one and not together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TortureUsage {
    /// Too few kills for what they must show.
    #[error("--kills {kills} is too few: {needed} are needed to strike each named place once")]
    TooFew {
        /// What was given.
        kills: u32,
        /// The least.
        needed: u32,
    },
    /// Too few kills for a control group.
    #[error(
        "--kills {kills} is too few: with less than {needed} a control group replays less than half of its run"
    )]
    TooFewOfControl {
        /// What was given.
        kills: u32,
        /// The least.
        needed: u32,
    },
}

impl TortureArgs {
    /// Checks the flags against each other.
    ///
    /// # Errors
    /// [`TortureUsage`].
    pub(crate) fn check(&self) -> Result<(), TortureUsage> {
        match (self.kills, self.bad_restart()) {
            (Some(kills), None) if kills < KILLS_MIN => {
                Err(TortureUsage::TooFew { kills, needed: KILLS_MIN })
            }
            (Some(kills), Some(_)) if kills < CONTROL_KILLS => {
                Err(TortureUsage::TooFewOfControl { kills, needed: CONTROL_KILLS })
            }
            _ => Ok(()),
        }
    }

    fn bad_restart(&self) -> Option<BadRestart> {
        match self.mode {
            TortureMode::ExactlyOnce => None,
            TortureMode::None => Some(BadRestart::None),
            TortureMode::AtMostOnce => Some(BadRestart::AtMostOnce),
        }
    }
}

/// Runs all steps and prints what happens.
///
/// # Errors
/// [`TortureError`] when a step could not be done or a kill could not be made. Tables that differ, a place that was not struck,
/// files left over and a control without damage are no errors but exit status 1.
pub(crate) fn torture(args: &TortureArgs) -> Result<ExitCode, TortureError> {
    let folder = WorkFolder::fresh(&args.dir, "torture")?;
    let orders = write_input(args, &folder)?;
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
    let settings =
        Settings { seed: args.seed, parallelism: args.parallelism, mode: "exactly-once", every_place: true };
    let display = Display::new(args.json, u64::from(kills));
    display.line(&format!("{} · {kills} kills, seed {}", title(args, orders, interval), args.seed));
    let line = run_line(args, folder, interval, rate);
    let strikes = schedule(kills, args.seed, args.parallelism);
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
    let script = Script::new(restart, kills, orders, args.checkpoint_interval);
    let settings =
        Settings { seed: args.seed, parallelism: args.parallelism, mode: restart.word(), every_place: false };
    let display = Display::new(args.json, u64::from(kills) * 2);
    display.line(&format!(
        "{} · {kills} kills, each 0.8 of an interval after a checkpoint",
        title(args, orders, script.interval)
    ));
    let line = run_line(args, folder, script.interval, script.rate);
    display.line(&format!("  control: --mode {}", restart.word()));
    let control = control::run(restart, script, &line, &folder.part("control")?, &display)?;
    if !args.json {
        display.line(&control_text(&control));
    }
    display.line("  the same kills with --mode exactly-once");
    let part = folder.part("exactly-once")?;
    let line = RunLine { database: part.database(), checkpoints: Some(part.checkpoints()), ..line };
    let tortured = tortured(line, &part, orders, 1, &script.strikes(args.parallelism), &display)?;
    match args.json {
        true => print(&format!("{}\n", report::to_json(&settings, Some(&control), &tortured))),
        false => print(&tortured.to_text(&settings)),
    }
    Ok(status(control.proves() && tortured.ok(&settings)))
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
    let input = line.input.clone();
    let kills = Campaign::new(line, orders, share, display).run(strikes)?;
    let verdict = audit(&input, &folder.database())?;
    Ok(Tortured { kills, verdict, folder: checkpoint_folder::check(&folder.checkpoints())? })
}

fn run_line(args: &TortureArgs, folder: &WorkFolder, interval: Duration, rate: u64) -> RunLine {
    RunLine {
        input: folder.input(),
        database: folder.database(),
        checkpoints: Some(folder.checkpoints()),
        interval,
        parallelism: args.parallelism,
        rate: Some(rate),
        restore: "latest",
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
