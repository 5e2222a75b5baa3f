//! Counts how the rows of one table differ from what must stand there.
//!
//! Owns: the meaning of *duplicate*, *lost*, *wrong*, *unexpected* and *deviation*.
//! Does not own: where the rows come from, nor how the result is shown.
//! Runs on: the main thread of `verify`. Pure.

use std::collections::BTreeMap;

use super::verdict::{Fault, FaultKind, TableVerdict};

/// At most this many single faults of a table are named.
const FAULTS_NAMED: usize = 5;

/// A row without its id.
pub(crate) trait Row: PartialEq {
    /// The column whose deviation is summed.
    fn cents(&self) -> i64;
}

/// The comparison of one table in progress.
#[derive(Debug)]
pub(crate) struct Tally<'a, R> {
    expected: &'a BTreeMap<i64, R>,
    seen: BTreeMap<i64, Seen>,
}

#[derive(Debug, Default)]
struct Seen {
    rows: u64,
    wrong: u64,
    cents: i128,
}

impl<'a, R: Row> Tally<'a, R> {
    /// No row seen yet.
    pub(crate) fn against(expected: &'a BTreeMap<i64, R>) -> Self {
        Self { expected, seen: BTreeMap::new() }
    }

    /// Takes one row of the table.
    pub(crate) fn add(&mut self, id: i64, row: &R) {
        let seen = self.seen.entry(id).or_default();
        seen.rows += 1;
        seen.cents += i128::from(row.cents());
        seen.wrong += u64::from(self.expected.get(&id).is_some_and(|expected| expected != row));
    }

    /// All rows have been taken.
    pub(crate) fn finish(self) -> TableVerdict {
        let mut verdict = TableVerdict { expected: self.expected.len() as u64, ..TableVerdict::default() };
        let mut deviation: u128 = 0;
        for (&id, seen) in &self.seen {
            let expected = self.expected.get(&id);
            deviation += (seen.cents - expected.map_or(0, |row| i128::from(row.cents()))).unsigned_abs();
            verdict.actual += seen.rows;
            verdict.duplicates += seen.rows - 1;
            verdict.wrong += seen.wrong;
            if expected.is_none() {
                verdict.unexpected += seen.rows;
                name(&mut verdict.faults, FaultKind::Unexpected, id);
            }
            if seen.rows > 1 {
                name(&mut verdict.faults, FaultKind::Duplicate, id);
            }
            if seen.wrong > 0 {
                name(&mut verdict.faults, FaultKind::Wrong, id);
            }
        }
        for (&id, row) in self.expected {
            if !self.seen.contains_key(&id) {
                deviation += u128::from(row.cents().unsigned_abs());
                verdict.lost += 1;
                name(&mut verdict.faults, FaultKind::Lost, id);
            }
        }
        verdict.deviation_cents = u64::try_from(deviation).unwrap_or(u64::MAX);
        verdict
    }
}

/// Keeps the first few of each kind.
fn name(faults: &mut Vec<Fault>, kind: FaultKind, id: i64) {
    if faults.iter().filter(|fault| fault.kind == kind).count() < FAULTS_NAMED {
        faults.push(Fault { kind, id });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Row for i64 {
        fn cents(&self) -> i64 {
            *self
        }
    }

    fn verdict(expected: &[(i64, i64)], actual: &[(i64, i64)]) -> TableVerdict {
        let expected = expected.iter().copied().collect();
        let mut tally = Tally::against(&expected);
        for (id, cents) in actual {
            tally.add(*id, cents);
        }
        tally.finish()
    }

    #[test]
    fn equal_tables_agree_in_any_order() {
        assert!(verdict(&[(1, 10), (2, 0)], &[(2, 0), (1, 10)]).ok());
        assert!(verdict(&[], &[]).ok());
    }

    #[test]
    fn a_lost_and_a_doubled_row_of_the_same_amount_do_not_cancel() {
        let verdict = verdict(&[(1, 10), (2, 10)], &[(1, 10), (1, 10)]);
        assert_eq!((verdict.expected, verdict.actual), (2, 2));
        assert_eq!((verdict.duplicates, verdict.lost, verdict.deviation_cents), (1, 1, 20));
    }

    #[test]
    fn rows_worth_nothing_count_too() {
        let verdict = verdict(&[(1, 0), (2, 0)], &[(1, 0), (1, 0), (3, 0)]);
        assert_eq!((verdict.duplicates, verdict.lost, verdict.unexpected), (1, 1, 1));
        assert_eq!(verdict.deviation_cents, 0);
        assert!(!verdict.ok());
    }

    #[test]
    fn opposite_errors_of_two_ids_add_up() {
        let verdict = verdict(&[(1, 10), (2, 10)], &[(1, 15), (2, 5)]);
        assert_eq!((verdict.wrong, verdict.deviation_cents), (2, 10));
    }

    #[test]
    fn a_few_faults_of_each_kind_are_named() {
        let actual: Vec<_> = (100..200).map(|id| (id, 1)).collect();
        let verdict = verdict(&[(1, 10)], &actual);
        assert_eq!(verdict.faults.len(), FAULTS_NAMED + 1);
        assert_eq!(verdict.faults.last(), Some(&Fault { kind: FaultKind::Lost, id: 1 }));
    }
}
