//! The result of a comparison, as a table for people and as JSON for programs.
//!
//! Owns: the figures, and when all is well.
//! Does not own: how they are counted ([`super::tally`]).
//! Runs on: the main thread of `verify` and `demo`. Pure.

use std::fmt::Write;

use serde_json::{Value, json};

use tidegate_jobs::digits::grouped;

/// How one table differs from what must stand in it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct TableVerdict {
    /// Rows that must be there: orders or users.
    pub(crate) expected: u64,
    /// Rows that are there.
    pub(crate) actual: u64,
    /// Rows minus distinct ids.
    pub(crate) duplicates: u64,
    /// Expected ids without any row.
    pub(crate) lost: u64,
    /// Rows whose id is expected and whose other columns are not.
    pub(crate) wrong: u64,
    /// Rows whose id is not expected.
    pub(crate) unexpected: u64,
    /// Sum of the absolute differences of the amounts, id by id, in cents.
    pub(crate) deviation_cents: u64,
    /// The first few single faults.
    pub(crate) faults: Vec<Fault>,
}

/// One row or id that is not as it must be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    /// What is wrong with it.
    pub(crate) kind: FaultKind,
    /// The order or user.
    pub(crate) id: i64,
}

/// What can be wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// More than one row of one id.
    Duplicate,
    /// No row.
    Lost,
    /// Another content.
    Wrong,
    /// An id that is not in the input.
    Unexpected,
}

impl FaultKind {
    /// As it is printed.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Duplicate => "duplicate",
            Self::Lost => "lost",
            Self::Wrong => "wrong",
            Self::Unexpected => "unexpected",
        }
    }
}

impl TableVerdict {
    /// True when the table is exactly what it must be.
    pub(crate) fn ok(&self) -> bool {
        let faults = [self.duplicates, self.lost, self.wrong, self.unexpected, self.deviation_cents];
        faults.iter().all(|&count| count == 0) && self.expected == self.actual
    }

    fn to_json(&self) -> Value {
        let faults: Vec<_> =
            self.faults.iter().map(|fault| json!({"kind": fault.kind.word(), "id": fault.id})).collect();
        json!({
            "expected": self.expected,
            "actual": self.actual,
            "duplicates": self.duplicates,
            "lost": self.lost,
            "wrong": self.wrong,
            "unexpected": self.unexpected,
            "duplicate_rate": rate(self.duplicates, self.expected),
            "loss_rate": rate(self.lost, self.expected),
            "deviation_cents": self.deviation_cents,
            "ok": self.ok(),
            "first_faults": faults,
        })
    }
}

/// Room for the names of the tables; a longer one makes more.
const NAME_WIDTH_MIN: usize = 16;
/// `t_order_log` by the places in the topic; the id of a row is its place.
pub(crate) const BY_OFFSET: &str = "t_order_log by offset";
/// The bits of a place that are its offset; those above are its partition.
pub(crate) const OFFSET_BITS: u32 = 48;

/// The table that cannot hide a duplicate.
pub(crate) const ORDER_LOG: &str = "t_order_log";

/// What was compared: the four tables, or a topic, or both.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    tables: Vec<(&'static str, TableVerdict)>,
}

impl Verdict {
    /// Of these tables, shown in this order.
    pub(crate) fn of(tables: impl IntoIterator<Item = (&'static str, TableVerdict)>) -> Self {
        Self { tables: tables.into_iter().collect() }
    }

    /// Another output of the same input, below the others.
    #[cfg(feature = "rdkafka")]
    pub(crate) fn and(mut self, other: Self) -> Self {
        self.tables.extend(other.tables);
        self
    }

    /// Names and verdicts, in the order in which they are shown.
    pub(crate) fn tables(&self) -> impl Iterator<Item = (&'static str, &TableVerdict)> {
        self.tables.iter().map(|(name, table)| (*name, table))
    }

    /// The table of this name.
    pub(crate) fn table(&self, name: &str) -> Option<&TableVerdict> {
        self.tables().find(|(found, _)| *found == name).map(|(_, table)| table)
    }

    /// The one whose figures stand for all: [`ORDER_LOG`], or what there is instead.
    pub(crate) fn orders(&self) -> &TableVerdict {
        const NOTHING: &TableVerdict = &TableVerdict {
            expected: 0,
            actual: 0,
            duplicates: 0,
            lost: 0,
            wrong: 0,
            unexpected: 0,
            deviation_cents: 0,
            faults: Vec::new(),
        };
        self.table(ORDER_LOG).or_else(|| self.tables().next().map(|(_, table)| table)).unwrap_or(NOTHING)
    }

    /// True when something was compared, and all of it is exactly what it must be.
    pub(crate) fn ok(&self) -> bool {
        !self.tables.is_empty() && self.tables().all(|(_, table)| table.ok())
    }

    /// `yes` or `no`.
    pub(crate) fn yes_or_no(&self) -> &'static str {
        if self.ok() { "yes" } else { "no" }
    }

