//! `benches subtasks`: ten vertices of a hundred subtasks, each connected with all of the next one: 90,000 channels.
//!
//! Every run is a process of its own, so that memory is counted from nothing: resident memory when all subtasks have recovered, and
//! after the checkpoints, less what the process had before. Records trickle, so that next to nothing is in flight.
//!
//! Owns: the runs and what is drawn from them. Does not own: the job ([`inside`]). Runs on: the main thread.

mod inside;

use std::process::Command;
use std::time::Duration;

use clap::Args;
use serde_json::Value;

use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run};
use crate::options::{CommonOptions, machine_load};

/// Flags of `benches subtasks`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SubtasksOptions {
    /// Vertices
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) vertices: u32,
    /// Subtasks of each
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=128))]
    pub(crate) parallelism: u32,
    /// Checkpoints of each run
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) checkpoints: u32,
    /// Records per second of all sources together
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: u64,
    /// Run the job in this process and print its figures as one JSON object
    #[arg(long, hide = true)]
    pub(crate) inside: bool,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const GROUP: &str = "all-to-all";
const OURS: &str = "tidegate job";
/// Figures of a run, as the inner process names them.
const NOTES: [&str; 8] = [
    "start_ms",
    "memory_mib_started",
    "memory_mib",
    "memory_mib_peak",
    "checkpoint_ms_p50",
    "checkpoint_ms_max",
    "last_ack_ms_p50",
    "cpu_percent_of_a_core",
];

/// Runs it.
///
/// # Errors
/// A run that fails.
pub(crate) fn run(options: &SubtasksOptions) -> Result<Outcome, BenchError> {
    let load = machine_load();
    let candidate = Candidate::new(GROUP, OURS, |checkpoints| in_a_process(options, checkpoints));
    let measured = options.common.rounds(u64::from(options.checkpoints)).measure(vec![candidate])?;
    let channels = (options.vertices - 1) * options.parallelism * options.parallelism;
    let mut outcome = options
        .common
        .outcome("subtasks", measured, load)
        .setting("vertices", options.vertices)
        .setting("parallelism", options.parallelism)
        .setting("channels", channels)
        .setting("rate", options.rate)
        .showing(&["start_ms", "memory_mib", "checkpoint_ms_p50", "checkpoint_ms_max"]);
    let median = |note: &str| outcome.note(GROUP, OURS, note).map(|s| s.median);
    let (start, memory) = (median("start_ms"), median("memory_mib"));
    let (checkpoint, longest) = (median("checkpoint_ms_p50"), median("checkpoint_ms_max"));
    outcome.figure("start_ms", start);
    outcome.figure("memory_mib", memory);
    outcome.figure("checkpoint_ms", checkpoint);
    outcome.figure("checkpoint_ms_max", longest);
    outcome.at_most("start, ms", start, 1_000.0);
    outcome.at_most("memory beyond the batches in flight, MiB", memory, 50.0);
    outcome.at_most("a checkpoint of all of them, p50, ms", checkpoint, 50.0);
    outcome.at_most("a checkpoint of all of them, longest of a run, ms", longest, 50.0);
    outcome.because("a checkpoint of all of them, longest of a run, ms", LONGEST);
    Ok(outcome)
}

const LONGEST: &str = "barriers go through ten vertices on two threads, which others preempt on a machine in use: compare the p50";

/// The inner process: runs the job and prints its figures.
///
/// # Errors
/// A job that fails.
pub(crate) fn run_inside(options: &SubtasksOptions) -> Result<(), BenchError> {
    let figures = inside::run(options)?;
    println!("{}", Value::Object(figures));
    Ok(())
}

fn in_a_process(options: &SubtasksOptions, checkpoints: u64) -> Result<Run, BenchError> {
    let failed = |said: String| BenchError::Child { said };
    let program = std::env::current_exe().map_err(|e| failed(e.to_string()))?;
    let run = Command::new(program)
        .args(["subtasks", "--inside"])
        .args(["--vertices", &options.vertices.to_string()])
        .args(["--parallelism", &options.parallelism.to_string()])
        .args(["--rate", &options.rate.to_string()])
        .args(["--checkpoints", &checkpoints.to_string()])
        .output()
        .map_err(|e| failed(e.to_string()))?;
    let said = || String::from_utf8_lossy(&run.stderr).into_owned();
    let figures: Value = match run.status.success() {
        true => serde_json::from_slice(&run.stdout).map_err(|e| failed(format!("{e}: {}", said())))?,
        false => return Err(failed(said())),
    };
    let seconds = figures["start_ms"].as_f64().unwrap_or_default() / 1e3;
    let elapsed = Duration::from_secs_f64(seconds.max(0.0));
    let subtasks = u64::from(options.vertices * options.parallelism);
    let run = Run { records: subtasks, elapsed, cpu: Duration::ZERO, notes: Vec::new() };
    let noted = NOTES.into_iter().filter_map(|name| Some((name, figures[name].as_f64()?)));
    Ok(noted.fold(run, |run, (name, figure)| run.note(name, figure)))
}
