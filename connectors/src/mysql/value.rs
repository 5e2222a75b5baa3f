//! What a column can hold.
//!
//! Owns: the Rust types that fit a column, and the kind of column each of them wants. Does not own: columns, nor what a table really
//! has (see [`super::table_check`]). Runs on: the I/O side.

use std::fmt;

use mysql_async::Value;

use super::civil::{Date, DateTime};

/// The kind of a column, as its values want it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColumnKind {
    /// A signed whole number.
    Signed,
    /// An unsigned whole number.
    Unsigned,
    /// A 64-bit float.
    Double,
    /// A decimal number.
    Decimal,
    /// Text.
    Text,
    /// Bytes.
    Bytes,
    /// Date and time of day with microseconds, UTC.
    DateTime,
    /// A date.
    Date,
}

impl ColumnKind {
    /// Whether values can be added.
    pub fn is_number(self) -> bool {
        matches!(self, Self::Signed | Self::Unsigned | Self::Double | Self::Decimal)
    }

    /// The column type that holds every such value.
    pub fn widest(self) -> &'static str {
        match self {
            Self::Signed => "bigint",
            Self::Unsigned => "bigint unsigned",
            Self::Double => "double",
            Self::Decimal => "decimal(38,10)",
            Self::Text => "text",
            Self::Bytes => "blob",
            Self::DateTime => "datetime(6)",
            Self::Date => "date",
        }
    }
}

impl fmt::Display for ColumnKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Signed => "a signed number",
            Self::Unsigned => "an unsigned number",
            Self::Double => "a float",
            Self::Decimal => "a decimal number",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::DateTime => "a date with time",
            Self::Date => "a date",
        })
    }
}

/// A value that no column can hold.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum ValueError {
    /// MySQL has neither NaN nor infinities.
    #[error("{value} is no number that MySQL stores; use an Option for a missing value")]
    NotFinite {
        /// The number.
        value: f64,
    },
    /// A date outside the years 1 to 9999.
    #[error("the date is outside the years 1 to 9999, which MySQL stores")]
    DateRange,
}

/// A decimal number: `unscaled` × 10^−`scale`.
///
/// ```
/// # use tidegate_connectors::mysql::Decimal;
/// assert_eq!(Decimal { unscaled: -1_05, scale: 2 }.to_string(), "-1.05");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Decimal {
    /// The digits.
    pub unscaled: i128,
    /// How many of them stand behind the point.
    pub scale: u8,
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, digits) =
            (if self.unscaled < 0 { "-" } else { "" }, self.unscaled.unsigned_abs().to_string());
        let scale = usize::from(self.scale);
        if scale == 0 {
            return write!(f, "{sign}{digits}");
        }
        let digits = format!("{digits:0>width$}", width = scale + 1);
        let (whole, fraction) = digits.split_at(digits.len() - scale);
        write!(f, "{sign}{whole}.{fraction}")
    }
}

/// A Rust value that fits a column.
pub trait IntoMysqlValue {
    /// The column it wants.
    const KIND: ColumnKind;
    /// Whether it may be NULL.
    const OPTIONAL: bool = false;
    /// The value as the client sends it.
    ///
    /// # Errors
    /// [`ValueError`] if no column can hold it.
    fn into_mysql_value(self) -> Result<Value, ValueError>;
}

macro_rules! fits {
    ($kind:ident, $variant:ident($wide:ty): $($number:ty),*) => {$(
        impl IntoMysqlValue for $number {
            const KIND: ColumnKind = ColumnKind::$kind;
            fn into_mysql_value(self) -> Result<Value, ValueError> {
                Ok(Value::$variant(<$wide>::from(self)))
            }
        }
    )*};
}

fits!(Signed, Int(i64): i8, i16, i32, i64, bool);
fits!(Unsigned, UInt(u64): u8, u16, u32, u64);

impl IntoMysqlValue for f64 {
    const KIND: ColumnKind = ColumnKind::Double;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        if self.is_finite() { Ok(Value::Double(self)) } else { Err(ValueError::NotFinite { value: self }) }
    }
}

impl IntoMysqlValue for f32 {
    const KIND: ColumnKind = ColumnKind::Double;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        f64::from(self).into_mysql_value()
    }
}

impl IntoMysqlValue for Decimal {
    const KIND: ColumnKind = ColumnKind::Decimal;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        Ok(Value::Bytes(self.to_string().into_bytes()))
    }
}

impl IntoMysqlValue for String {
    const KIND: ColumnKind = ColumnKind::Text;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        Ok(Value::Bytes(self.into_bytes()))
    }
}

impl IntoMysqlValue for &str {
    const KIND: ColumnKind = ColumnKind::Text;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        Ok(Value::Bytes(self.as_bytes().to_vec()))
    }
}

impl IntoMysqlValue for Vec<u8> {
    const KIND: ColumnKind = ColumnKind::Bytes;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        Ok(Value::Bytes(self))
    }
}

impl IntoMysqlValue for DateTime {
    const KIND: ColumnKind = ColumnKind::DateTime;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        let (civil, time) = (self.date().civil().ok_or(ValueError::DateRange)?, self.time());
        Ok(Value::Date(civil.year, civil.month, civil.day, time.hour, time.minute, time.second, time.micros))
    }
}

impl IntoMysqlValue for Date {
    const KIND: ColumnKind = ColumnKind::Date;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        let civil = self.civil().ok_or(ValueError::DateRange)?;
        Ok(Value::Date(civil.year, civil.month, civil.day, 0, 0, 0, 0))
    }
}

impl<V: IntoMysqlValue> IntoMysqlValue for Option<V> {
    const KIND: ColumnKind = V::KIND;
    const OPTIONAL: bool = true;
    fn into_mysql_value(self) -> Result<Value, ValueError> {
        self.map_or(Ok(Value::NULL), V::into_mysql_value)
    }
}

/// Bytes that a value takes on the wire, at most.
pub(crate) fn wire_bytes(value: &Value) -> usize {
    /// A length prefix, or a number, date or time.
    const FIXED: usize = 13;
    match value {
        Value::Bytes(bytes) => bytes.len() + FIXED,
        _ => FIXED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unsigned_number_keeps_its_value() {
        assert_eq!(u64::MAX.into_mysql_value(), Ok(Value::UInt(u64::MAX)));
        assert_eq!(i64::MIN.into_mysql_value(), Ok(Value::Int(i64::MIN)));
        assert_eq!(true.into_mysql_value(), Ok(Value::Int(1)));
    }

    #[test]
    fn what_mysql_cannot_store_is_refused() {
        assert!(matches!(f64::NAN.into_mysql_value(), Err(ValueError::NotFinite { .. })));
        assert!(f32::INFINITY.into_mysql_value().is_err());
        assert_eq!(Date::from_days(-800_000).into_mysql_value(), Err(ValueError::DateRange));
    }

    #[test]
    fn decimals_keep_every_digit() {
        let text = |unscaled, scale| Decimal { unscaled, scale }.to_string();
        assert_eq!((text(5, 2), text(-5, 0), text(12_345, 2)), ("0.05".into(), "-5".into(), "123.45".into()));
        let nines = 99_999_999_999_999_999_999_999_999_999_999_999_999_i128;
        assert_eq!(text(-nines, 10), "-9999999999999999999999999999.9999999999");
    }

    #[test]
    fn an_option_may_be_null() {
        assert_eq!(None::<DateTime>.into_mysql_value(), Ok(Value::NULL));
        const { assert!(<Option<i32>>::OPTIONAL && !i32::OPTIONAL) };
    }
}
