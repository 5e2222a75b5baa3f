//! What a run came to.
//!
//! Owns: the report of a clean seed, the failure of another one, the timeline. Does not own: judging. Runs on: plain data.

use std::fmt;

use super::coverage::Coverage;

/// What a clean run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimReport {
    /// The seed.
    pub seed: u64,
    /// Records of the input.
    pub records: u64,
    /// Vertices of the job, in the start that had the fewest.
    pub vertices: u64,
    /// Scheduler steps.
    pub steps: u64,
    /// Simulated time, in microseconds.
    pub micros: u64,
    /// Processes that were started.
    pub processes: u64,
    /// Processes that were killed.
    pub crashes: u64,
    /// Processes that stood still for a while, or for ever.
    pub pauses: u64,
    /// Checkpoints completed.
    pub completed: u64,
    /// Checkpoints that failed.
    pub failed: u64,
    /// Restarts inside one process.
    pub restarts: u64,
    /// Batches that a channel of the busiest exchange has carried at least, in the middle of all channels.
    pub batches_per_channel: u64,
    /// Whether it ended because a transaction that somebody had rolled back by hand was reported lost.
    pub ended_in_loss: bool,
    /// Checksum of the whole run: two runs of one seed give the same.
    pub fingerprint: u64,
    /// What it came upon.
    pub coverage: Coverage,
}

/// Why a seed is not clean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {what}")]
pub struct SimFailure {
    /// The seed: the same seed gives the same run.
    pub seed: u64,
    /// What went wrong.
    pub what: String,
    /// What had happened until then.
    pub timeline: Timeline,
}

/// What happened, for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Timeline {
    lines: Vec<TimelineLine>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct TimelineLine {
    micros: u64,
    step: u64,
    process: Option<u32>,
    text: String,
}

impl Timeline {
    /// Adds a line.
    pub fn push(&mut self, micros: u64, step: u64, process: Option<u32>, text: String) {
        self.lines.push(TimelineLine { micros, step, process, text });
    }
}

impl fmt::Display for Timeline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            let millis = line.micros / 1_000;
            let who = line.process.map_or_else(|| "world".to_owned(), |p| format!("process {p}"));
            writeln!(
                f,
                "{millis:>8}.{:03} ms  step {:>7}  {who:<10}  {}",
                line.micros % 1_000,
                line.step,
                line.text
            )?;
        }
        Ok(())
    }
}
