//! A bar that moves, with the events that matter as lines above it.
//!
//! Owns: the bar. Does not own: the words ([`super::plain_lines`]).
//! Runs on: the thread that runs the job.

use std::fmt::Write;

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::plain_lines::{Newest, words};
use crate::run_event::{RunEvent, Watcher};
use crate::stdout;

/// Redraws per second, at most.
const REDRAWS_PER_S: u8 = 20;
const BOUNDED: &str = "  {prefix}  {bar:26} {human_pos} of {human_len} records   {rate}   {msg}";
const UNBOUNDED: &str = "  {prefix}  {spinner} {human_pos} records   {rate}   {msg}";

/// Draws on standard error, so that it never mixes with output.
pub struct TerminalBar {
    job: String,
    bar: Option<ProgressBar>,
    newest: Newest,
}

impl TerminalBar {
    /// No bar yet.
    pub fn new(job: &str) -> Self {
        Self { job: job.to_owned(), bar: None, newest: Newest::default() }
    }

    fn line(&self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| stdout::line(format_args!("{}: {line}", self.job))),
            None => stdout::line(format_args!("{}: {line}", self.job)),
        }
    }
}

impl Watcher for TerminalBar {
    fn listening(&mut self, control: &str) {
        self.line(&format!("answers at {control}"));
    }

    fn event(&mut self, event: &RunEvent) {
        self.newest.hear(event);
        match event {
            RunEvent::Progress { records_in, records_total, checkpoints, .. } => {
                let job = &self.job;
                let bar = self.bar.get_or_insert_with(|| new_bar(job, *records_total, *records_in));
                bar.set_message(self.newest.counted(*checkpoints));
                bar.set_position(*records_in);
            }
            RunEvent::Finished { .. } | RunEvent::Canceled { .. } | RunEvent::Failed { .. } => {
                if let Some(bar) = self.bar.take() {
                    bar.abandon();
                }
                words(event, self.newest).iter().for_each(|line| self.line(line));
            }
            _ => words(event, self.newest).iter().for_each(|line| self.line(line)),
        }
    }
}

/// `begun_at` is what earlier attempts had read: it does not count for the rate.
fn new_bar(job: &str, records_total: Option<u64>, begun_at: u64) -> ProgressBar {
    let template = if records_total.is_some() { BOUNDED } else { UNBOUNDED };
    let style = ProgressStyle::with_template(template)
        .expect("the template is a constant")
        .with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
            // A reader that has gone does not concern the job.
            let _ = write!(to, "{}", rate(state.per_sec()));
        })
        .progress_chars("█▉▊▋▌▍▎▏ ");
    let target = ProgressDrawTarget::stderr_with_hz(REDRAWS_PER_S);
    let bar =
        ProgressBar::with_draw_target(records_total, target).with_style(style).with_prefix(job.to_owned());
    bar.set_position(begun_at);
    bar.reset_eta();
    bar
}

/// Whole records: a fraction of one says nothing.
fn rate(per_second: f64) -> String {
    // A rate is never negative, and a cast stops at the largest number.
    format!("{}/s", HumanCount(per_second.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_has_no_fraction() {
        assert_eq!(rate(245_289.034_4), "245,289/s");
        assert_eq!(rate(0.4), "0/s");
    }

    #[test]
    fn the_templates_are_valid() {
        for template in [BOUNDED, UNBOUNDED] {
            assert!(ProgressStyle::with_template(template).is_ok());
        }
    }
}
