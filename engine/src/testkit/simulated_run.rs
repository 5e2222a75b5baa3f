//! What has come out of one simulated run, beside what comes out where nothing goes wrong.
//!
//! Owns: the comparison. Does not own: the runs (see [`super::Simulation`]). Runs on: the test's thread.

use std::collections::BTreeMap;
use std::fmt::Debug;

use crate::sim::any_record::AnyRecord;
use crate::sim::simulated_ends::Output;

/// Records by the uid of their sink.
pub(super) type Reference = BTreeMap<String, Vec<AnyRecord>>;

/// So many records of each kind stand in a mismatch.
const SHOWN_MAX: usize = 5;

/// Output that is not as it has to be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Mismatch(String);

impl Mismatch {
    /// With these words.
    pub fn new(words: impl std::fmt::Display) -> Self {
        Self(words.to_string())
    }
}

/// See the module.
#[derive(Debug)]
pub struct SimulatedRun<'a> {
    outputs: BTreeMap<String, Output>,
    reference: &'a Reference,
}

impl<'a> SimulatedRun<'a> {
    pub(super) fn new(outputs: BTreeMap<String, Output>, reference: &'a Reference) -> Self {
        Self { outputs, reference }
    }

    /// What a sink has put out.
    ///
    /// # Panics
    /// If there is no such sink, or its records are of another type.
    pub fn sink<T: Clone + 'static>(&self, uid: &str) -> SinkOutput<T> {
        let Some(output) = self.outputs.get(uid) else {
            let there: Vec<&str> = self.outputs.keys().map(String::as_str).collect();
            panic!("the job has no sink \"{uid}\"; it has {}", there.join(", "));
        };
        let reference = self.reference.get(uid).map_or(&[][..], Vec::as_slice);
        SinkOutput {
            uid: uid.to_owned(),
            in_transactions: matches!(output, Output::Transactions(_)),
            records: typed(uid, &output.records()),
            reference: typed(uid, reference),
        }
    }
}

fn typed<T: Clone + 'static>(uid: &str, records: &[AnyRecord]) -> Vec<T> {
    let typed = records.iter().map(|record| {
        let wanted = std::any::type_name::<T>();
        record.get().unwrap_or_else(|| panic!("the records of sink \"{uid}\" are not of type {wanted}"))
    });
    typed.collect()
}

/// What one sink has put out in a run, as far as it was committed.
#[derive(Clone, Debug)]
pub struct SinkOutput<T> {
    uid: String,
    in_transactions: bool,
    records: Vec<T>,
    reference: Vec<T>,
}

impl<T> SinkOutput<T> {
    /// Every record, in the order in which readers came to see it.
    pub fn records(&self) -> &[T] {
        &self.records
    }

    /// The records of the run without faults.
    pub fn reference(&self) -> &[T] {
        &self.reference
    }

    /// Only the last record of each key, as a table that is overwritten by that key keeps it.
    #[must_use]
    pub fn last_of_each<K: Ord>(self, key: impl Fn(&T) -> K) -> Self {
        let last = |records: Vec<T>| {
            let by_key: BTreeMap<K, T> = records.into_iter().map(|record| (key(&record), record)).collect();
            by_key.into_values().collect()
        };
        Self { records: last(self.records), reference: last(self.reference), ..self }
    }
}

/// How often a record is there too many (or, below zero, too few) times.
type Differences = BTreeMap<String, i64>;

impl<T: Debug> SinkOutput<T> {
    fn differences(&self) -> Differences {
        let mut differences = Differences::new();
        let mut count = |record: &T, by: i64| *differences.entry(format!("{record:?}")).or_default() += by;
        self.records.iter().for_each(|record| count(record, 1));
        self.reference.iter().for_each(|record| count(record, -1));
        differences.retain(|_, times| *times != 0);
        differences
    }

    /// Every record of the reference once, and no other. The order is not compared; records are told apart by their `Debug` text.
    ///
    /// # Errors
    /// Which are lost, and which are there that should not be.
    pub fn equals_reference_exactly_once(&self) -> Result<(), Mismatch> {
        let differences = self.differences();
        if differences.is_empty() {
            return Ok(());
        }
        let mut words = format!(
            "sink \"{}\": {} records, expected {}",
            self.uid,
            self.records.len(),
            self.reference.len()
        );
        words += &shown(&differences, "lost", |times| times < 0);
        words += &shown(&differences, "too many", |times| times > 0);
        if !self.in_transactions {
            words +=
                "\n  help: this sink writes at once, so a restart writes again; one in two phases would not";
        }
        Err(Mismatch(words))
    }

    /// Every record of the reference at least once, and no other: what a sink without transactions can promise.
    ///
    /// # Errors
    /// As for [`SinkOutput::equals_reference_exactly_once`].
    pub fn contains_reference(&self) -> Result<(), Mismatch> {
        let known: std::collections::BTreeSet<String> =
            self.reference.iter().map(|r| format!("{r:?}")).collect();
        let mut differences = self.differences();
        differences.retain(|record, times| *times < 0 || !known.contains(record));
        if differences.is_empty() {
            return Ok(());
        }
        let mut words = format!("sink \"{}\"", self.uid);
        words += &shown(&differences, "lost", |times| times < 0);
        words += &shown(&differences, "foreign", |times| times > 0);
        Err(Mismatch(words))
    }
}

fn shown(differences: &Differences, what: &str, of: impl Fn(i64) -> bool) -> String {
    let of: Vec<_> = differences.iter().filter(|(_, times)| of(**times)).collect();
    if of.is_empty() {
        return String::new();
    }
    let first: Vec<String> =
        of.iter().take(SHOWN_MAX).map(|(record, times)| format!("{record} × {}", times.abs())).collect();
    let dots = if of.len() > SHOWN_MAX { ", …" } else { "" };
    format!("\n  {what}: {}: {}{dots}", of.len(), first.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(records: &[u64], reference: &[u64]) -> SinkOutput<u64> {
        let (records, reference) = (records.to_vec(), reference.to_vec());
        SinkOutput { uid: "out".into(), in_transactions: true, records, reference }
    }

    #[test]
    fn a_lost_a_doubled_and_a_foreign_record_are_named() {
        assert_eq!(output(&[2, 1], &[1, 2]).equals_reference_exactly_once(), Ok(()));
        let words = output(&[1, 1, 9], &[1, 2]).equals_reference_exactly_once().unwrap_err().to_string();
        assert_eq!(
            words,
            "sink \"out\": 3 records, expected 2\n  lost: 1: 2 × 1\n  too many: 2: 1 × 1, 9 × 1"
        );
    }

    #[test]
    fn at_least_once_takes_doubled_records_but_no_lost_or_foreign_ones() {
        assert_eq!(output(&[1, 2, 1], &[1, 2]).contains_reference(), Ok(()));
        let words = output(&[1, 1, 9], &[1, 2]).contains_reference().unwrap_err().to_string();
        assert_eq!(words, "sink \"out\"\n  lost: 1: 2 × 1\n  foreign: 1: 9 × 1");
    }

    #[test]
    fn the_last_record_of_each_key_is_what_an_overwritten_table_keeps() {
        let by_parity = output(&[1, 2, 3, 4], &[3, 4]).last_of_each(|n| n % 2);
        assert_eq!(by_parity.records(), [4, 3]);
        assert_eq!(by_parity.equals_reference_exactly_once(), Ok(()));
    }
}
