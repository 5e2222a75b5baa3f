//! What the runs of a scenario say, put down for its report.
//!
//! Owns: the timeline over all runs of a stage, and how each run came back. Does not own: the drawing ([`super::page`]).
//! Runs on: the main thread.

use crate::attempt::{Observer, Position};
use crate::demo::timeline::{Moment, Timeline};
use tidegate::RunEvent;
use tidegate_jobs::stopwatch::Stopwatch;

/// How a run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Return {
    /// From the start of the process until what earlier ones had left was settled.
    pub(crate) recovery_ms: u64,
    /// The checkpoint restored.
    pub(crate) restored: Option<u64>,
    /// Transactions committed.
    pub(crate) committed: u64,
    /// Transactions rolled back.
    pub(crate) rolled_back: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Notes {
    timeline: Timeline,
    run: Stopwatch,
    returns: Vec<Return>,
}

impl Notes {
    /// Nothing has happened yet.
    pub(crate) fn started() -> Self {
        Self { timeline: Timeline::started(), run: Stopwatch::started(), returns: Vec::new() }
    }

    /// A run was killed where it stood.
    pub(crate) fn killed(&mut self, position: &Position) {
        self.timeline.mark(Moment::Killed, position.records_in);
        self.run = Stopwatch::started();
    }

    /// How each run began, the first one included.
    pub(crate) fn returns(&self) -> &[Return] {
        &self.returns
    }

    /// All that happened.
    pub(crate) fn into_timeline(self) -> Timeline {
        self.timeline
    }
}

impl Observer for Notes {
    fn event(&mut self, event: &RunEvent, position: &Position) {
        if let RunEvent::Started { restored, committed, rolled_back, .. } = *event {
            let recovery_ms = self.run.elapsed_ms();
            self.returns.push(Return { recovery_ms, restored, committed, rolled_back });
        }
        self.timeline.note(event, position);
    }
}
