//! `--restart`: a strategy and its parts, as in `fixed-delay,attempts=3,delay=1s`.
//!
//! Owns: the form, and the parts' defaults. Does not own: the strategies ([`crate::engine::jobmanager::restart_strategy`]).
//! Runs on: the main thread, while flags are read. Pure.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::duration::{DurationError, in_words, parse_duration};
use crate::engine::jobmanager::RestartStrategy;
use crate::nearest::nearest;

/// Names and parts, as they are written.
const STRATEGIES: [(&str, &[&str]); 4] = [
    ("none", &[]),
    ("fixed-delay", &["attempts", "delay"]),
    ("exponential-delay", &["initial", "max", "reset-after"]),
    ("failure-rate", &["failures", "interval", "delay"]),
];

/// What follows a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart(pub RestartStrategy);

/// What was given is no restart strategy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RestartError {
    /// There is none of this name.
    #[error(
        "there is no restart strategy {name:?}{}; there are none, fixed-delay, exponential-delay and failure-rate",
        .nearest.map_or_else(String::new, |nearest| format!(" (did you mean {nearest}?)"))
    )]
    Unknown {
        /// As given.
        name: String,
        /// What looks like it.
        nearest: Option<&'static str>,
    },
    /// The strategy has no such part.
    #[error("{strategy} has no part {part:?}; {}", if parts.is_empty() { "it has none".to_owned() } else { format!("it has {}", parts.join(", ")) })]
    UnknownPart {
        /// The strategy.
        strategy: &'static str,
        /// As given.
        part: String,
        /// What there is.
        parts: &'static [&'static str],
    },
    /// A count is not a number.
    #[error("{part} of {strategy} is a whole number, as in {part}=3, and not {text:?}")]
    Count {
        /// The strategy.
        strategy: &'static str,
        /// The part.
        part: &'static str,
        /// As given.
        text: String,
    },
    /// A span is not a duration.
    #[error("{part} of {strategy}: {source}")]
    Span {
        /// The strategy.
        strategy: &'static str,
        /// The part.
        part: &'static str,
        /// What is wrong with it.
        source: DurationError,
    },
    /// A part that says nothing.
    #[error("{text:?} is no part of a restart strategy: write NAME=VALUE, as in attempts=3")]
    NoValue {
        /// As given.
        text: String,
    },
}

/// The parts that were given.
struct Parts<'a> {
    strategy: &'static str,
    given: BTreeMap<&'static str, &'a str>,
}

impl<'a> Parts<'a> {
    fn read(
        strategy: &'static str,
        known: &'static [&'static str],
        text: &'a str,
    ) -> Result<Self, RestartError> {
        let mut given = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, value) =
                part.split_once('=').ok_or_else(|| RestartError::NoValue { text: part.to_owned() })?;
            let (name, value) = (name.trim(), value.trim());
            let part = known
                .iter()
                .find(|known| **known == name)
                .ok_or_else(|| RestartError::UnknownPart { strategy, part: name.to_owned(), parts: known })?;
            given.insert(*part, value);
        }
        Ok(Self { strategy, given })
    }

    fn count(&self, part: &'static str, default: u32) -> Result<u32, RestartError> {
        let Some(text) = self.given.get(part) else { return Ok(default) };
        let wrong = |_| RestartError::Count { strategy: self.strategy, part, text: (*text).to_owned() };
        text.parse().map_err(wrong)
    }

    fn span_ms(&self, part: &'static str, default_ms: u64) -> Result<u64, RestartError> {
        let Some(text) = self.given.get(part) else { return Ok(default_ms) };
        let span = parse_duration(text).map_err(|source| RestartError::Span {
            strategy: self.strategy,
            part,
            source,
        })?;
        Ok(u64::try_from(span.as_millis()).unwrap_or(u64::MAX))
    }
}

impl FromStr for Restart {
    type Err = RestartError;

    fn from_str(text: &str) -> Result<Self, RestartError> {
        let (name, rest) = text.split_once(',').unwrap_or((text, ""));
        let name = name.trim();
        let Some((strategy, known)) = STRATEGIES.into_iter().find(|(known, _)| *known == name) else {
            let nearest = nearest(name, STRATEGIES.map(|(name, _)| name));
            return Err(RestartError::Unknown { name: name.to_owned(), nearest });
        };
        let parts = Parts::read(strategy, known, rest)?;
        Ok(Self(match strategy {
            "none" => RestartStrategy::None,
            "fixed-delay" => RestartStrategy::FixedDelay {
                attempts: parts.count("attempts", 3)?,
                delay_ms: parts.span_ms("delay", 1_000)?,
            },
            "exponential-delay" => RestartStrategy::ExponentialDelay {
                initial_ms: parts.span_ms("initial", 100)?,
                max_ms: parts.span_ms("max", 60_000)?,
                reset_after_ms: parts.span_ms("reset-after", 600_000)?,
            },
            _ => RestartStrategy::FailureRate {
                max_failures: parts.count("failures", 3)?,
                interval_ms: parts.span_ms("interval", 60_000)?,
                delay_ms: parts.span_ms("delay", 1_000)?,
            },
        }))
    }
}

impl fmt::Display for Restart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |ms: &u64| in_words(Duration::from_millis(*ms));
        match &self.0 {
            RestartStrategy::None => write!(f, "none"),
            RestartStrategy::FixedDelay { attempts, delay_ms } => {
                write!(f, "fixed-delay,attempts={attempts},delay={}", span(delay_ms))
            }
            RestartStrategy::ExponentialDelay { initial_ms, max_ms, reset_after_ms } => {
                let (initial, max, reset) = (span(initial_ms), span(max_ms), span(reset_after_ms));
                write!(f, "exponential-delay,initial={initial},max={max},reset-after={reset}")
            }
            RestartStrategy::FailureRate { max_failures, interval_ms, delay_ms } => {
                let (interval, delay) = (span(interval_ms), span(delay_ms));
                write!(f, "failure-rate,failures={max_failures},interval={interval},delay={delay}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_strategy_is_read_with_its_parts_and_its_defaults_and_written_back() {
        let cases = [
            ("none", "none"),
            ("fixed-delay", "fixed-delay,attempts=3,delay=1s"),
            ("fixed-delay, attempts=7 ,delay=50ms", "fixed-delay,attempts=7,delay=50ms"),
            ("exponential-delay,max=2s", "exponential-delay,initial=100ms,max=2s,reset-after=10min"),
            ("failure-rate,failures=5", "failure-rate,failures=5,interval=1min,delay=1s"),
        ];
        for (given, written) in cases {
            let restart: Restart = given.parse().unwrap();
            assert_eq!(restart.to_string(), written);
            assert_eq!(written.parse(), Ok(restart), "what is written can be read");
        }
        assert_eq!("exponential-delay".parse(), Ok(Restart(RestartStrategy::default())));
    }

    #[test]
    fn what_is_wrong_is_named_together_with_what_there_is() {
        let error = |text: &str| text.parse::<Restart>().unwrap_err().to_string();
        assert!(error("fixed-dely").contains("did you mean fixed-delay?"), "{}", error("fixed-dely"));
        assert!(error("none,attempts=3").contains("it has none"));
        assert!(error("fixed-delay,tries=3").contains("it has attempts, delay"));
        assert!(error("fixed-delay,attempts=many").contains("attempts=3"));
        assert!(error("fixed-delay,delay=5").contains("200ms"));
        assert!(error("fixed-delay,3").contains("NAME=VALUE"));
    }
}
