//! The columns of a MySQL table.
//!
//! Owns: what [`crate::columns`] has to know of this database. Does not own: columns and rows themselves. Runs on: plain data.

use mysql_async::Value;

use super::{ColumnKind, IntoMysqlValue, MysqlError, ValueError};
use crate::columns::{ColumnValues, IntoColumn, UnfitPlace};

/// Columns in order. A function `fn(Columns<T>) -> Columns<T>` can be given to [`super::MysqlSink::columns`], so that several sinks
/// and programs share one list.
pub type Columns<T> = crate::columns::Columns<T, MysqlValues>;
/// One column.
pub type ColumnSpec = crate::columns::ColumnSpec<ColumnKind>;
pub(crate) type RowEncoder<T> = crate::columns::RowEncoder<T, MysqlValues>;

/// What columns of MySQL hold.
#[derive(Debug)]
pub enum MysqlValues {}

impl ColumnValues for MysqlValues {
    type Value = Value;
    type Kind = ColumnKind;
    type Unfit = ValueError;
    type Error = MysqlError;

    fn error(at: UnfitPlace<'_>, source: ValueError) -> MysqlError {
        MysqlError::Value { table: at.table.to_owned(), column: at.column.to_owned(), row: at.row, source }
    }
}

impl<V: IntoMysqlValue> IntoColumn<MysqlValues> for V {
    const KIND: ColumnKind = V::KIND;
    const OPTIONAL: bool = V::OPTIONAL;

    fn into_column(self) -> Result<Value, ValueError> {
        self.into_mysql_value()
    }
}
