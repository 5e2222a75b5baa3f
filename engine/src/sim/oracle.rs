//! What the output of a scenario must be, by a plain loop over the input: no engine type.
//!
//! Owns: the expectation and the comparison. Does not own: the input. Runs on: anywhere. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::database::Row;
use super::source::Record;

/// What is expected of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Expected {
    count: u64,
    sum: u64,
}

/// Compares the log-like output: each id once.
///
/// # Errors
/// The first ids that are lost, doubled or foreign.
pub fn check_events(input: &[Record], rows: &[Row]) -> Result<(), String> {
    let mut counts: BTreeMap<u64, i64> = input.iter().map(|r| (r.id, 0)).collect();
    for row in rows {
        let Row::Event { id } = row else { return Err(format!("a foreign row: {row:?}")) };
        *counts.get_mut(id).ok_or_else(|| format!("a foreign id: {id}"))? += 1;
    }
    let wrong: Vec<_> = counts.iter().filter(|(_, n)| **n != 1).take(8).collect();
    if wrong.is_empty() { Ok(()) } else { Err(format!("events (id, times): {wrong:?}")) }
}

/// Compares rows that were added in place: for each key as many as there are records, with the same sum.
///
/// # Errors
/// The first keys that differ.
pub fn check_sums(input: &[Record], rows: &[Row]) -> Result<(), String> {
    let (mut expected, mut actual) = (BTreeMap::<u64, Expected>::new(), BTreeMap::<u64, Expected>::new());
    let add = |to: &mut BTreeMap<u64, Expected>, key: u64, value: u64| {
        let entry = to.entry(key).or_default();
        entry.count += 1;
        entry.sum += value;
    };
    input.iter().for_each(|r| add(&mut expected, r.key, r.value));
    for row in rows {
        let Row::Add { key, value } = row else { return Err(format!("a foreign row: {row:?}")) };
        add(&mut actual, *key, *value);
    }
    let odd = expected.iter().filter(|(key, of)| actual.get(*key) != Some(*of));
    let odd: Vec<_> = odd.map(|(key, of)| (*key, *of, actual.get(key).copied())).take(4).collect();
    match odd.is_empty() && actual.len() == expected.len() {
        true => Ok(()),
        false => Err(format!("rows added in place (key, expected, actual): {odd:?}")),
    }
}

/// Compares the tally: every subtask spoke once, and together they counted every record.
///
/// # Errors
/// The difference.
pub fn check_tally(input: &[Record], rows: &[Row], subtasks: u32) -> Result<(), String> {
    let records =
        rows.iter().map(|row| if let Row::Tally { records } = row { *records } else { u64::MAX / 4_096 });
    let sum: u64 = records.sum();
    if rows.len() == subtasks as usize && sum == input.len() as u64 {
        return Ok(());
    }
    Err(format!("tally: {} of {subtasks} subtasks counted {sum} of {} records", rows.len(), input.len()))
}

/// Compares running totals and timers: each (key, count) once for 1..N, the final sum, each timer once.
///
/// # Errors
/// The first difference.
pub fn check_totals(input: &[Record], rows: &[Row], timer_after_ms: i64) -> Result<(), String> {
    let mut expected: BTreeMap<u64, Expected> = BTreeMap::new();
    let mut timers: BTreeSet<(u64, i64)> = BTreeSet::new();
    for record in input {
        let entry = expected.entry(record.key).or_default();
        entry.count += 1;
        entry.sum += record.value;
        timers.insert((record.key, record.time + timer_after_ms));
    }
    let mut counts: BTreeMap<u64, Vec<(u64, u64)>> = BTreeMap::new();
    let mut fired: Vec<(u64, i64)> = Vec::new();
    for row in rows {
        match row {
            Row::Total { key, count, sum } => counts.entry(*key).or_default().push((*count, *sum)),
            Row::Timer { key, at } => fired.push((*key, *at)),
            Row::Event { .. } | Row::Tally { .. } | Row::Add { .. } => {
                return Err(format!("a foreign row: {row:?}"));
            }
        }
    }
    fired.sort_unstable();
    let timers: Vec<_> = timers.into_iter().collect();
    if fired != timers {
        let odd = timers
            .iter()
            .filter(|t| fired.iter().filter(|f| f == t).count() != 1)
            .take(4)
            .collect::<Vec<_>>();
        return Err(format!("timers: {} fired, {} expected; odd: {odd:?}", fired.len(), timers.len()));
    }
    for (key, expected) in &expected {
        let mut seen = counts.remove(key).unwrap_or_default();
        seen.sort_unstable();
        let numbers: Vec<u64> = seen.iter().map(|(count, _)| *count).collect();
        if numbers != (1..=expected.count).collect::<Vec<_>>() {
            return Err(format!("key {key}: counts {numbers:?}, expected 1..={}", expected.count));
        }
        if seen.last().map(|(_, sum)| *sum) != Some(expected.sum) {
            return Err(format!("key {key}: final sum {:?}, expected {}", seen.last(), expected.sum));
        }
    }
    if counts.is_empty() {
        Ok(())
    } else {
        Err(format!("foreign keys: {:?}", counts.keys().take(4).collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(id: u64, key: u64) -> Record {
        Record { id, key, value: 5, time: 0 }
    }

    fn total(key: u64, count: u64) -> Row {
        Row::Total { key, count, sum: 5 * count }
    }

    #[test]
    fn a_lost_and_a_doubled_event_are_both_found() {
        let input = [record(1, 1), record(2, 1)];
        let row = |id| Row::Event { id };
        assert!(check_events(&input, &[row(1), row(2)]).is_ok());
        assert!(check_events(&input, &[row(1)]).is_err());
        assert!(check_events(&input, &[row(1), row(2), row(2)]).is_err());
        assert!(check_events(&input, &[row(1), row(3)]).is_err());
    }

    #[test]
    fn totals_must_count_from_one_without_gap_or_double() {
        let input = [record(1, 7), record(2, 7)];
        let timer = Row::Timer { key: 7, at: 10 };
        assert!(check_totals(&input, &[total(7, 1), total(7, 2), timer.clone()], 10).is_ok());
        assert!(check_totals(&input, &[total(7, 1), total(7, 1), timer.clone()], 10).is_err());
        assert!(check_totals(&input, &[total(7, 2), timer.clone()], 10).is_err());
        assert!(check_totals(&input, &[total(7, 1), total(7, 2)], 10).is_err());
        assert!(check_totals(&input, &[total(7, 1), total(7, 2), timer.clone(), timer], 10).is_err());
    }
}
