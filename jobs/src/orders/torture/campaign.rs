//! The job killed again and again, and run to its end: each kill counted, each restart checked.
//!
//! Owns: the loop, what makes a kill count, and that a restart never begins behind a checkpoint known to be complete.
//! Does not own: which kills ([`super::schedule`]), the processes ([`crate::attempt`]), the audit ([`crate::verify`]).
//! Runs on: the main thread; the job runs in child processes.
//!
//! On a busy machine a checkpoint takes longer, and more orders are read before it. So that the input lasts for all kills, a run
//! that has read more than its share is followed by a slower one.
//!
//! A kill counts when a checkpoint was complete, input was left, and it left what the kill behind it needs. One that comes too
//! early is made again, later in the run.

use std::path::Path;
use std::process::Command;

use tidegate::state::fault::FAULT_VARIABLE;

use super::display::Display;
use super::error::TortureError;
use super::kill::Kill;
use super::output::Output;
use super::run_watch::RunWatch;
use super::schedule::{Spot, Strike, WHOLE};
use crate::attempt::{AttemptError, KillPoint, Position, run_and_die, run_and_kill, run_to_the_end};
use crate::run_line::RunLine;
use tidegate_jobs::digits::{counted, grouped};
use tidegate_jobs::stopwatch::Stopwatch;

/// How often a kill is made when it does not count.
const TRIES_MAX: u32 = 4;
/// Orders a second that are read at least, however slow the machine is.
const RATE_MIN: u64 = 100;

/// A job under torture.
pub(crate) struct Campaign<'a> {
    line: RunLine,
    orders: u64,
    share: u64,
    /// Orders a second of the next run; at most those of the line.
    rate: Option<u64>,
    display: &'a Display,
    watch: Stopwatch,
    kills: Vec<Kill>,
    /// Kills that were made and do not count.
    too_early: u64,
    /// The newest checkpoint known to be complete.
    complete: Option<u64>,
    /// Orders read, as last heard.
    records_in: u64,
}

impl<'a> Campaign<'a> {
    /// Nothing has run yet. `share` orders are meant to be read between two kills.
    pub(crate) fn new(line: RunLine, orders: u64, share: u64, display: &'a Display) -> Self {
        Self {
            rate: line.rate,
            line,
            orders,
            share,
            display,
            watch: Stopwatch::started(),
            kills: Vec::new(),
            too_early: 0,
            complete: None,
            records_in: 0,
        }
    }

    /// All kills, and then the run to the end.
    ///
    /// # Errors
    /// [`TortureError`] when a kill could not be made or a restart began too far back.
    pub(crate) fn run(mut self, strikes: &[Strike]) -> Result<Vec<Kill>, TortureError> {
        for strike in strikes {
            self.strike(*strike)?;
        }
        let mut watch = RunWatch::started();
        let line = RunLine { rate: None, ..self.line.clone() };
        let command = line.command().map_err(TortureError::Program)?;
        let finished = run_to_the_end(command, &mut watch);
        self.came_back(&watch)?;
        self.display.done();
        let finished = finished.map_err(TortureError::LastRun)?;
        let took = self.watch.elapsed_ms();
        self.display.line(&format!(
            "  finished    {} orders in {}.{} s; {} came too early and do not count",
            grouped(finished.records_in),
            took / 1_000,
            took % 1_000 / 100,
            counted(self.too_early, "kill")
        ));
        Ok(self.kills)
    }

    /// Makes one kill that counts.
    fn strike(&mut self, mut strike: Strike) -> Result<(), TortureError> {
        let number = self.kills.len() + 1;
        for _ in 0..TRIES_MAX {
            let begin = self.output()?.orders;
            let line = RunLine { parallelism: strike.parallelism, rate: self.rate, ..self.line.clone() };
            let command = line.command().map_err(TortureError::Program)?;
            let mut watch = RunWatch::started();
            let died = self.run_until_dead(command, strike.spot, begin, &mut watch);
            self.came_back(&watch)?;
            let died = died.map_err(|source| TortureError::NotKilled {
                number,
                place: strike.spot.words(),
                source,
            })?;
            self.rate = self
                .rate
                .zip(self.line.rate)
                .map(|(rate, full)| paced(rate, full, self.share, died.records_in.saturating_sub(begin)));
            if self.count(strike, &died)? {
                return Ok(());
            }
            self.too_early += 1;
            if let Spot::Fault(pass) = &mut strike.spot {
                pass.nth *= 2;
            }
        }
        Err(TortureError::NotCounted { number, place: strike.spot.words(), tries: TRIES_MAX })
    }

