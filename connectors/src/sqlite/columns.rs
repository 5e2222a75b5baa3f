//! The columns of a SQLite table.
//!
//! Owns: what [`crate::columns`] has to know of this database. Does not own: columns and rows themselves. Runs on: plain data.

use rusqlite::types::Value;

use super::{ColumnType, IntoSqlValue, SqliteError, ValueError};
use crate::columns::{ColumnValues, IntoColumn, UnfitPlace};

/// Columns in order. A function `fn(Columns<T>) -> Columns<T>` can be given to [`super::SqliteSink::columns`], so that several
/// sinks and programs share one list.
pub type Columns<T> = crate::columns::Columns<T, SqliteValues>;
pub(crate) type ColumnSpec = crate::columns::ColumnSpec<ColumnType>;
pub(crate) type RowEncoder<T> = crate::columns::RowEncoder<T, SqliteValues>;

/// What columns of SQLite hold.
#[derive(Debug)]
pub enum SqliteValues {}

impl ColumnValues for SqliteValues {
    type Value = Value;
    type Kind = ColumnType;
    type Unfit = ValueError;
    type Error = SqliteError;

    fn error(at: UnfitPlace<'_>, source: ValueError) -> SqliteError {
        SqliteError::Value { table: at.table.to_owned(), column: at.column.to_owned(), row: at.row, source }
    }
}

impl<V: IntoSqlValue> IntoColumn<SqliteValues> for V {
    const KIND: ColumnType = V::TYPE;
    const OPTIONAL: bool = V::OPTIONAL;

    fn into_column(self) -> Result<Value, ValueError> {
        self.into_sql_value()
    }
}
