//! Runs candidates in turn, several rounds.
//!
//! Owns: the order of runs. Does not own: the runs. Runs on: the main thread.

use super::{Candidate, Run, Spread};
use crate::error::BenchError;

/// A part of the records is enough to warm up: the first touch of code and memory.
const WARM_UP_PART: u64 = 20;

/// How often, how much, and which.
#[derive(Clone, Debug)]
pub(crate) struct Rounds {
    /// Counted rounds.
    pub(crate) rounds: u32,
    /// Records of each run.
    pub(crate) records: u64,
    /// Only candidates whose "group · name" contains this.
    pub(crate) only: Option<String>,
}

/// All runs of a candidate.
#[derive(Clone, Debug)]
pub(crate) struct Measured {
    /// Its group.
    pub(crate) group: &'static str,
    /// Its name.
    pub(crate) name: String,
    /// Its runs, in order.
    pub(crate) runs: Vec<Run>,
}

impl Measured {
    /// Of a figure over all runs.
    pub(crate) fn spread(&self, figure: impl Fn(&Run) -> f64) -> Spread {
        Spread::of(self.runs.iter().map(figure))
    }

    /// Every note over all runs, by name, in order of appearance.
    pub(crate) fn notes(&self) -> Vec<(&'static str, Spread)> {
        let mut names: Vec<&'static str> = Vec::new();
        for (name, _) in self.runs.iter().flat_map(|run| &run.notes) {
            if !names.contains(name) {
                names.push(name);
            }
        }
        names.into_iter().filter_map(|name| Some((name, self.note(name)?))).collect()
    }

    /// One note over all runs that have it.
    pub(crate) fn note(&self, name: &str) -> Option<Spread> {
        let of_all = self.runs.iter().flat_map(|run| &run.notes).filter(|(known, _)| *known == name);
        let figures: Vec<f64> = of_all.map(|(_, figure)| *figure).collect();
        (!figures.is_empty()).then(|| Spread::of(figures))
    }
}

impl Rounds {
    /// Runs every candidate once a round.
    ///
    /// # Errors
    /// The first candidate that fails.
    pub(crate) fn measure(&self, mut candidates: Vec<Candidate<'_>>) -> Result<Vec<Measured>, BenchError> {
        if let Some(only) = &self.only {
            candidates.retain(|c| format!("{} · {}", c.group, c.name).contains(only.as_str()));
            if candidates.is_empty() {
                return Err(BenchError::NoCandidate { only: only.clone() });
            }
        }
        let warm_up = (self.records / WARM_UP_PART).max(1);
        for candidate in &mut candidates {
            candidate.run(warm_up)?;
        }
        let mut measured: Vec<Measured> = candidates
            .iter()
            .map(|c| Measured { group: c.group, name: c.name.clone(), runs: Vec::new() })
            .collect();
        for round in 1..=self.rounds {
            eprintln!("round {round} of {}", self.rounds);
            for (candidate, measured) in candidates.iter_mut().zip(&mut measured) {
                measured.runs.push(candidate.run(self.records)?);
            }
        }
        Ok(measured)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use super::*;

    fn run(records: u64) -> Run {
        let (elapsed, cpu) = (Duration::from_millis(1), Duration::from_millis(1));
        Run { records, elapsed, cpu, notes: vec![("checkpoints", records as f64)] }
    }

    #[test]
    fn candidates_take_turns_after_a_short_round_that_does_not_count() {
        let order = RefCell::new(Vec::new());
        let candidate = |name: &'static str| {
            let order = &order;
            Candidate::new("all", name, move |records| {
                order.borrow_mut().push((name, records));
                Ok(run(records))
            })
        };
        let rounds = Rounds { rounds: 2, records: 100, only: None };
        let measured = rounds.measure(vec![candidate("a"), candidate("b")]).unwrap();
        assert_eq!(*order.borrow(), [("a", 5), ("b", 5), ("a", 100), ("b", 100), ("a", 100), ("b", 100)]);
        assert_eq!(measured[1].runs.len(), 2);
        let spread = Spread { min: 100.0, median: 100.0, max: 100.0 };
        assert_eq!(measured[1].notes(), [("checkpoints", spread)]);
        assert_eq!(measured[1].note("unknown"), None);
    }

    #[test]
    fn a_name_that_nobody_has_is_refused() {
        let rounds = Rounds { rounds: 1, records: 1, only: Some("zebra".to_owned()) };
        let refused = rounds.measure(vec![Candidate::new("all", "a", |records| Ok(run(records)))]);
        assert!(matches!(refused, Err(BenchError::NoCandidate { .. })));
    }
}
