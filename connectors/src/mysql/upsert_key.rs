//! A row's key as bytes that sort as the key does.
//!
//! Rows are written in the order of their keys, so that writers that meet on some rows lock them in the same order. Layout: one part per
//! key column, in the order of the key:
//!
//! | value | bytes |
//! |---|---|
//! | whole number | `1`, then the number + 2^63 as 16 bytes, big-endian: signed and unsigned are one order |
//! | text, bytes, decimal | `2`, then the bytes with `0` written as `0 255`, then `0 0` |
//! | date, date with time | `3`, then year, month, day, hour, minute, second, microsecond, big-endian |
//! | float, duration | `4` or `5` and its bits; no sink has such a key |
//! | NULL | `0` |
//!
//! Owns: the encoding, also for versions. Does not own: which columns are the key. Runs on: the I/O side; pure.

use mysql_async::Value;

use super::ColumnKind;

/// Added to a whole number: nothing is negative then.
const WHOLE_OFFSET: i128 = 1 << 63;

/// The key of `row` whose columns stand at `columns`.
pub(crate) fn key_of<'a>(parts: impl Iterator<Item = (&'a Value, ColumnKind)>) -> Vec<u8> {
    let mut key = Vec::new();
    for (value, kind) in parts {
        push(&mut key, value, kind);
    }
    key
}

fn push(key: &mut Vec<u8>, value: &Value, kind: ColumnKind) {
    match value {
        Value::NULL => key.push(0),
        Value::Int(number) => push_whole(key, i128::from(*number)),
        Value::UInt(number) => push_whole(key, i128::from(*number)),
        Value::Bytes(bytes) if kind == ColumnKind::Decimal => push_bytes(key, canonical_decimal(bytes)),
        Value::Bytes(bytes) => push_bytes(key, bytes),
        Value::Date(year, month, day, hour, minute, second, micros) => {
            key.push(3);
            key.extend(year.to_be_bytes());
            key.extend([*month, *day, *hour, *minute, *second]);
            key.extend(micros.to_be_bytes());
        }
        Value::Float(number) => push_bits(key, 4, u64::from(number.to_bits())),
        Value::Double(number) => push_bits(key, 4, number.to_bits()),
        Value::Time(negative, days, hours, minutes, seconds, micros) => {
            key.extend([5, u8::from(*negative)]);
            key.extend(days.to_be_bytes());
            key.extend([*hours, *minutes, *seconds]);
            key.extend(micros.to_be_bytes());
        }
    }
}

fn push_whole(key: &mut Vec<u8>, number: i128) {
    key.push(1);
    key.extend((number + WHOLE_OFFSET).to_be_bytes());
}

fn push_bits(key: &mut Vec<u8>, tag: u8, bits: u64) {
    key.push(tag);
    key.extend(bits.to_be_bytes());
}

fn push_bytes(key: &mut Vec<u8>, bytes: &[u8]) {
    key.push(2);
    for byte in bytes {
        key.push(*byte);
        if *byte == 0 {
            key.push(255);
        }
    }
    key.extend([0, 0]);
}

/// `1.50` and `1.5` are one number.
fn canonical_decimal(text: &[u8]) -> &[u8] {
    if !text.contains(&b'.') {
        return text;
    }
    let significant = text.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1);
    let trimmed = &text[..significant];
    trimmed.strip_suffix(b".").unwrap_or(trimmed)
}

/// Whether version `new` is older than `old`; one that is equal or missing is not.
pub(crate) fn is_older(new: &Value, old: &Value, kind: ColumnKind) -> bool {
    match (new, old) {
        (Value::Double(new), Value::Double(old)) => new < old,
        (Value::NULL, _) | (_, Value::NULL) => false,
        (Value::Bytes(new), Value::Bytes(old)) if kind == ColumnKind::Decimal => decimal_less(new, old),
        (new, old) => key_of([(new, kind)].into_iter()) < key_of([(old, kind)].into_iter()),
    }
}

