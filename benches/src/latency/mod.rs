//! `benches latency`: how long a record takes from its source to its sink, and what a job costs that has nothing to do.
//!
//! The job: generator → `key_by` → count per key → sink, parallelism 2. First at full speed, which says what the machine can do;
//! then at a tenth of that, with a batch age of 1 ms and of 5 ms (the default). A record's time begins when its source makes it
//! and ends when the sink's writer has it. An idle job gets one record a second; its CPU time is that of the whole process.
//!
//! Owns: the candidates and what is drawn from them. Does not own: the jobs ([`job`]). Runs on: the main thread.

mod job;

use std::cell::Cell;

use clap::Args;

use self::job::{LatencyJob, idle};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run};
use crate::options::{CommonOptions, machine_load};

/// Flags of `benches latency`.
#[derive(Clone, Debug, Args)]
pub(crate) struct LatencyOptions {
    /// Records of each run at full speed
    #[arg(long, default_value_t = 10_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// Records per second of the other runs; a tenth of full speed where it is left out
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Seconds of each run at that rate, and of an idle job
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const TENTH: &str = "at a tenth of full speed";
const FULL: &str = "at full speed";
const IDLE: &str = "idle";
const AGE_1: &str = "batch age 1 ms";
const AGE_5: &str = "batch age 5 ms";
const OFF: &str = "no checkpoints";
const EVERY_SECOND: &str = "a checkpoint every second";
const P99: &str = "p99_ms";
const CPU: &str = "cpu_percent_of_a_core";
/// Where full speed was not measured.
const FALLBACK_RATE: u64 = 100_000;

/// Runs it.
///
/// # Errors
/// The first candidate that fails.
pub(crate) fn run(options: &LatencyOptions) -> Result<Outcome, BenchError> {
    let load = machine_load();
    let fastest = Cell::new(0.0_f64);
    let rate = |fastest: &Cell<f64>| match options.rate {
        Some(rate) => rate,
        None if fastest.get() > 0.0 => ((fastest.get() / 10.0) as u64).max(1),
        None => FALLBACK_RATE,
    };
    let seconds = options.seconds;
    let at_rate = |name: &'static str, batch_age_ms| {
        let fastest = &fastest;
        Candidate::new(TENTH, name, move |_| {
            let rate = rate(fastest);
            LatencyJob { candidate: name, batch_age_ms, rate: Some(rate) }.run(rate * seconds)
        })
    };
    let full = Candidate::new(FULL, FULL, |records| {
        let run = LatencyJob { candidate: FULL, batch_age_ms: 5, rate: None }.run(records)?;
        fastest.set(fastest.get().max(run.rate()));
        Ok(run)
    });
    let candidates = vec![
        full,
        at_rate(AGE_1, 1),
        at_rate(AGE_5, 5),
        Candidate::new(IDLE, OFF, move |_| idle(OFF, None, seconds)),
        Candidate::new(IDLE, EVERY_SECOND, move |_| idle(EVERY_SECOND, Some(1), seconds)),
    ];
    let measured = options.common.rounds(options.records).measure(candidates)?;
    let outcome = options.common.outcome("latency", measured, load).setting("seconds", seconds);
    Ok(draw(outcome.showing(&["p50_ms", P99, "p999_ms", CPU])))
}

fn draw(mut outcome: Outcome) -> Outcome {
    let median = |group: &str, name: &str, note: &str| outcome.note(group, name, note).map(|s| s.median);
    let (one, five) = (median(TENTH, AGE_1, P99), median(TENTH, AGE_5, P99));
    let (idle, idle_safe) = (median(IDLE, OFF, CPU), median(IDLE, EVERY_SECOND, CPU));
    outcome.figure("records_per_s", outcome.median(FULL, FULL, Run::rate));
    outcome.figure("p99_ms", one);
    outcome.figure("p99_ms_batch_age_5", five);
    outcome.figure("idle_cpu_percent", idle);
    outcome.figure("idle_cpu_percent_with_checkpoints", idle_safe);
    let name = "p99 with a batch age of 1 ms, ms";
    outcome.at_most(name, one, 2.0);
    outcome.because(name, WAITING);
    outcome.at_most("CPU of an idle job, % of a core", idle, 1.0);
    outcome
}

const WAITING: &str = "the engine adds the batch age and two wake-ups; the rest is waiting for a core: compare load_before, \
    and p50_ms, which does not wait";
