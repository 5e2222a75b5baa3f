//! One kill, as the report tells it.
//!
//! Owns: its figures and their two forms.
//! Does not own: how they were come by ([`super::campaign`]).
//! Runs on: the main thread. Plain data.

use serde_json::{Value, json};

use super::place::Place;
use super::schedule::{Spot, Strike};
use tidegate_jobs::digits::{counted, grouped};

/// Column of the place in a line.
const PLACE_WIDTH: usize = 38;

/// One kill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Kill {
    /// Where it fell.
    pub(crate) strike: Strike,
    /// Orders read, as last heard.
    pub(crate) records_in: u64,
    /// The newest checkpoint known to be complete.
    pub(crate) checkpoint: u64,
    /// Orders read and not in the output.
    pub(crate) in_flight: u64,
    /// Transactions staged in the database and not decided.
    pub(crate) prepared: u64,
    /// How the next process came back; none: it died before that.
    pub(crate) recovery: Option<Recovery>,
}

/// How a process came back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Recovery {
    /// From the start of the process until every transaction of earlier ones was settled.
    pub(crate) recovery_ms: u64,
    /// The checkpoint restored.
    pub(crate) restored: Option<u64>,
    /// Transactions committed.
    pub(crate) committed: u64,
    /// Transactions rolled back.
    pub(crate) rolled_back: u64,
}

impl Kill {
    /// The place, if it was one of the named ones.
    pub(crate) fn place(&self) -> Option<Place> {
        match self.strike.spot {
            Spot::Fault(pass) => Some(pass.place),
            Spot::Progress { .. } | Spot::Behind { .. } => None,
        }
    }

    /// One line, without its number.
    pub(crate) fn to_text(&self) -> String {
        let place = self.place().map_or("by progress", Place::words);
        let records = format!("{} orders", grouped(self.records_in));
        let flight = format!("{} in flight", grouped(self.in_flight));
        let prepared = format!("{} prepared", self.prepared);
        let recovery = self.recovery.map_or_else(
            || "the next one died in recovery".to_owned(),
            |recovery| {
                format!(
                    "back in {} ms: committed {}, rolled back {}",
                    recovery.recovery_ms, recovery.committed, recovery.rolled_back
                )
            },
        );
        format!(
            "{place:<PLACE_WIDTH$}{records:>15}   checkpoint {:<4}{flight:>16}{prepared:>13}   {recovery}",
            self.checkpoint
        )
    }

    /// One object.
    pub(crate) fn to_json(&self) -> Value {
        let (place, point) = match self.strike.spot {
            Spot::Fault(pass) => (pass.place.words(), Some(pass.variable())),
            Spot::Progress { .. } | Spot::Behind { .. } => ("by progress", None),
        };
        json!({
            "place": place,
            "fault_point": point,
            "parallelism": self.strike.parallelism,
            "records_in": self.records_in,
            "checkpoint": self.checkpoint,
            "records_in_flight": self.in_flight,
            "transactions_prepared": self.prepared,
            "recovery_ms": self.recovery.map(|recovery| recovery.recovery_ms),
            "restored": self.recovery.and_then(|recovery| recovery.restored),
            "committed": self.recovery.map(|recovery| recovery.committed),
            "rolled_back": self.recovery.map(|recovery| recovery.rolled_back),
        })
    }
}

/// `10 by progress, 10 at 7 of 7 places`.
pub(crate) fn summary(kills: &[Kill]) -> String {
    let by_progress = kills.iter().filter(|kill| kill.place().is_none()).count();
    let places = Place::ALL.len();
    format!(
        "{}: {by_progress} by progress, {} at {} of {places} places",
        counted(kills.len() as u64, "kill"),
        kills.len() - by_progress,
        places - not_struck(kills).len()
    )
}

/// Places that no kill fell on.
pub(crate) fn not_struck(kills: &[Kill]) -> Vec<Place> {
    Place::ALL.into_iter().filter(|place| !kills.iter().any(|kill| kill.place() == Some(*place))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_that_was_not_struck_is_told() {
        let strike = Strike::alone(Spot::Progress { share: 500, waits: false }, 3);
        let kill = Kill { strike, records_in: 1, checkpoint: 2, in_flight: 3, prepared: 4, recovery: None };
        assert_eq!(not_struck(std::slice::from_ref(&kill)), Place::ALL);
        assert_eq!(summary(&[kill]), "1 kill: 1 by progress, 0 at 0 of 7 places");
    }
}
