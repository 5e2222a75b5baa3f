//! The columns of a target table, each with the function that takes its value from a record.
//!
//! Owns: names, types, getters. Does not own: the table's name, key and mode. Runs on: built on the author's thread, called on the I/O
//! side.

use std::fmt;
use std::sync::Arc;

use rusqlite::types::Value;

use super::table::ColumnSpec;
use super::{IntoSqlValue, ValueError};

type Getter<T> = Arc<dyn Fn(&T) -> Result<Value, ValueError> + Send + Sync>;

/// Columns in order. A function `fn(Columns<T>) -> Columns<T>` can be given to [`super::SqliteSink::columns`], so that several
/// sinks and programs share one list.
pub struct Columns<T> {
    pub(crate) specs: Vec<ColumnSpec>,
    getters: Vec<Getter<T>>,
}

impl<T> Columns<T> {
    /// No column.
    pub fn new() -> Self {
        Self { specs: Vec::new(), getters: Vec::new() }
    }

    /// Adds a column whose type is that of the function's result; an `Option` makes it one that may be NULL.
    #[must_use]
    pub fn column<V: IntoSqlValue>(
        mut self,
        name: &str,
        value: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Self {
        self.specs.push(ColumnSpec { name: name.to_owned(), kind: V::TYPE, optional: V::OPTIONAL });
        self.getters.push(Arc::new(move |record| value(record).into_sql_value()));
        self
    }

    /// Adds a text column whose value is borrowed from the record.
    #[must_use]
    pub fn text(self, name: &str, value: impl Fn(&T) -> &str + Send + Sync + 'static) -> Self {
        self.column(name, move |record| value(record).to_owned())
    }

    /// Appends a record's values to `row`.
    ///
    /// # Errors
    /// The column whose value does not fit, by index.
    pub(crate) fn encode(&self, record: &T, row: &mut Vec<Value>) -> Result<(), (usize, ValueError)> {
        for (index, getter) in self.getters.iter().enumerate() {
            row.push(getter(record).map_err(|error| (index, error))?);
        }
        Ok(())
    }
}

impl<T> Default for Columns<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for Columns<T> {
    fn clone(&self) -> Self {
        Self { specs: self.specs.clone(), getters: self.getters.clone() }
    }
}

impl<T> fmt::Debug for Columns<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.specs).finish()
    }
}
