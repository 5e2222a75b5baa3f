//! `tidegate sim`: runs seeds of the simulation and shows what they came upon; a failing one is shown with a smaller schedule and a
//! timeline.
//!
//! Owns: which seeds, for how long, and the form of the answer. Does not own: the simulation
//! ([`crate::engine::sim`]). Runs on: the main thread.

use std::process::ExitCode;
use std::time::Duration;

use crate::engine::clock::SystemClock;
use crate::engine::sim::{Campaign, SimFailure, SimOptions, Simulation, shrink};
use crate::stdout;

/// Seeds of a run that names neither a number nor a time.
const SEEDS_DEFAULT: u64 = 300;
/// So many seeds together should have come upon everything.
const SEEDS_FOR_COVERAGE: u64 = 300;

/// Arguments of `tidegate sim`.
#[derive(Debug, clap::Args)]
pub(crate) struct SimArgs {
    /// How many seeds [default: 300; with --seed alone: that one, with its timeline; with --minutes: as many as fit]
    #[arg(long)]
    seeds: Option<u64>,
    /// The first seed; the others follow it.
    #[arg(long)]
    seed: Option<u64>,
    /// Stop after so many minutes.
    #[arg(long)]
    minutes: Option<u64>,
}

/// Exit status 0 if every seed is clean, else 1.
pub(crate) fn run(args: &SimArgs) -> ExitCode {
    match (args.seed, args.seeds, args.minutes) {
        (Some(seed), None, None) => run_one(seed),
        _ => run_many(args),
    }
}

fn run_one(seed: u64) -> ExitCode {
    match Simulation::run_with(seed, &SimOptions::default()) {
        Ok((report, timeline)) => {
            stdout::line(timeline);
            stdout::line(format_args!(
                "seed {seed} is clean: {} records, {} checkpoints, {} failed, {} processes, {} killed, {} paused, {} steps",
                report.records,
                report.completed,
                report.failed,
                report.processes,
                report.crashes,
                report.pauses,
                report.steps
            ));
            stdout::text(report.coverage);
            ExitCode::SUCCESS
        }
        Err(failure) => {
            show_failure(&failure);
            ExitCode::FAILURE
        }
    }
}

fn run_many(args: &SimArgs) -> ExitCode {
    let clock = SystemClock::shared();
    let first = args.seed.unwrap_or(0);
    let count = args.seeds.unwrap_or(if args.minutes.is_some() { u64::MAX } else { SEEDS_DEFAULT });
    let until = args.minutes.map(|minutes| Duration::from_secs(60 * minutes));
    let since = clock.now();
    let mut campaign = Campaign::default();
    for seed in (0..count).map_while(|at| first.checked_add(at)) {
        let spent = clock.now().saturating_sub(since);
        if until.is_some_and(|until| spent >= until) {
            break;
        }
        if !campaign.run(seed)
            && let Some(failure) = campaign.failures.last()
        {
            eprintln!("{failure}");
        }
    }
    let spent = clock.now().saturating_sub(since).as_secs_f64();
    let run = campaign.clean + campaign.failures.len() as u64;
    stdout::text(&campaign);
    stdout::line(format_args!(
        "{run} seeds in {spent:.1} s: {:.1} seeds per second",
        run as f64 / spent.max(0.001)
    ));
    let missing = campaign.coverage.missing();
    if run >= SEEDS_FOR_COVERAGE && !missing.is_empty() {
        stdout::line(format_args!("not come upon:\n  {}", missing.join("\n  ")));
    }
    match campaign.failures.first() {
        None => ExitCode::SUCCESS,
        Some(failure) => {
            show_failure(failure);
            ExitCode::FAILURE
        }
    }
}

/// The failure with the smallest schedule that still shows it.
fn show_failure(failure: &SimFailure) {
    let seed = failure.seed;
    let (options, smaller) = shrink(seed).unwrap_or_else(|| (SimOptions::default(), failure.clone()));
    stdout::line(&smaller.timeline);
    stdout::line(&smaller);
    stdout::line(format_args!("  as small as this: {options:?}"));
    stdout::line(format_args!("  again: tidegate sim --seed {seed}"));
}