    /// One object. The figures on top are those of `t_order_log`, the table that cannot hide a duplicate, but for
    /// `deviation_cents`, `wrong` and `unexpected`, which are summed over all tables.
    pub(crate) fn to_json(&self) -> Value {
        let sum = |figure: fn(&TableVerdict) -> u64| {
            self.tables().fold(0_u64, |sum, (_, table)| sum.saturating_add(figure(table)))
        };
        let tables: serde_json::Map<_, _> =
            self.tables().map(|(name, table)| (name.to_owned(), table.to_json())).collect();
        let orders = self.orders();
        json!({
            "expected": orders.expected,
            "actual": orders.actual,
            "duplicates": orders.duplicates,
            "lost": orders.lost,
            "duplicate_rate": rate(orders.duplicates, orders.expected),
            "loss_rate": rate(orders.lost, orders.expected),
            "wrong": sum(|table| table.wrong),
            "unexpected": sum(|table| table.unexpected),
            "deviation_cents": sum(|table| table.deviation_cents),
            "ok": self.ok(),
            "tables": tables,
        })
    }

    /// The table, with a line end after each row.
    pub(crate) fn to_text(&self) -> String {
        let width = self.tables().map(|(name, _)| name.len()).max().unwrap_or(0).max(NAME_WIDTH_MIN);
        let (none, expected, actual) = ("", "expected", "actual");
        let mut text =
            format!("  {none:<width$}{expected:>10}{actual:>12}{:>13}{:>7}\n", "duplicates", "lost");
        for (name, table) in self.tables() {
            let holds_totals = name == "t_order_stat" || name == "t_user_total";
            let notes = notes(table, holds_totals);
            let [expected, actual, duplicates, lost] =
                [table.expected, table.actual, table.duplicates, table.lost].map(grouped);
            let row =
                format!("  {name:<width$}{expected:>10}{actual:>12}{duplicates:>13}{lost:>7}    {notes}");
            writeln!(text, "{}", row.trim_end()).expect("a String takes all text");
            for fault in &table.faults {
                let id = words_of(name, fault.id);
                writeln!(text, "      {} {id}", fault.kind.word()).expect("a String takes all text");
            }
        }
        text
    }
}

/// An order or a user by its number, a place in a topic by partition and offset.
fn words_of(table: &str, id: i64) -> String {
    if table != BY_OFFSET {
        return id.to_string();
    }
    format!("partition {} offset {}", id >> OFFSET_BITS, id & ((1 << OFFSET_BITS) - 1))
}

/// What stands behind the columns: always the deviation of totals, and all that is not as it must be.
fn notes(table: &TableVerdict, holds_totals: bool) -> String {
    let mut notes = Vec::new();
    if holds_totals || table.deviation_cents > 0 {
        notes.push(format!("deviation {} cents", grouped(table.deviation_cents)));
    }
    for (count, word) in [(table.wrong, "wrong"), (table.unexpected, "unexpected")] {
        if count > 0 {
            notes.push(format!("{} {word}", grouped(count)));
        }
    }
    notes.join(" · ")
}

fn rate(count: u64, expected: u64) -> f64 {
    if expected == 0 { 0.0 } else { count as f64 / expected as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clean(expected: u64) -> TableVerdict {
        TableVerdict { expected, actual: expected, ..TableVerdict::default() }
    }

    #[test]
    fn the_table_looks_as_promised() {
        let (orders, users) = (clean(69_659), clean(23_570));
        let verdict = Verdict::of([
            ("t_order_event", orders.clone()),
            ("t_order_log", orders),
            ("t_order_stat", users.clone()),
            ("t_user_total", users),
        ]);
        let expected = "                    expected      actual   duplicates   lost
  t_order_event       69,659      69,659            0      0
  t_order_log         69,659      69,659            0      0
  t_order_stat        23,570      23,570            0      0    deviation 0 cents
  t_user_total        23,570      23,570            0      0    deviation 0 cents
";
        assert_eq!(verdict.to_text(), expected);
        assert!(verdict.ok());
    }

    #[test]
    fn a_place_in_a_topic_is_named_by_partition_and_offset() {
        assert_eq!(words_of("t_order_log", 7), "7");
        assert_eq!(words_of(BY_OFFSET, (2 << OFFSET_BITS) | 41), "partition 2 offset 41");
    }

    #[test]
    fn where_nothing_was_compared_nothing_is_proven() {
        assert!(!Verdict::default().ok());
    }

    #[test]
    fn an_empty_expectation_has_no_rates_to_divide() {
        let json = clean(0).to_json();
        assert_eq!((json["duplicate_rate"].as_f64(), json["loss_rate"].as_f64()), (Some(0.0), Some(0.0)));
    }
}
