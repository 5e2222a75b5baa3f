//! The columns of a target table, each with the function that takes its value from a record: one piece for every database.
//!
//! Owns: names, kinds, getters, rows made of records. Does not own: what a database's columns hold (see [`ColumnValues`]), the table's
//! name and key. Runs on: built on the author's thread, called on the I/O side.

use std::fmt;
use std::sync::Arc;

/// What the columns of one kind of database hold.
pub trait ColumnValues: 'static {
    /// A value as its client sends it.
    type Value: 'static;
    /// What a column is.
    type Kind: Clone + fmt::Debug + PartialEq + Eq + 'static;
    /// Why no column holds a value.
    type Unfit: 'static;
    /// The connector's error.
    type Error;

    /// The error of a row whose value no column holds.
    fn error(at: UnfitPlace<'_>, source: Self::Unfit) -> Self::Error;
}

/// Where a value stands that no column holds.
#[derive(Clone, Copy, Debug)]
pub struct UnfitPlace<'a> {
    /// The table.
    pub table: &'a str,
    /// The column.
    pub column: &'a str,
    /// The row, from 1, among those this subtask wrote in this attempt.
    pub row: u64,
}

/// A Rust value that fits a column of `D`.
pub trait IntoColumn<D: ColumnValues> {
    /// The column it wants.
    const KIND: D::Kind;
    /// Whether it may be NULL.
    const OPTIONAL: bool;
    /// The value as the client sends it.
    ///
    /// # Errors
    /// No column holds it.
    fn into_column(self) -> Result<D::Value, D::Unfit>;
}

/// One column of a table.
#[cfg_attr(not(feature = "mysql"), allow(unreachable_pub, reason = "only the MySQL sink hands it on"))]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnSpec<K> {
    /// Its name.
    pub name: String,
    /// What its values are.
    pub kind: K,
    /// Whether a value may be NULL.
    pub optional: bool,
}

type Getter<T, D> =
    Arc<dyn Fn(&T) -> Result<<D as ColumnValues>::Value, <D as ColumnValues>::Unfit> + Send + Sync>;

/// Columns in order. A function `fn(Columns<T>) -> Columns<T>` can be given to the `columns` of a sink, so that several sinks and
/// programs share one list.
pub struct Columns<T, D: ColumnValues> {
    pub(crate) specs: Vec<ColumnSpec<D::Kind>>,
    getters: Vec<Getter<T, D>>,
}

impl<T, D: ColumnValues> Columns<T, D> {
    /// No column.
    pub fn new() -> Self {
        Self { specs: Vec::new(), getters: Vec::new() }
    }

    /// Adds a column whose kind is that of the function's result; an `Option` makes it one that may be NULL.
    #[must_use]
    pub fn column<V: IntoColumn<D>>(
        mut self,
        name: &str,
        value: impl Fn(&T) -> V + Send + Sync + 'static,
    ) -> Self {
        self.specs.push(ColumnSpec { name: name.to_owned(), kind: V::KIND, optional: V::OPTIONAL });
        self.getters.push(Arc::new(move |record| value(record).into_column()));
        self
    }

    /// Adds a text column whose value is borrowed from the record.
    #[must_use]
    pub fn text(self, name: &str, value: impl Fn(&T) -> &str + Send + Sync + 'static) -> Self
    where
        String: IntoColumn<D>,
    {
        self.column(name, move |record| value(record).to_owned())
    }

    /// Appends a record's values to `row`.
    ///
    /// # Errors
    /// The column whose value does not fit, by index.
    pub(crate) fn encode(&self, record: &T, row: &mut Vec<D::Value>) -> Result<(), (usize, D::Unfit)> {
        for (index, getter) in self.getters.iter().enumerate() {
            row.push(getter(record).map_err(|error| (index, error))?);
        }
        Ok(())
    }
}

impl<T, D: ColumnValues> Default for Columns<T, D> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T, D: ColumnValues> Clone for Columns<T, D> {
    fn clone(&self) -> Self {
        Self { specs: self.specs.clone(), getters: self.getters.clone() }
    }
}

impl<T, D: ColumnValues> fmt::Debug for Columns<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.specs).finish()
    }
}

/// Makes rows of records and says which one did not fit.
pub(crate) struct RowEncoder<T, D: ColumnValues> {
    columns: Columns<T, D>,
    table: String,
    rows: u64,
}

impl<T, D: ColumnValues> RowEncoder<T, D> {
    pub(crate) fn new(columns: Columns<T, D>, table: &str) -> Self {
        Self { columns, table: table.to_owned(), rows: 0 }
    }

    /// Rows that were made so far.
    #[cfg(feature = "mysql")]
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    pub(crate) fn encode(&mut self, record: &T, values: &mut Vec<D::Value>) -> Result<(), D::Error> {
        self.rows += 1;
        self.columns.encode(record, values).map_err(|(column, source)| {
            let column = &self.columns.specs[column].name;
            D::error(UnfitPlace { table: &self.table, column, row: self.rows }, source)
        })
    }
}

/// What the builders of table sinks have in common: columns, and the mode that needs no key.
macro_rules! column_methods {
    ($value:path) => {
        /// Adds a column whose kind is that of the function's result; an `Option` makes it one that may be NULL.
        #[must_use]
        pub fn column<V: $value>(self, name: &str, value: impl Fn(&T) -> V + Send + Sync + 'static) -> Self {
            self.columns(|columns| columns.column(name, value))
        }

        /// Adds a text column whose value is borrowed from the record.
        #[must_use]
        pub fn text(self, name: &str, value: impl Fn(&T) -> &str + Send + Sync + 'static) -> Self {
            self.columns(|columns| columns.text(name, value))
        }

        /// Adds the columns that a function adds.
        #[must_use]
        pub fn columns(mut self, add: impl FnOnce(Columns<T>) -> Columns<T>) -> Self {
            self.columns = add(self.columns);
            self.spec.columns.clone_from(&self.columns.specs);
            self
        }

        /// Every row is a new one; a key that comes twice fails the job. The default.
        #[must_use]
        pub fn append(mut self) -> Self {
            self.spec.mode = MergeMode::Append;
            self
        }
    };
}
pub(crate) use column_methods;
