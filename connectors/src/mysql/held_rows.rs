//! The rows that a writer in two phases holds back until a statement is worth its while, and whether it still may write.
//!
//! Between taking rows out and the server's answer the writer counts as broken: if the statement fails, or its future is dropped, the
//! rows are no longer held, and nothing must be prepared without them.
//!
//! Owns: the rows, that mark. Does not own: the transaction they go into. Runs on: the I/O side.

use std::time::Duration;

use tidegate_engine::clock::{Moment, SharedClock};

use super::columns::{Columns, RowEncoder};
use super::insert::Rows;
use super::sink::Target;
use super::{Attempted, MysqlError};

/// See the module.
pub(crate) struct HeldRows<T> {
    encoder: RowEncoder<T>,
    rows: Rows,
    /// A row waits so long at most.
    interval: Option<Duration>,
    clock: SharedClock,
    due: Option<Moment>,
    broken: bool,
    /// What the writer does, for the error of a broken one.
    at: Attempted,
}

impl<T> HeldRows<T> {
    /// None yet; `doing`: "writing rows into the table t".
    pub(crate) fn new(target: &Target, columns: Columns<T>, clock: SharedClock, doing: String) -> Self {
        Self {
            encoder: RowEncoder::new(columns, &target.spec.name),
            rows: Rows::of_width(target.spec.columns.len(), target.batches.rows),
            interval: target.batches.interval,
            clock,
            due: None,
            broken: false,
            at: Attempted { doing, server: target.url.place() },
        }
    }

    /// Refuses whatever comes after a failure.
    pub(crate) fn refuse_broken(&self) -> Result<(), MysqlError> {
        if self.broken { Err(MysqlError::Broken { at: self.at.clone() }) } else { Ok(()) }
    }

    /// Holds the row of a record; whether there are enough for a statement.
    pub(crate) fn hold(&mut self, record: &T) -> Result<bool, MysqlError> {
        self.encoder.encode(record, &mut self.rows.values)?;
        if let (Some(interval), None) = (self.interval, self.due) {
            self.due = Some(self.clock.now() + interval);
        }
        Ok(self.rows.fill_a_statement())
    }

    /// Takes out what is held, if there is anything; the writer is broken until [`done`](Self::done).
    pub(crate) fn take(&mut self) -> Option<Rows> {
        if self.rows.len() == 0 {
            return None;
        }
        self.begin();
        self.due = None;
        Some(self.rows.take())
    }

    /// When the first of them has waited long enough.
    pub(crate) fn due(&self) -> Option<Moment> {
        self.due
    }

    /// What the writer does, for an error.
    pub(crate) fn at(&self) -> &Attempted {
        &self.at
    }

    /// From here on, until [`done`](Self::done), a failure breaks the writer.
    pub(crate) fn begin(&mut self) {
        self.broken = true;
    }

    /// The server has answered.
    pub(crate) fn done(&mut self) {
        self.broken = false;
    }

    /// Throws away what is held; the writer begins anew.
    pub(crate) fn discard(&mut self) {
        drop(self.rows.take());
        self.due = None;
        self.broken = false;
    }
}
