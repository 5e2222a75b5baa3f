//! A bar that moves, with the events that matter as lines above it.
//!
//! Owns: the bar. Does not own: the words ([`super::plain_lines`]).
//! Runs on: the thread that runs the job.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::plain_lines::{counted, words};
use crate::run_event::{RunEvent, Watcher};

/// Redraws per second, at most.
const REDRAWS_PER_S: u8 = 20;
const BOUNDED: &str = "  {prefix}  {bar:26} {human_pos} of {human_len} records   {per_sec}   {msg}";
const UNBOUNDED: &str = "  {prefix}  {spinner} {human_pos} records   {per_sec}   {msg}";

/// Draws on standard error, so that it never mixes with output.
pub struct TerminalBar {
    job: String,
    bar: Option<ProgressBar>,
}

impl TerminalBar {
    /// No bar yet.
    pub fn new(job: &str) -> Self {
        Self { job: job.to_owned(), bar: None }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| println!("{}: {line}", self.job)),
            None => println!("{}: {line}", self.job),
        }
    }
}

impl Watcher for TerminalBar {
    fn event(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Progress { records_in, records_total, checkpoints, .. } => {
                let job = &self.job;
                let bar = self.bar.get_or_insert_with(|| new_bar(job, *records_total, *records_in));
                bar.set_message(counted(*checkpoints));
                bar.set_position(*records_in);
            }
            RunEvent::Finished { .. } | RunEvent::Canceled { .. } | RunEvent::Failed { .. } => {
                if let Some(bar) = self.bar.take() {
                    bar.abandon();
                }
                words(event).iter().for_each(|line| self.line(line));
            }
            _ => words(event).iter().for_each(|line| self.line(line)),
        }
    }
}

/// `begun_at` is what earlier attempts had read: it does not count for the rate.
fn new_bar(job: &str, records_total: Option<u64>, begun_at: u64) -> ProgressBar {
    let template = if records_total.is_some() { BOUNDED } else { UNBOUNDED };
    let style = ProgressStyle::with_template(template)
        .expect("the template is a constant")
        .progress_chars("█▉▊▋▌▍▎▏ ");
    let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S);
    let bar =
        ProgressBar::with_draw_target(records_total, target).with_style(style).with_prefix(job.to_owned());
    bar.set_position(begun_at);
    bar.reset_eta();
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_templates_are_valid() {
        for template in [BOUNDED, UNBOUNDED] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
