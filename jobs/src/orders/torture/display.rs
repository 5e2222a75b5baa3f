//! What a torture run shows while it runs: a line per kill, and on a terminal a bar below them.
//!
//! Owns: where the lines go: to standard output, or with `--json` to standard error.
//! Does not own: what they say.
//! Runs on: the main thread.

use std::io::{IsTerminal, Write};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

const BAR: &str = "  kills       {bar:26} {pos:>4} of {len}   {elapsed}";

/// See the module.
#[derive(Debug)]
pub(crate) struct Display {
    json: bool,
    bar: ProgressBar,
}

impl Display {
    /// For so many kills.
    pub(crate) fn new(json: bool, kills: u64) -> Self {
        let target = match (json, std::io::stdout().is_terminal(), std::io::stderr().is_terminal()) {
            (false, true, _) => ProgressDrawTarget::stdout(),
            (true, _, true) => ProgressDrawTarget::stderr(),
            _ => ProgressDrawTarget::hidden(),
        };
        let style = ProgressStyle::with_template(BAR)
            .expect("the template is a constant")
            .progress_chars("█▉▊▋▌▍▎▏ ");
        Self { json, bar: ProgressBar::with_draw_target(Some(kills), target).with_style(style) }
    }

    /// One line.
    pub(crate) fn line(&self, text: &str) {
        self.bar.suspend(|| {
            // A reader that has seen enough closes the pipe: the exit status still tells.
            let _ = match self.json {
                true => writeln!(std::io::stderr(), "{text}"),
                false => writeln!(std::io::stdout(), "{text}"),
            };
        });
    }

    /// Another kill.
    pub(crate) fn killed(&self) {
        self.bar.inc(1);
    }

    /// No more kills come.
    pub(crate) fn done(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_of_the_bar_is_valid() {
        assert!(ProgressStyle::with_template(BAR).is_ok());
    }
}
