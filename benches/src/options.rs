//! Flags that every benchmark has.
//!
//! Owns: them. Does not own: the flags of one benchmark. Runs on: plain data.

use std::path::PathBuf;

use clap::Args;

use crate::harness::{Measured, Outcome, Rounds};

/// Flags that every benchmark has.
#[derive(Clone, Debug, Args)]
pub(crate) struct CommonOptions {
    /// Counted rounds; each runs every candidate once
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Run only candidates whose "group · name" contains this
    #[arg(long, value_name = "TEXT")]
    pub(crate) only: Option<String>,
    /// Print one JSON object as the last line
    #[arg(long)]
    pub(crate) json: bool,
    /// Write a page with bars
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
}

impl CommonOptions {
    /// The rounds of a benchmark whose runs have this many records.
    pub(crate) fn rounds(&self, records: u64) -> Rounds {
        Rounds { rounds: self.rounds, records, only: self.only.clone() }
    }

    /// An outcome with the settings that all benchmarks have.
    pub(crate) fn outcome(&self, benchmark: &'static str, measured: Vec<Measured>, load: f64) -> Outcome {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        Outcome::new(benchmark, measured)
            .setting("rounds", self.rounds)
            .setting("cores", cores)
            .setting("load_before", load)
    }
}

/// Runnable threads of the machine over the last minute, before the benchmark adds its own; 0 where it cannot be read.
pub(crate) fn machine_load() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
