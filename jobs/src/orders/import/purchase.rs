//! One line of the purchases file, read exactly.
//!
//! Owns: the columns, and the parsing of dollars into cents without floating point.
//! Does not own: the calendar ([`super::calendar`]), nor which line it is.
//! Runs on: the main thread of `orders import`. Pure.

use super::calendar::midnight_ms;
use crate::order::{Order, PAID, Place};

/// What is wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BrokenPurchase {
    /// It has too few or too many columns.
    #[error("it has {found} columns; four are expected: customer id, date, number of CDs, dollar value")]
    Columns {
        /// How many it has.
        found: usize,
    },
    /// The first column.
    #[error("the customer id {text:?} is not a whole number")]
    Customer {
        /// What stands there.
        text: String,
    },
    /// The second column.
    #[error("the date {text:?} is no day of the calendar (eight digits: year, month, day)")]
    Date {
        /// What stands there.
        text: String,
    },
    /// The fourth column.
    #[error("the value {text:?} is not a number of dollars with at most two decimals")]
    Dollars {
        /// What stands there.
        text: String,
    },
}

/// Reads one line; the number of CDs is not used.
///
/// # Errors
/// [`BrokenPurchase`] names the first column that is wrong.
pub(crate) fn parse_purchase(order_id: u64, line: &str) -> Result<Order, BrokenPurchase> {
    let columns: Vec<&str> = line.split_ascii_whitespace().collect();
    let &[customer, date, _compact_discs, dollars] = columns.as_slice() else {
        return Err(BrokenPurchase::Columns { found: columns.len() });
    };
    let user_id = whole(customer).ok_or_else(|| BrokenPurchase::Customer { text: customer.into() })?;
    let event_time_ms = date_ms(date).ok_or_else(|| BrokenPurchase::Date { text: date.into() })?;
    let amount_cents = cents(dollars).ok_or_else(|| BrokenPurchase::Dollars { text: dollars.into() })?;
    Ok(Order {
        order_id,
        user_id,
        amount_cents,
        status: PAID.to_owned(),
        event_time_ms,
        place: Place::default(),
    })
}

fn date_ms(text: &str) -> Option<i64> {
    if text.len() != 8 {
        return None;
    }
    let number = whole(text)?;
    midnight_ms(i64::try_from(number / 10_000).ok()?, (number / 100) % 100, number % 100)
}

/// `11.77` as 1177. `11.7` is 1170 and `11` is 1100; three decimals are refused, since they would have to be rounded.
fn cents(text: &str) -> Option<i64> {
    let (dollars, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let hundredths = match decimals.len() {
        1 => whole(decimals)? * 10,
        2 => whole(decimals)?,
        _ => return None,
    };
    let cents = whole(dollars)?.checked_mul(100)?.checked_add(hundredths)?;
    i64::try_from(cents).ok()
}

/// Digits only: no sign, no blank.
fn whole(text: &str) -> Option<u64> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_exactly() {
        let cases =
            [("11.77", 1_177), ("0.29", 29), ("0.00", 0), ("1286.01", 128_601), ("7", 700), ("7.5", 750)];
        for (text, expected) in cases {
            assert_eq!(cents(text), Some(expected), "{text}");
        }
        for text in ["", ".", "1.", ".5", "1.005", "-1.00", "1,00", "1e3", "1.+5", "99999999999999999999.00"]
        {
            assert_eq!(cents(text), None, "{text}");
        }
    }

    #[test]
    fn the_wrong_column_is_named() {
        let broken = |line| parse_purchase(1, line).unwrap_err();
        assert_eq!(broken("00001 19970101 1"), BrokenPurchase::Columns { found: 3 });
        assert_eq!(broken(""), BrokenPurchase::Columns { found: 0 });
        assert_eq!(broken("x1 19970101 1 1.00"), BrokenPurchase::Customer { text: "x1".into() });
        assert_eq!(broken("00001 19970230 1 1.00"), BrokenPurchase::Date { text: "19970230".into() });
        assert_eq!(broken("00001 1997011 1 1.00"), BrokenPurchase::Date { text: "1997011".into() });
        assert_eq!(broken("00001 19970101 1 1.0.0"), BrokenPurchase::Dollars { text: "1.0.0".into() });
    }
}
