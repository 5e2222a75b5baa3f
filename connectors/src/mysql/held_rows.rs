//! The rows that a writer in two phases holds back until a statement is worth its while, and whether it still may write.
//!
//! Between taking rows out and the server's answer the writer counts as broken: if the statement fails, or its future is dropped, the
//! rows are no longer held, and nothing must be prepared without them.
//!
//! Owns: the rows, that mark. Does not own: the transaction they go into. Runs on: the I/O side.

use super::columns::{Columns, RowEncoder};
use super::insert::Rows;
use super::sink::Target;
use super::{Attempted, MysqlError};

/// See the module.
pub(crate) struct HeldRows<T> {
    encoder: RowEncoder<T>,
    rows: Rows,
    broken: bool,
    /// What the writer does, for the error of a broken one.
    at: Attempted,
}

impl<T> HeldRows<T> {
    /// None yet; `doing`: "writing rows into the table t".
    pub(crate) fn new(target: &Target, columns: Columns<T>, doing: String) -> Self {
        Self {
            encoder: RowEncoder::new(columns, &target.spec.name),
            rows: Rows::of_width(target.spec.columns.len()),
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
        Ok(self.rows.fill_a_statement())
    }

    /// Takes out what is held, if there is anything; the writer is broken until [`done`](Self::done).
    pub(crate) fn take(&mut self) -> Option<Rows> {
        if self.rows.len() == 0 {
            return None;
        }
        self.begin();
        Some(self.rows.take())
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
        self.broken = false;
    }
}
