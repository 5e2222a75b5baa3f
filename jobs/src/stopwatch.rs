//! The time that passed since a start, for the command lines that watch a job from outside.
//!
//! Owns: the only place in this package that reads a clock.
//! Does not own: any time inside a job: there the engine's clock is asked.
//! Runs on: anywhere.

use std::time::{Duration, Instant};

/// Started once, read as often as one likes; never goes backwards.
#[derive(Debug, Clone, Copy)]
pub struct Stopwatch {
    started: Instant,
}

impl Stopwatch {
    /// Starts at zero, now.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one clock of the watching side; no job code is timed by it"
    )]
    pub fn started() -> Self {
        Self { started: Instant::now() }
    }

    /// Time since the start.
    pub fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Milliseconds since the start.
    pub fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}
