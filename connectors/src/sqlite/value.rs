//! What a column can hold.
//!
//! Owns: the Rust types that fit a column, and the column type each of them makes. Does not own: columns. Runs on: the I/O side.

use std::fmt;

use rusqlite::types::Value;

/// Type of a column, as SQLite's strict tables know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnType {
    /// A signed 64-bit number, or a bool as 0 or 1.
    Integer,
    /// A 64-bit float.
    Real,
    /// Text.
    Text,
    /// Bytes.
    Blob,
}

impl ColumnType {
    /// Whether values can be added.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Integer | Self::Real)
    }
}

impl fmt::Display for ColumnType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Integer => "INTEGER",
            Self::Real => "REAL",
            Self::Text => "TEXT",
            Self::Blob => "BLOB",
        })
    }
}

/// A value that does not fit its column.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// An unsigned number above what SQLite's signed 64 bits hold.
    #[error("{value} is above {}, the largest number a column holds", i64::MAX)]
    TooLarge {
        /// The number.
        value: u64,
    },
    /// SQLite stores not-a-number as NULL.
    #[error("not a number (NaN) cannot be stored; use an Option for a missing value")]
    NotANumber,
}

/// A Rust value that fits a column.
pub trait IntoSqlValue {
    /// The column it makes.
    const TYPE: ColumnType;
    /// Whether the column may be NULL.
    const OPTIONAL: bool = false;
    /// The value as SQLite takes it.
    ///
    /// # Errors
    /// [`ValueError`] if it does not fit.
    fn into_sql_value(self) -> Result<Value, ValueError>;
}

macro_rules! fits_integer {
    ($($number:ty),*) => {$(
        impl IntoSqlValue for $number {
            const TYPE: ColumnType = ColumnType::Integer;
            fn into_sql_value(self) -> Result<Value, ValueError> {
                Ok(Value::Integer(i64::from(self)))
            }
        }
    )*};
}

fits_integer!(i8, i16, i32, i64, u8, u16, u32, bool);

impl IntoSqlValue for u64 {
    const TYPE: ColumnType = ColumnType::Integer;
    fn into_sql_value(self) -> Result<Value, ValueError> {
        i64::try_from(self).map(Value::Integer).map_err(|_| ValueError::TooLarge { value: self })
    }
}

impl IntoSqlValue for f64 {
    const TYPE: ColumnType = ColumnType::Real;
    fn into_sql_value(self) -> Result<Value, ValueError> {
        if self.is_nan() { Err(ValueError::NotANumber) } else { Ok(Value::Real(self)) }
    }
}

impl IntoSqlValue for f32 {
    const TYPE: ColumnType = ColumnType::Real;
    fn into_sql_value(self) -> Result<Value, ValueError> {
        f64::from(self).into_sql_value()
    }
}

impl IntoSqlValue for String {
    const TYPE: ColumnType = ColumnType::Text;
    fn into_sql_value(self) -> Result<Value, ValueError> {
        Ok(Value::Text(self))
    }
}

impl IntoSqlValue for &str {
    const TYPE: ColumnType = ColumnType::Text;
    fn into_sql_value(self) -> Result<Value, ValueError> {
        Ok(Value::Text(self.to_owned()))
    }
}

impl IntoSqlValue for Vec<u8> {
    const TYPE: ColumnType = ColumnType::Blob;
    fn into_sql_value(self) -> Result<Value, ValueError> {
        Ok(Value::Blob(self))
    }
}

impl<V: IntoSqlValue> IntoSqlValue for Option<V> {
    const TYPE: ColumnType = V::TYPE;
    const OPTIONAL: bool = true;
    fn into_sql_value(self) -> Result<Value, ValueError> {
        self.map_or(Ok(Value::Null), V::into_sql_value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_do_not_fit_are_refused() {
        assert_eq!(7_u64.into_sql_value(), Ok(Value::Integer(7)));
        assert_eq!(u64::MAX.into_sql_value(), Err(ValueError::TooLarge { value: u64::MAX }));
        assert_eq!(f64::NAN.into_sql_value(), Err(ValueError::NotANumber));
    }

    #[test]
    fn an_option_makes_a_column_that_may_be_null() {
        assert_eq!(None::<String>.into_sql_value(), Ok(Value::Null));
        assert_eq!(Some("x").into_sql_value(), Ok(Value::Text("x".into())));
        const { assert!(<Option<i32>>::OPTIONAL && !i32::OPTIONAL) };
        assert_eq!(<Option<bool>>::TYPE, ColumnType::Integer);
    }
}
