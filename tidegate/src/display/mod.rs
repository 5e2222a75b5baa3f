//! Where a run's words go: a moving bar on a terminal, plain lines elsewhere, JSON lines for programs.
//!
//! Owns: the choice. Does not own: the words of each.
//! Runs on: the thread that runs the job.

mod json_lines;
mod plain_lines;
mod terminal_bar;

use std::io::IsTerminal;

pub use json_lines::JsonLines;
pub use plain_lines::PlainLines;
pub use terminal_bar::TerminalBar;

use crate::engine::clock::SystemClock;
use crate::run_event::Watcher;

/// The display of a run of `job`.
pub(crate) fn for_run(job: &str, json: bool) -> Box<dyn Watcher> {
    if json {
        return Box::new(JsonLines::to_stdout());
    }
    if std::io::stdout().is_terminal() {
        return Box::new(TerminalBar::new(job));
    }
    Box::new(PlainLines::to_stdout(job, SystemClock::shared()))
}
