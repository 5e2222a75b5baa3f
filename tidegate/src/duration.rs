//! Spans of time as a job and its flags say them: `seconds(5)`, `200ms`, `10s`.
//!
//! Owns: the words. Does not own: clocks.
//! Runs on: anywhere. Pure.

use std::time::Duration;

/// A span in seconds.
pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A span in milliseconds.
pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// What was given is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not a duration: write a whole number above 0 and a unit, as in 200ms, 10s or 2min")]
pub struct DurationError {
    /// What was given.
    pub text: String,
}

/// A whole number above 0 with its unit: `ms`, `s` or `min`.
///
/// # Errors
/// Anything else.
pub fn parse_duration(text: &str) -> Result<Duration, DurationError> {
    let wrong = || DurationError { text: text.into() };
    let unit_at = text.find(|letter: char| !letter.is_ascii_digit()).ok_or_else(wrong)?;
    let (number, unit) = text.split_at(unit_at);
    let unit_ms: u64 = match unit {
        "ms" => 1,
        "s" => 1_000,
        "min" => 60_000,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let duration_ms = number.checked_mul(unit_ms).filter(|&ms| ms > 0).ok_or_else(wrong)?;
    Ok(Duration::from_millis(duration_ms))
}

/// A span as [`parse_duration`] reads it: in the largest unit that leaves no rest.
pub(crate) fn in_words(span: Duration) -> String {
    let ms = span.as_millis();
    match ms {
        _ if ms > 0 && ms.is_multiple_of(60_000) => format!("{}min", ms / 60_000),
        _ if ms > 0 && ms.is_multiple_of(1_000) => format!("{}s", ms / 1_000),
        _ => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit_and_are_above_zero() {
        assert_eq!(parse_duration("200ms"), Ok(millis(200)));
        assert_eq!(parse_duration("10s"), Ok(seconds(10)));
        assert_eq!(parse_duration("2min"), Ok(seconds(120)));
        for text in ["", "200", "0s", "1.5s", "ms", "2 s", "99999999999999999999s", "18446744073709551615min"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
        for text in ["1min", "90s", "1500ms"] {
            assert_eq!(in_words(parse_duration(text).unwrap()), text);
        }
    }
}
