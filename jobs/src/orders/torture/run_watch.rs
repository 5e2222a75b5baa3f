//! Hears how one run of a torture comes back.
//!
//! Owns: the time from the start of the process to its recovery, and what that settled.
//! Does not own: where the run stands (`Position`), what is shown ([`super::display`]).
//! Runs on: the main thread.

use super::kill::Recovery;
use crate::attempt::{Observer, Position};
use tidegate::RunEvent;
use tidegate_jobs::stopwatch::Stopwatch;

/// See the module.
#[derive(Debug)]
pub(crate) struct RunWatch {
    since_start: Stopwatch,
    recovery: Option<Recovery>,
}

impl RunWatch {
    /// The process is about to be started.
    pub(crate) fn started() -> Self {
        Self { since_start: Stopwatch::started(), recovery: None }
    }

    /// How it came back; none: it died before that.
    pub(crate) fn recovery(&self) -> Option<Recovery> {
        self.recovery
    }
}

impl Observer for RunWatch {
    fn event(&mut self, event: &RunEvent, _position: &Position) {
        if let RunEvent::Started { restored, committed, rolled_back, .. } = *event {
            let recovery_ms = self.since_start.elapsed_ms();
            // A restart inside the process does not make its first start any different.
            self.recovery.get_or_insert(Recovery { recovery_ms, restored, committed, rolled_back });
        }
    }
}