/// Compares two decimal numbers in text, exactly.
fn decimal_less(a: &[u8], b: &[u8]) -> bool {
    let parts = |text: &[u8]| {
        let (negative, digits) = text.strip_prefix(b"-").map_or((false, text), |digits| (true, digits));
        let point = digits.iter().position(|byte| *byte == b'.').unwrap_or(digits.len());
        let (whole, fraction) = digits.split_at(point);
        let zeros = whole.iter().take_while(|byte| **byte == b'0').count();
        let fraction = fraction.strip_prefix(b".").unwrap_or(fraction).to_vec();
        (negative, whole[zeros..].to_vec(), fraction)
    };
    let (a, b) = (parts(canonical_decimal(a)), parts(canonical_decimal(b)));
    let size = |number: &(bool, Vec<u8>, Vec<u8>)| (number.1.len(), number.1.clone(), number.2.clone());
    match (a.0, b.0) {
        (false, false) => size(&a) < size(&b),
        (true, true) => size(&a) > size(&b),
        (negative, _) => negative,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn whole(value: Value) -> Vec<u8> {
        key_of([(&value, ColumnKind::Signed)].into_iter())
    }

    fn text(parts: &[&str]) -> Vec<u8> {
        let values: Vec<Value> = parts.iter().map(|part| Value::Bytes(part.as_bytes().to_vec())).collect();
        key_of(values.iter().map(|value| (value, ColumnKind::Text)))
    }

    #[test]
    fn signed_and_unsigned_numbers_are_one_order() {
        let order =
            [Value::Int(i64::MIN), Value::Int(-1), Value::UInt(0), Value::Int(7), Value::UInt(u64::MAX)];
        let keys: Vec<Vec<u8>> = order.into_iter().map(whole).collect();
        assert!(keys.is_sorted());
        assert_eq!(whole(Value::Int(7)), whole(Value::UInt(7)), "one key, whatever its Rust type");
    }

    #[test]
    fn parts_never_run_into_each_other() {
        assert_ne!(text(&["ab", "c"]), text(&["a", "bc"]));
        assert_ne!(text(&["a\0", "b"]), text(&["a", "\0b"]));
        assert!(text(&["a", "z"]) < text(&["ab", "a"]), "the first part counts first");
    }

    #[test]
    fn a_decimal_is_one_key_however_it_is_written() {
        let key = |text: &str| {
            let value = Value::Bytes(text.as_bytes().to_vec());
            key_of([(&value, ColumnKind::Decimal)].into_iter())
        };
        assert_eq!(key("1.50"), key("1.5"));
        assert_eq!(key("100.00"), key("100"));
        assert_ne!(key("100"), key("1"));
    }

    #[test]
    fn versions_are_compared_by_value() {
        let decimal = |text: &str| Value::Bytes(text.as_bytes().to_vec());
        let older = |a: &str, b: &str| is_older(&decimal(a), &decimal(b), ColumnKind::Decimal);
        assert!(older("9.9", "10.0") && older("-10", "-9.5") && older("-1", "0") && older("1.05", "1.5"));
        assert!(!older("1.50", "1.5") && !older("10", "9") && !older("0", "-1"));
        assert!(is_older(&Value::Int(3), &Value::UInt(5), ColumnKind::Unsigned));
        assert!(!is_older(&Value::Int(5), &Value::UInt(5), ColumnKind::Unsigned));
        assert!(!is_older(&Value::NULL, &Value::UInt(5), ColumnKind::Unsigned));
    }

    proptest! {
        #[test]
        fn keys_are_equal_only_where_values_are(a: (Vec<u8>, Vec<u8>), b: (Vec<u8>, Vec<u8>)) {
            let key = |(first, second): &(Vec<u8>, Vec<u8>)| {
                let values = [Value::Bytes(first.clone()), Value::Bytes(second.clone())];
                key_of(values.iter().map(|value| (value, ColumnKind::Bytes)))
            };
            prop_assert_eq!(key(&a).cmp(&key(&b)), a.cmp(&b));
        }
    }
}
