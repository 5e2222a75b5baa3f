//! What happened when, for the report.
//!
//! Owns: the notes, and the time since the start of the demo that each of them gets.
//! Does not own: how they are drawn ([`super::report`]).
//! Runs on: the main thread.

use crate::attempt::Position;
use tidegate::RunEvent;
use tidegate_jobs::stopwatch::Stopwatch;

/// A moment that the report marks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A run has begun, from this checkpoint if there was one.
    Started {
        /// The checkpoint restored.
        restored: Option<u64>,
    },
    /// A run has read this far.
    Progress,
    /// This checkpoint is complete.
    Checkpoint {
        /// Its id.
        id: u64,
        /// From its trigger to its entry.
        duration_ms: u64,
        /// Its size.
        bytes: u64,
    },
    /// The sinks have committed what this checkpoint lists.
    Committed {
        /// Its id.
        id: u64,
    },
    /// This checkpoint was given up.
    CheckpointFailed {
        /// Its id.
        id: u64,
    },
    /// The run was killed.
    Killed,
    /// The run is at its end.
    Finished,
}

/// One note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Note {
    /// Since the start of the demo.
    pub(crate) at_ms: u64,
    /// Orders read by then.
    pub(crate) records_in: u64,
    /// What happened.
    pub(crate) moment: Moment,
}

/// All notes, in the order in which they were made.
#[derive(Debug)]
pub(crate) struct Timeline {
    stopwatch: Stopwatch,
    notes: Vec<Note>,
    checkpoints: u64,
}

impl Timeline {
    /// Empty; the time begins now.
    pub(crate) fn started() -> Self {
        Self { stopwatch: Stopwatch::started(), notes: Vec::new(), checkpoints: 0 }
    }

    /// Notes what an event says.
    pub(crate) fn note(&mut self, event: &RunEvent, position: &Position) {
        let moment = match *event {
            RunEvent::Started { restored, .. } => Moment::Started { restored },
            RunEvent::Progress { .. } => Moment::Progress,
            RunEvent::Checkpoint { id, duration_ms, bytes } => {
                self.checkpoints += 1;
                Moment::Checkpoint { id, duration_ms, bytes }
            }
            RunEvent::Committed { id } => Moment::Committed { id },
            RunEvent::CheckpointFailed { id, .. } => Moment::CheckpointFailed { id },
            RunEvent::Finished { .. } => Moment::Finished,
            RunEvent::Restarting { .. }
            | RunEvent::RepeatedOutput { .. }
            | RunEvent::GivenUp { .. }
            | RunEvent::Canceled { .. }
            | RunEvent::Failed { .. } => return,
        };
        self.mark(moment, position.records_in);
    }

    /// Notes a moment of the watcher's own.
    pub(crate) fn mark(&mut self, moment: Moment, records_in: u64) {
        self.notes.push(Note { at_ms: self.stopwatch.elapsed_ms(), records_in, moment });
    }

    /// All notes.
    pub(crate) fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Checkpoints completed so far, over all runs.
    pub(crate) fn checkpoints(&self) -> u64 {
        self.checkpoints
    }

    /// Since the start of the demo.
    pub(crate) fn elapsed_ms(&self) -> u64 {
        self.stopwatch.elapsed_ms()
    }
}
