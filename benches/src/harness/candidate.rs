//! One thing that is measured beside others.
//!
//! Owns: its name and its closure. Does not own: how often it runs. Runs on: the main thread.

use std::time::Duration;

use crate::error::BenchError;

/// What one run came to.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// Records that went through.
    pub(crate) records: u64,
    /// Time on the wall.
    pub(crate) elapsed: Duration,
    /// CPU time of the whole process.
    pub(crate) cpu: Duration,
    /// Further figures, by name.
    pub(crate) notes: Vec<(&'static str, f64)>,
}

impl Run {
    /// Adds a further figure.
    pub(crate) fn note(mut self, name: &'static str, figure: f64) -> Self {
        self.notes.push((name, figure));
        self
    }

    /// Records per second.
    pub(crate) fn rate(&self) -> f64 {
        self.records as f64 / self.elapsed.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Nanoseconds on the wall per record.
    pub(crate) fn ns(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e9 / self.records.max(1) as f64
    }

    /// Nanoseconds of CPU per record.
    pub(crate) fn cpu_ns(&self) -> f64 {
        self.cpu.as_secs_f64() * 1e9 / self.records.max(1) as f64
    }
}

/// One thing that is measured beside others.
pub(crate) struct Candidate<'a> {
    /// Its group: candidates are compared inside a group.
    pub(crate) group: &'static str,
    /// Its name, unique within the group.
    pub(crate) name: String,
    run: Box<dyn FnMut(u64) -> Result<Run, BenchError> + 'a>,
}

impl<'a> Candidate<'a> {
    /// A candidate; `run` is called with the number of records once a round.
    pub(crate) fn new(
        group: &'static str,
        name: impl Into<String>,
        run: impl FnMut(u64) -> Result<Run, BenchError> + 'a,
    ) -> Self {
        Self { group, name: name.into(), run: Box::new(run) }
    }

    pub(super) fn run(&mut self, records: u64) -> Result<Run, BenchError> {
        (self.run)(records)
    }
}
