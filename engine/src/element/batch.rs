//! A batch of records, as a struct of arrays.
//!
//! Owns: values and, only where the stream has them, event timestamps. Does not own: its size limit (the writer of a batch keeps it).
//! Runs on: slot threads; moved, never shared.

use crate::element::EventTime;

/// Records in order. `timestamps` is empty, or as long as `values`.
#[derive(Clone, Debug)]
pub struct Batch<T> {
    /// The records.
    pub values: Vec<T>,
    /// Their event times; empty where the stream has none.
    pub timestamps: Vec<EventTime>,
}

impl<T> Default for Batch<T> {
    fn default() -> Self {
        Self { values: Vec::new(), timestamps: Vec::new() }
    }
}

impl<T> Batch<T> {
    /// An empty batch with room for `records`.
    pub fn with_capacity(records: usize) -> Self {
        Self { values: Vec::with_capacity(records), timestamps: Vec::new() }
    }

    /// Records without event time.
    pub fn of(values: Vec<T>) -> Self {
        Self { values, timestamps: Vec::new() }
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// Whether it holds no record.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    /// Adds one record. A stream either has event times for all of a batch or for none.
    #[inline]
    pub fn push(&mut self, value: T, time: Option<EventTime>) {
        if let Some(time) = time {
            debug_assert_eq!(self.values.len(), self.timestamps.len(), "a batch has all event times or none");
            self.timestamps.push(time);
        }
        self.values.push(value);
    }

    /// The event time of record `index`.
    #[inline]
    pub fn time(&self, index: usize) -> Option<EventTime> {
        self.timestamps.get(index).copied()
    }

    /// Cuts off what lies behind the first `records`, keeping those here.
    pub fn split_off(&mut self, records: usize) -> Self {
        let values = self.values.split_off(records);
        let timestamps =
            if self.timestamps.is_empty() { Vec::new() } else { self.timestamps.split_off(records) };
        Self { values, timestamps }
    }
}

impl<T> FromIterator<T> for Batch<T> {
    fn from_iter<I: IntoIterator<Item = T>>(values: I) -> Self {
        Self::of(values.into_iter().collect())
    }
}
