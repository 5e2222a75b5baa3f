//! `orders demo`: the job, a `kill -9` in the middle, a restart, and the proof.
//!
//! Owns: the flags and the order of the steps.
//! Does not own: the folder ([`WorkFolder`]), the watched runs ([`crate::attempt`]), what is shown and noted meanwhile
//! ([`audience`] with [`display`] and [`timeline`]), the [`report`], the comparison ([`crate::verify`]).
//! Runs on: the main thread; the job runs in child processes.
//!
//! 1. A fresh folder, and the input in it: the real purchases, or made-up orders.
//! 2. A first run, killed by SIGKILL after a completed checkpoint and with input left. Anything else fails the demo.
//! 3. A second run on the same checkpoints. It must restore a checkpoint, and none older than the newest one that the
//!    first run had completed.
//! 4. The tables compared with the input, in this process, without the engine.
//! 5. The report.

mod audience;
pub(crate) mod chart;
mod display;
mod error;
pub(crate) mod report;
pub(crate) mod timeline;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;

use self::audience::Audience;
pub(crate) use self::error::DemoError;
use self::report::Report;
use crate::address::{SinkAddress, SourceAddress};
use crate::attempt::{KillPoint, run_and_kill, run_to_the_end};
use crate::generate::{GenerateArgs, write_orders};
use crate::import::import_purchases;
use crate::partitions::MAX_PARTITIONS;
use crate::run_line::RunLine;
use crate::verify::audit;
use crate::work_folder::WorkFolder;
use tidegate::parse_duration;
use tidegate::stdout;
use tidegate_jobs::digits::{counted, grouped};

/// For this share of the orders the kill waits until a transaction is prepared and not committed.
const PATIENCE_PERCENT: u64 = 20;

/// Flags of `orders demo`.
#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// The folder of everything the demo makes; what an earlier demo left there is removed.
    #[arg(long, value_name = "DIR", default_value = "target/orders")]
    pub(crate) dir: PathBuf,
    /// The real purchases.
    #[arg(long, value_name = "FILE", default_value = "jobs/data/cdnow_purchases.txt")]
    pub(crate) purchases: PathBuf,
    /// Use this many made-up orders instead of the real purchases.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) orders: Option<u64>,
    /// Made-up orders: number of users.
    #[arg(long, value_name = "U", default_value_t = 10_000, requires = "orders", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// Made-up orders: another seed gives other orders.
    #[arg(long, value_name = "S", default_value_t = 1, requires = "orders")]
    pub(crate) seed: u64,
    /// Number of partition files.
    #[arg(long, value_name = "P", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=MAX_PARTITIONS))]
    pub(crate) partitions: u32,
    /// Parallel subtasks of each operator.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallelism: u32,
    /// At most this many orders a second, so that it can be watched.
    #[arg(long, value_name = "ORDERS_PER_SECOND", default_value_t = 25_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: u64,
    /// Between the triggers of two checkpoints.
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = parse_duration)]
    pub(crate) checkpoint_interval: Duration,
    /// Kill when this share of the orders has been read, in percent.
    #[arg(long, value_name = "PERCENT", default_value_t = 45, value_parser = clap::value_parser!(u64).range(0..=99))]
    pub(crate) kill_at: u64,
}

/// Runs all steps and prints what happens.
///
/// # Errors
/// [`DemoError`] when a step could not be done, or the kill did not fall where it must. Tables that differ are no
/// error but exit status 1.
pub(crate) fn demo(args: &DemoArgs) -> Result<ExitCode, DemoError> {
    let folder = WorkFolder::fresh(&args.dir, "demo")?;
    let orders = write_input(args, &folder)?;
    let title = title(args, orders);
    stdout::line(&title);

    let mut audience = Audience::new(orders);
    let line = run_line(args, &folder);
    let share = |percent| orders.saturating_mul(percent) / 100;
    let at_last = share((args.kill_at + PATIENCE_PERCENT).min(99));
    let kill = KillPoint {
        records_in: share(args.kill_at),
        records_in_at_last: at_last,
        checkpoints: 1,
        records_after_checkpoint: 0,
    };
    let killed = run_and_kill(line.command().map_err(DemoError::Program)?, kill, &mut audience);
    let killed = audience.after_kill(killed)?;
    let finished = run_to_the_end(line.command().map_err(DemoError::Program)?, &mut audience);
    let finished = audience.after_end(finished)?;
    if finished.restored < killed.newest_checkpoint {
        let (restored, complete) = (finished.restored, killed.newest_checkpoint);
        return Err(DemoError::NotRestored { restored, complete });
    }

    let verdict = audit(&line.source, &line.sink)?;
    let report = Report { title: &title, orders, timeline: audience.timeline(), verdict: &verdict };
    report.write(&folder.report())?;
    stdout::text(format_args!("\n{}", verdict.to_text()));
    stdout::line(format_args!(
        "  exactly once: {:<40}details: {}",
        verdict.yes_or_no(),
        folder.report().display()
    ));
    Ok(if verdict.ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Puts the input into the folder and answers the number of orders.
fn write_input(args: &DemoArgs, folder: &WorkFolder) -> Result<u64, DemoError> {
    let Some(orders) = args.orders else {
        return Ok(import_purchases(&args.purchases, args.partitions, &folder.input(), false)?.orders);
    };
    write_orders(&GenerateArgs {
        orders,
        users: args.users,
        partitions: args.partitions,
        seed: args.seed,
        out: folder.input(),
        force: false,
    })?;
    Ok(orders)
}

fn title(args: &DemoArgs, orders: u64) -> String {
    let kind = if args.orders.is_some() { "made-up orders" } else { "real purchases" };
    format!(
        "Tidegate orders · {} {kind} · {} · parallelism {} · checkpoints every {} ms",
        grouped(orders),
        counted(u64::from(args.partitions), "partition"),
        args.parallelism,
        args.checkpoint_interval.as_millis()
    )
}

/// The command line of a run, the same for both.
fn run_line(args: &DemoArgs, folder: &WorkFolder) -> RunLine {
    RunLine {
        source: SourceAddress::Files(folder.input()),
        sink: SinkAddress::Sqlite(folder.database()),
        detail: None,
        checkpoints: Some(folder.checkpoints()),
        interval: args.checkpoint_interval,
        parallelism: args.parallelism,
        rate: Some(args.rate),
        follow: false,
        mode: "exactly-once",
        restore: "latest",
    }
}
