//! Where orders come from and where they go, as the flags say it: `files:DIR`, `sqlite:FILE`, `200ms`.
//!
//! Owns: the forms of these flags and the words that explain them.
//! Does not own: opening anything.
//! Runs on: the main thread, while flags are read. Pure.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

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
    /// Not a duration.
    #[error("{text:?} is not a duration: write a whole number above 0 and a unit, as in 200ms, 10s or 2min")]
    Duration {
        /// What was given.
        text: String,
    },
    /// Not a place to restore from.
    #[error(
        "{text:?} is not a place to restore from: write latest, none, or URL#id with the id of a checkpoint"
    )]
    Restore {
        /// What was given.
        text: String,
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

/// `--restore` of `run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RestoreFrom {
    /// The newest completed checkpoint in the folder, or nothing when there is none.
    Latest,
    /// Nothing: a new lineage.
    None,
    /// A checkpoint by name.
    Checkpoint {
        /// Its folder.
        url: String,
        /// Its id.
        id: u64,
    },
}

impl FromStr for RestoreFrom {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match (text, text.rsplit_once('#')) {
            ("latest", _) => Ok(Self::Latest),
            ("none", _) => Ok(Self::None),
            (_, Some((url, id))) if !url.is_empty() => match id.parse() {
                Ok(id) => Ok(Self::Checkpoint { url: url.into(), id }),
                Err(_) => Err(AddressError::Restore { text: text.into() }),
            },
            _ => Err(AddressError::Restore { text: text.into() }),
        }
    }
}

/// A whole number above 0 with its unit: `ms`, `s` or `min`.
pub(crate) fn parse_duration(text: &str) -> Result<Duration, AddressError> {
    let wrong = || AddressError::Duration { text: text.into() };
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

    #[test]
    fn restores_are_read() {
        assert_eq!("latest".parse(), Ok(RestoreFrom::Latest));
        assert_eq!("none".parse(), Ok(RestoreFrom::None));
        let named = RestoreFrom::Checkpoint { url: "file:///c".into(), id: 14 };
        assert_eq!("file:///c#14".parse(), Ok(named));
        for text in ["", "newest", "#14", "file:///c#", "file:///c#x"] {
            assert!(text.parse::<RestoreFrom>().is_err(), "{text}");
        }
    }

    #[test]
    fn durations_need_a_unit_and_are_above_zero() {
        assert_eq!(parse_duration("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(parse_duration("2min"), Ok(Duration::from_secs(120)));
        for text in ["", "200", "0s", "1.5s", "ms", "2 s", "99999999999999999999s", "18446744073709551615min"]
        {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }
}
