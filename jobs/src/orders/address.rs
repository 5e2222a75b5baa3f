//! Where orders come from and where they go, as the flags say it: `files:DIR`, `sqlite:FILE`.
//!
//! Owns: the forms of these flags and the words that explain them.
//! Does not own: opening anything.
//! Runs on: the main thread, while flags are read. Pure.

use std::path::PathBuf;
use std::str::FromStr;

/// What is wrong with the value of a flag.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum AddressError {
    /// Not a source.
    #[error("{text:?} is not a source: write {expected}")]
    Source {
        /// What was given.
        text: String,
        /// What would do.
        expected: &'static str,
    },
    /// Not a sink.
    #[error("{text:?} is not a sink: write {expected}")]
    Sink {
        /// What was given.
        text: String,
        /// What would do.
        expected: &'static str,
    },
}

/// `--source` of `run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceAddress {
    /// `datagen`: made-up orders.
    Datagen,
    /// `files:DIR`: a folder of JSON-lines partitions.
    Files(PathBuf),
}

impl FromStr for SourceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split_once(':') {
            None if text == "datagen" => Ok(Self::Datagen),
            Some(("files", folder)) if !folder.is_empty() => Ok(Self::Files(folder.into())),
            _ => Err(AddressError::Source { text: text.into(), expected: "datagen or files:DIR" }),
        }
    }
}

/// `--sink` of `run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SinkAddress {
    /// `blackhole`: counted and thrown away.
    Blackhole,
    /// `sqlite:FILE`: tables in one database file.
    Sqlite(PathBuf),
}

impl FromStr for SinkAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split_once(':') {
            None if text == "blackhole" => Ok(Self::Blackhole),
            Some(("sqlite", file)) if !file.is_empty() => Ok(Self::Sqlite(file.into())),
            _ => Err(AddressError::Sink { text: text.into(), expected: "sqlite:FILE or blackhole" }),
        }
    }
}

/// `--source` of `verify`: only what can be read a second time.
pub(crate) fn parse_files(text: &str) -> Result<PathBuf, AddressError> {
    match text.parse() {
        Ok(SourceAddress::Files(folder)) => Ok(folder),
        _ => Err(AddressError::Source { text: text.into(), expected: "files:DIR" }),
    }
}

/// `--sink` of `verify`: only what can be asked.
pub(crate) fn parse_sqlite(text: &str) -> Result<PathBuf, AddressError> {
    match text.parse() {
        Ok(SinkAddress::Sqlite(file)) => Ok(file),
        _ => Err(AddressError::Sink { text: text.into(), expected: "sqlite:FILE" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_others_explained() {
        assert_eq!("datagen".parse(), Ok(SourceAddress::Datagen));
        assert_eq!("files:a:b/c".parse(), Ok(SourceAddress::Files("a:b/c".into())));
        assert_eq!("blackhole".parse(), Ok(SinkAddress::Blackhole));
        assert_eq!("sqlite:x.db".parse(), Ok(SinkAddress::Sqlite("x.db".into())));
        for text in ["", "files", "files:", "file:x", "datagen:x"] {
            let error = text.parse::<SourceAddress>().unwrap_err();
            assert!(error.to_string().contains("datagen or files:DIR"));
        }
        assert!("sqlite:".parse::<SinkAddress>().is_err());
        assert!(parse_files("datagen").is_err(), "verify has to read the input again");
        assert!(parse_sqlite("blackhole").is_err(), "nothing comes out of a black hole");
    }
}
