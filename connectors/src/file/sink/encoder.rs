//! How a record becomes a line.
//!
//! Owns: the trait, JSON lines and text. Does not own: line ends (the sink adds them). Runs on: the I/O side.

use std::convert::Infallible;
use std::fmt::Display;
use std::io::Write;

use serde::Serialize;

/// Makes a line of a record.
///
/// ```
/// use std::convert::Infallible;
/// use tidegate_connectors::file::{FileSink, LineEncoder};
///
/// #[derive(Clone)]
/// struct Csv;
///
/// impl LineEncoder<(u64, i64)> for Csv {
///     type Error = Infallible;
///
///     fn extension(&self) -> &str {
///         "csv"
///     }
///
///     fn encode(&self, (user, cents): &(u64, i64), line: &mut Vec<u8>) -> Result<(), Infallible> {
///         line.extend_from_slice(format!("{user},{cents}").as_bytes());
///         Ok(())
///     }
/// }
///
/// let sink = FileSink::with_encoder("out", Csv);
/// # let _: FileSink<(u64, i64), Csv> = sink;
/// ```
pub trait LineEncoder<T>: Clone + Send + Sync + 'static {
    /// Why a record has no line.
    type Error: std::error::Error + Send + Sync + 'static;

    /// What finished files end in, without the dot: 1 to 16 letters, digits and dots.
    fn extension(&self) -> &str;

    /// Adds the record's line to `line`, without a line end; a line break inside is refused by the sink.
    ///
    /// # Errors
    /// The record has none. The job fails with it: the same record would have none after a restart either.
    fn encode(&self, record: &T, line: &mut Vec<u8>) -> Result<(), Self::Error>;
}

/// A JSON object (or any other value) on each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JsonLines;

impl<T: Serialize> LineEncoder<T> for JsonLines {
    type Error = serde_json::Error;

    fn extension(&self) -> &str {
        "jsonl"
    }

    fn encode(&self, record: &T, line: &mut Vec<u8>) -> Result<(), serde_json::Error> {
        serde_json::to_writer(line, record)
    }
}

/// What [`Display`] says of the record, on each line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextLines;

impl<T: Display> LineEncoder<T> for TextLines {
    type Error = Infallible;

    fn extension(&self) -> &str {
        "txt"
    }

    fn encode(&self, record: &T, line: &mut Vec<u8>) -> Result<(), Infallible> {
        write!(line, "{record}").expect("a Vec takes all bytes");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn json_escapes_line_breaks_and_refuses_keys_that_are_no_text() {
        let mut line = Vec::new();
        JsonLines.encode(&("a\nb", 7), &mut line).unwrap();
        assert_eq!(line, b"[\"a\\nb\",7]");
        assert!(JsonLines.encode(&BTreeMap::from([((1, 2), 3)]), &mut line).is_err());
    }

    #[test]
    fn text_is_what_display_says() {
        let mut line = b"x".to_vec();
        TextLines.encode(&-5, &mut line).unwrap();
        assert_eq!(line, b"x-5");
    }
}
