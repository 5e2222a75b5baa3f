//! What the demo shows while it runs: a moving bar on a terminal, plain lines elsewhere.
//!
//! Owns: the lines and their form.
//! Does not own: what they say.
//! Runs on: the main thread.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::attempt::Position;
use tidegate::stdout;
use tidegate_jobs::digits::{counted, grouped};

/// Redraws of the bar per second, at most.
const REDRAWS_PER_S: u8 = 20;
/// Without a terminal: a line for each such share of the orders.
const PLAIN_STEPS: u64 = 5;
const BAR: &str = "  running     {bar:26} {human_pos:>9} orders   {msg}";

/// Where the lines go.
#[derive(Debug)]
pub(crate) struct Display {
    orders: u64,
    /// The bar of the run under way; none without a terminal, and none between the runs.
    bar: Option<ProgressBar>,
    on_terminal: bool,
    /// Without a terminal: the share of the orders shown last, in steps.
    shown_steps: u64,
}

impl Display {
    /// Lines for standard output, whatever that is.
    pub(crate) fn for_terminal(orders: u64) -> Self {
        Self { orders, bar: None, on_terminal: std::io::stdout().is_terminal(), shown_steps: 0 }
    }

    /// A run stands here; `checkpoints` counts those of both runs.
    pub(crate) fn progress(&mut self, records_in: u64, checkpoints: u64) {
        if self.on_terminal {
            let bar = self.bar.get_or_insert_with(|| new_bar(self.orders));
            bar.set_message(counted(checkpoints, "checkpoint"));
            bar.set_position(records_in);
            return;
        }
        let steps = records_in.saturating_mul(PLAIN_STEPS) / self.orders.max(1);
        if steps > self.shown_steps && steps < PLAIN_STEPS {
            self.shown_steps = steps;
            stdout::line(running_line(records_in, self.orders, checkpoints));
        }
    }

    /// The run under way has ended: its bar stays as it is.
    pub(crate) fn pause(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.abandon();
        }
    }

    /// The first run was killed at `position`.
    pub(crate) fn killed(&mut self, position: &Position) {
        let checkpoint = position.newest_checkpoint.map_or_else(
            || format!("{} complete", counted(position.checkpoints, "checkpoint")),
            |id| format!("checkpoint {id} complete"),
        );
        let orders = grouped(position.records_in);
        stdout::line(format_args!(
            "  kill -9     at {orders} orders, {checkpoint}, {} prepared",
            counted(position.prepared, "transaction")
        ));
    }

    /// The second run begins with a checkpoint.
    pub(crate) fn restored(&mut self, checkpoint: u64, restore_ms: u64, committed: u64, rolled_back: u64) {
        self.line(&format!(
            "  restored    from checkpoint {checkpoint} in {restore_ms} ms; committed {committed}, rolled back {rolled_back}"
        ));
    }

    /// A checkpoint was given up.
    pub(crate) fn checkpoint_failed(&mut self, checkpoint: u64, reason: &str) {
        self.line(&format!("  checkpoint  {checkpoint} failed: {reason}"));
    }

    /// A run has failed inside and starts again by itself.
    pub(crate) fn restarting(&mut self, cause: &str) {
        self.line(&format!("  failed      and starts again: {cause}"));
    }

    /// The second run is at its end.
    pub(crate) fn finished(&mut self, position: &Position, checkpoints: u64, elapsed_ms: u64) {
        let took = format!("finished in {}.{} s", elapsed_ms / 1_000, elapsed_ms % 1_000 / 100);
        if let Some(bar) = self.bar.take() {
            bar.set_position(position.records_in);
            bar.abandon_with_message(format!("{}   {took}", counted(checkpoints, "checkpoint")));
        } else {
            stdout::line(format_args!(
                "{}   {took}",
                running_line(position.records_in, self.orders, checkpoints)
            ));
        }
    }

    fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| stdout::line(text)),
            None => stdout::line(text),
        }
    }
}

fn new_bar(orders: u64) -> ProgressBar {
    let style =
        ProgressStyle::with_template(BAR).expect("the template is a constant").progress_chars("█▉▊▋▌▍▎▏ ");
    ProgressBar::with_draw_target(Some(orders), ProgressDrawTarget::stdout_with_hz(REDRAWS_PER_S))
        .with_style(style)
}

fn running_line(records_in: u64, orders: u64, checkpoints: u64) -> String {
    format!(
        "  running     {:>9} of {} orders   {}",
        grouped(records_in),
        grouped(orders),
        counted(checkpoints, "checkpoint")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_valid() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }

    #[test]
    fn plain_lines_are_few() {
        let mut display = Display { orders: 100, bar: None, on_terminal: false, shown_steps: 0 };
        (0..=100).for_each(|records_in| display.progress(records_in, 1));
        assert_eq!(display.shown_steps, PLAIN_STEPS - 1);
    }
}