    /// `begin` is where the run starts to read, at least.
    fn run_until_dead(
        &self,
        mut command: Command,
        spot: Spot,
        begin: u64,
        watch: &mut RunWatch,
    ) -> Result<Position, AttemptError> {
        let behind =
            KillPoint { records_in: 0, records_in_at_last: 0, checkpoints: 1, records_after_checkpoint: 0 };
        match spot {
            Spot::Fault(pass) => {
                command.env(FAULT_VARIABLE, pass.variable());
                run_and_die(command, watch)
            }
            Spot::Progress { share, waits } => {
                let records_in = begin + self.share * share / WHOLE;
                let records_in_at_last = records_in + if waits { self.share } else { 0 };
                run_and_kill(command, KillPoint { records_in, records_in_at_last, ..behind }, watch)
            }
            Spot::Behind { records } => {
                run_and_kill(command, KillPoint { records_after_checkpoint: records, ..behind }, watch)
            }
        }
    }

    /// Takes the kill down, if it counts.
    fn count(&mut self, strike: Strike, died: &Position) -> Result<bool, TortureError> {
        self.complete = self.complete.max(died.newest_checkpoint);
        // Who dies in recovery has read nothing: what the process before it had read is still in flight.
        if died.records_in > 0 {
            self.records_in = died.records_in;
        }
        let after = self.output()?;
        let input_left = self.records_in < self.orders && after.orders < self.orders;
        let counts = input_left && after.staged >= strike.leaves_min;
        let Some(checkpoint) = self.complete.filter(|_| counts) else { return Ok(false) };
        let in_flight = self.records_in.saturating_sub(after.orders);
        self.kills.push(Kill {
            strike,
            records_in: self.records_in,
            checkpoint,
            in_flight,
            prepared: after.staged,
            recovery: None,
        });
        self.display.killed();
        Ok(true)
    }

    /// A run after a kill has been heard: how it came back, and whether far enough.
    fn came_back(&mut self, watch: &RunWatch) -> Result<(), TortureError> {
        let number = self.kills.len();
        let Some(kill) = self.kills.last_mut() else { return Ok(()) };
        // After one that did not count, the kill before it has its recovery already.
        if kill.recovery.is_none() {
            kill.recovery = watch.recovery();
            self.display.line(&format!("  kill {number:>4}   {}", kill.to_text()));
        }
        let Some(recovery) = watch.recovery() else { return Ok(()) };
        match self.complete.filter(|complete| recovery.restored < Some(*complete)) {
            Some(complete) => {
                Err(TortureError::NotRestored { number, restored: recovery.restored, complete })
            }
            None => Ok(()),
        }
    }

    fn output(&self) -> Result<Output, TortureError> {
        let checkpoints = self.line.checkpoints.as_deref().unwrap_or(Path::new(""));
        Ok(Output::of(&self.line.sink, checkpoints)?)
    }
}

/// The rate of the next run, when one has read `read` orders at `rate`, and `share` were meant. `full` is never exceeded.
fn paced(rate: u64, full: u64, share: u64, read: u64) -> u64 {
    match read {
        // Who dies in recovery says nothing about the machine.
        0 => rate,
        read if read > share => (rate * share / read).max(RATE_MIN.min(full)),
        _ => (rate * 2).min(full),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_read_more_than_its_share_is_followed_by_a_slower_one_until_the_machine_is_quick_again() {
        assert_eq!(paced(8_000, 8_000, 2_500, 2_500), 8_000);
        assert_eq!(paced(8_000, 8_000, 2_500, 10_000), 2_000);
        assert_eq!(paced(2_000, 8_000, 2_500, 0), 2_000);
        assert_eq!(paced(2_000, 8_000, 2_500, 1_000), 4_000);
        assert_eq!(paced(200, 8_000, 2_500, 60_000), RATE_MIN);
        assert_eq!(paced(50, 50, 1, 100), 50, "a run that is slow on purpose is made no faster");
    }
}
