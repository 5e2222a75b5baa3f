//! Measures one run: time on the wall, and CPU time of the whole process.
//!
//! CPU time is what a run costs when others use the machine too; time on the wall is what people wait for.
//!
//! Owns: the two clocks. Does not own: what is done with the figures. Runs on: the thread that starts the run.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_engine::clock::{Clock, SystemClock};

use crate::harness::Run;

/// Runs from its start to [`Stopwatch::stop`].
pub(crate) struct Stopwatch {
    wall: SystemClock,
    cpu: Duration,
}

impl Stopwatch {
    /// Starts both clocks.
    pub(crate) fn start() -> Self {
        Self { cpu: process_cpu(), wall: SystemClock::new() }
    }

    /// Time on the wall so far.
    pub(crate) fn elapsed(&self) -> Duration {
        self.wall.now()
    }

    /// What `records` records have cost.
    pub(crate) fn stop(&self, records: u64) -> Run {
        let elapsed = self.elapsed();
        Run { records, elapsed, cpu: process_cpu().saturating_sub(self.cpu), notes: Vec::new() }
    }
}

fn process_cpu() -> Duration {
    read(ClockId::ProcessCPUTime)
}

/// CPU time of the calling thread so far: what a step costs when others take the core away in the middle of it.
pub(crate) fn thread_cpu() -> Duration {
    read(ClockId::ThreadCPUTime)
}

fn read(clock: ClockId) -> Duration {
    let now = clock_gettime(clock);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}
