//! One JSON object per line, for programs.
//!
//! Owns: nothing but the line ends. Does not own: the objects.
//! Runs on: the thread that runs the job.

use std::io::Write;

use serde::Serialize;

use crate::run_event::{RunEvent, Watcher};

/// Writes each event as one line.
pub struct JsonLines {
    to: Box<dyn Write>,
}

impl JsonLines {
    /// To standard output.
    pub fn to_stdout() -> Self {
        Self { to: Box::new(std::io::stdout()) }
    }
}

impl Watcher for JsonLines {
    fn event(&mut self, event: &RunEvent) {
        self.line(event);
    }

    fn listening(&mut self, control: &str) {
        self.line(&serde_json::json!({ "event": "listening", "control": control }));
    }
}

impl JsonLines {
    fn line(&mut self, object: &impl Serialize) {
        let mut line = serde_json::to_vec(object).expect("an event has only numbers and strings");
        line.push(b'\n');
        // A reader that has gone does not concern the job.
        let _ = self.to.write_all(&line).and_then(|()| self.to.flush());
    }
}
