//! Whether and when a failed attempt is followed by another one.
//!
//! Owns: the strategies and their counts. Does not own: which failures are final (see [`super::attempt_end`]); fenced, finished,
//! canceled and lost attempts never come here. Runs on: pure; time is given.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::clock::Moment;

/// How often and how soon to start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "strategy", rename_all = "kebab-case", deny_unknown_fields)]
pub enum RestartStrategy {
    /// Never.
    None,
    /// Some times, each after the same pause.
    FixedDelay {
        /// How many times in all.
        attempts: u32,
        /// Before each, in milliseconds.
        delay_ms: u64,
    },
    /// Always, after pauses that double.
    ExponentialDelay {
        /// The first pause, in milliseconds.
        initial_ms: u64,
        /// The longest pause, in milliseconds.
        max_ms: u64,
        /// After so long without a failure the pauses begin anew, in milliseconds.
        reset_after_ms: u64,
    },
    /// As long as failures are rare.
    FailureRate {
        /// How many failures an interval may hold.
        max_failures: u32,
        /// The interval, in milliseconds.
        interval_ms: u64,
        /// Before each start, in milliseconds.
        delay_ms: u64,
    },
}

impl Default for RestartStrategy {
    /// 100 ms, doubled up to 60 s, anew after 10 minutes.
    fn default() -> Self {
        Self::ExponentialDelay { initial_ms: 100, max_ms: 60_000, reset_after_ms: 600_000 }
    }
}

/// What follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartDecision {
    /// Another attempt after this pause.
    RestartAfter(Duration),
    /// None: the job has failed.
    GiveUp {
        /// How many restarts there were.
        restarts: u32,
    },
}

/// A strategy together with what has happened so far.
#[derive(Clone, Debug)]
pub struct Restarts {
    strategy: RestartStrategy,
    restarts: u32,
    in_a_row: u32,
    failed_at: VecDeque<Moment>,
}

impl Restarts {
    /// Nothing has happened yet.
    pub fn new(strategy: RestartStrategy) -> Self {
        Self { strategy, restarts: 0, in_a_row: 0, failed_at: VecDeque::new() }
    }

    /// How many restarts there were.
    pub fn count(&self) -> u32 {
        self.restarts
    }

    /// An attempt has failed at `now` for a reason that a restart may mend.
    pub fn failed(&mut self, now: Moment) -> RestartDecision {
        let delay_ms = match self.strategy {
            RestartStrategy::None => None,
            RestartStrategy::FixedDelay { attempts, delay_ms } => {
                (self.restarts < attempts).then_some(delay_ms)
            }
            RestartStrategy::ExponentialDelay { initial_ms, max_ms, reset_after_ms } => {
                let calm =
                    self.failed_at.back().is_some_and(|at| now.saturating_sub(*at) >= ms(reset_after_ms));
                self.in_a_row = if calm { 1 } else { self.in_a_row.saturating_add(1) };
                let doubled = 1u64.checked_shl(self.in_a_row - 1).unwrap_or(u64::MAX);
                Some(initial_ms.saturating_mul(doubled).min(max_ms))
            }
            RestartStrategy::FailureRate { max_failures, interval_ms, delay_ms } => {
                self.failed_at.retain(|at| now.saturating_sub(*at) < ms(interval_ms));
                (self.failed_at.len() < max_failures as usize).then_some(delay_ms)
            }
        };
        self.remember(now);
        match delay_ms {
            Some(delay_ms) => {
                self.restarts += 1;
                RestartDecision::RestartAfter(ms(delay_ms))
            }
            None => RestartDecision::GiveUp { restarts: self.restarts },
        }
    }

    fn remember(&mut self, now: Moment) {
        let keep = match self.strategy {
            RestartStrategy::FailureRate { max_failures, .. } => max_failures.max(1) as usize,
            _ => 1,
        };
        self.failed_at.push_back(now);
        while self.failed_at.len() > keep {
            self.failed_at.pop_front();
        }
    }
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[cfg(test)]
mod tests {
    use super::RestartDecision::{GiveUp, RestartAfter};
    use super::*;

    fn run(strategy: RestartStrategy, failures_at_ms: &[u64]) -> Vec<Option<u128>> {
        let mut restarts = Restarts::new(strategy);
        let delay = |at: &u64| match restarts.failed(ms(*at)) {
            RestartAfter(delay) => Some(delay.as_millis()),
            GiveUp { .. } => None,
        };
        failures_at_ms.iter().map(delay).collect()
    }

    #[test]
    fn none_gives_up_at_once_and_a_fixed_number_after_that_many() {
        assert_eq!(run(RestartStrategy::None, &[0]), [None]);
        let twice = RestartStrategy::FixedDelay { attempts: 2, delay_ms: 7 };
        assert_eq!(run(twice, &[0, 1, 2]), [Some(7), Some(7), None]);
    }

    #[test]
    fn the_default_doubles_up_to_a_minute_and_begins_anew_after_ten() {
        let at: Vec<u64> = (0..12).map(|n| n * 60_000).chain([11 * 60_000 + 600_000]).collect();
        let delays = run(RestartStrategy::default(), &at);
        assert_eq!(delays[..4], [Some(100), Some(200), Some(400), Some(800)]);
        assert_eq!(delays[9..], [Some(51_200), Some(60_000), Some(60_000), Some(100)]);
    }

    #[test]
    fn a_rate_looks_only_at_its_interval() {
        let rate = RestartStrategy::FailureRate { max_failures: 2, interval_ms: 100, delay_ms: 1 };
        assert_eq!(run(rate, &[0, 10, 105, 107, 108]), [Some(1), Some(1), Some(1), None, None]);
    }
}
