//! Everybody who watches the two runs: the terminal and the timeline.
//!
//! Owns: who is told what, and when.
//! Does not own: the lines on the terminal ([`super::display`]), the notes ([`super::timeline`]).
//! Runs on: the main thread.

use super::display::Display;
use super::error::DemoError;
use super::timeline::{Moment, Timeline};
use crate::attempt::{AttemptError, Observer, Position};
use tidegate::RunEvent;

/// The terminal and the timeline.
#[derive(Debug)]
pub(crate) struct Audience {
    display: Display,
    timeline: Timeline,
}

impl Audience {
    /// Nothing has happened yet; `orders` are expected.
    pub(crate) fn new(orders: u64) -> Self {
        Self { display: Display::for_terminal(orders), timeline: Timeline::started() }
    }

    /// What was noted.
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    /// The first run has ended: killed, as it must be, or not.
    ///
    /// # Errors
    /// [`DemoError::FirstRun`].
    pub(crate) fn after_kill(&mut self, run: Result<Position, AttemptError>) -> Result<Position, DemoError> {
        self.display.pause();
        let position = run.map_err(DemoError::FirstRun)?;
        self.timeline.mark(Moment::Killed, position.records_in);
        self.display.killed(&position);
        Ok(position)
    }

    /// The second run has ended: finished, as it must be, or not.
    ///
    /// # Errors
    /// [`DemoError::SecondRun`].
    pub(crate) fn after_end(&mut self, run: Result<Position, AttemptError>) -> Result<Position, DemoError> {
        if run.is_err() {
            self.display.pause();
        }
        let position = run.map_err(DemoError::SecondRun)?;
        self.display.finished(&position, self.timeline.checkpoints(), self.timeline.elapsed_ms());
        Ok(position)
    }
}

impl Observer for Audience {
    fn event(&mut self, event: &RunEvent, position: &Position) {
        self.timeline.note(event, position);
        match event {
            RunEvent::Started { restored: Some(id), restore_ms, committed, rolled_back, .. } => {
                self.display.restored(*id, *restore_ms, *committed, *rolled_back);
            }
            RunEvent::CheckpointFailed { id, reason } => self.display.checkpoint_failed(*id, reason),
            RunEvent::Progress { .. } | RunEvent::Checkpoint { .. } => {
                self.display.progress(position.records_in, self.timeline.checkpoints());
            }
            RunEvent::Restarting { cause, .. } => self.display.restarting(cause),
            RunEvent::Started { .. }
            | RunEvent::Committed { .. }
            | RunEvent::Finished { .. }
            | RunEvent::Canceled { .. }
            | RunEvent::RepeatedOutput { .. }
            | RunEvent::GivenUp { .. }
            | RunEvent::Failed { .. } => {}
        }
    }
}
