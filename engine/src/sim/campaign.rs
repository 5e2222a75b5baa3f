//! Many seeds: what they add up to, and whether each had its minimum size.
//!
//! Owns: sums and minima over reports. Does not own: which seeds are run, and for how long. Runs on: anywhere; a campaign may be
//! run on several threads and merged.

use std::fmt;

use super::coverage::Coverage;
use super::options::SimOptions;
use super::report::{SimFailure, SimReport};
use super::simulation::Simulation;

/// What every seed must have come to at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Minimum {
    /// Records of the input.
    pub records: u64,
    /// Vertices of the job.
    pub vertices: u64,
    /// Checkpoints completed.
    pub completed: u64,
    /// Processes killed.
    pub crashes: u64,
}

/// A seed that is smaller teaches nothing.
pub const MINIMUM: Minimum = Minimum { records: 1_000, vertices: 3, completed: 3, crashes: 2 };

/// Seeds that were run.
#[derive(Clone, Debug, Default)]
pub struct Campaign {
    /// Clean ones.
    pub clean: u64,
    /// Of clean ones: those that ended in a planted loss, before they had come to their minimum.
    pub cut_short: u64,
    /// Clean seeds below the minimum, apart from those: (seed, completed, crashes).
    pub too_small: Vec<(u64, u64, u64)>,
    /// Scheduler steps.
    pub steps: u64,
    /// Checkpoints completed.
    pub completed: u64,
    /// Processes started.
    pub processes: u64,
    /// Processes killed.
    pub crashes: u64,
    /// Batches that the channel in the middle carried, by seed.
    pub batches: Vec<u64>,
    /// What was come upon.
    pub coverage: Coverage,
    /// Seeds that are not clean.
    pub failures: Vec<SimFailure>,
}

impl Campaign {
    /// Runs one more seed. `true`: it is clean.
    pub fn run(&mut self, seed: u64) -> bool {
        match Simulation::run_with(seed, &SimOptions::default()) {
            Ok((report, _)) => {
                self.add(&report);
                true
            }
            Err(failure) => {
                self.failures.push(failure);
                false
            }
        }
    }

    fn add(&mut self, report: &SimReport) {
        self.clean += 1;
        self.steps += report.steps;
        self.completed += report.completed;
        self.processes += report.processes;
        self.crashes += report.crashes;
        self.batches.push(report.batches_per_channel);
        self.coverage.merge(&report.coverage);
        let small = report.records < MINIMUM.records
            || report.completed < MINIMUM.completed
            || report.crashes < MINIMUM.crashes;
        let small = small || report.vertices < MINIMUM.vertices;
        match small {
            true if report.ended_in_loss => self.cut_short += 1,
            true => self.too_small.push((report.seed, report.completed, report.crashes)),
            false => {}
        }
    }

    /// Adds the seeds of another thread.
    pub fn merge(&mut self, other: Self) {
        self.clean += other.clean;
        self.cut_short += other.cut_short;
        self.too_small.extend(other.too_small);
        self.steps += other.steps;
        self.completed += other.completed;
        self.processes += other.processes;
        self.crashes += other.crashes;
        self.batches.extend(other.batches);
        self.coverage.merge(&other.coverage);
        self.failures.extend(other.failures);
    }

    /// Batches that the channel in the middle of all carried at least.
    pub fn median_batches(&self) -> u64 {
        let mut batches = self.batches.clone();
        batches.sort_unstable();
        batches.get(batches.len() / 2).copied().unwrap_or_default()
    }
}

impl fmt::Display for Campaign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{} seeds clean, {} not; {} checkpoints, {} processes, {} of them killed; {} steps; a channel carries {} batches (median)",
            self.clean,
            self.failures.len(),
            self.completed,
            self.processes,
            self.crashes,
            self.steps,
            self.median_batches()
        )?;
        write!(f, "{}", self.coverage)
    }
}
