//! Where orders come from and where they go, as the flags say it: `files:DIR`, `sqlite:FILE`, `kafka://…`, `mysql://…`.
//!
//! Owns: the forms of these flags, the words that explain them, and which of them this binary was built for.
//! Does not own: the parts of an address of a server ([`servers`]); opening anything.
//! Runs on: the main thread, while flags are read. Pure.

pub(crate) mod servers;

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[cfg(feature = "rdkafka")]
use self::servers::KafkaAddress;
#[cfg(feature = "mysql")]
use self::servers::MysqlAddress;

const SOURCES: &str = "datagen, files:DIR or kafka://HOST:PORT/TOPIC";
const SINKS: &str =
    "sqlite:FILE, blackhole, mysql://USER:PASSWORD@HOST:PORT/DATABASE?mode=xa or kafka://HOST:PORT/TOPIC";
const AUDITED_SOURCES: &str = "files:DIR or kafka://HOST:PORT/TOPIC";
const AUDITED_SINKS: &str =
    "sqlite:FILE, mysql://USER:PASSWORD@HOST:PORT/DATABASE or kafka://HOST:PORT/TOPIC";

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
    /// A part of the address of a server.
    #[error("the address of {server} {problem}: write {expected}")]
    Server {
        /// Which server.
        server: &'static str,
        /// What is wrong; a password is never repeated.
        problem: String,
        /// What would do.
        expected: &'static str,
    },
    /// The binary cannot speak to such a server.
    #[cfg(not(all(feature = "mysql", feature = "rdkafka")))]
    #[error(
        "this binary was built without {server}: build it with cargo build -p tidegate-jobs --features {feature}"
    )]
    NotBuilt {
        /// Which server.
        server: &'static str,
        /// What brings it.
        feature: &'static str,
    },
}

/// `--source` of `run`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SourceAddress {
    /// `datagen`: made-up orders.
    Datagen,
    /// `files:DIR`: a folder of JSON-lines partitions.
    Files(PathBuf),
    /// `kafka://HOST:PORT/TOPIC`.
    #[cfg(feature = "rdkafka")]
    Kafka(KafkaAddress),
}

impl FromStr for SourceAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split_once(':') {
            None if text == "datagen" => Ok(Self::Datagen),
            Some(("files", folder)) if !folder.is_empty() => Ok(Self::Files(folder.into())),
            #[cfg(feature = "rdkafka")]
            Some(("kafka", _)) => text.parse().map(Self::Kafka),
            #[cfg(not(feature = "rdkafka"))]
            Some(("kafka", _)) => Err(AddressError::NotBuilt { server: "Kafka", feature: "rdkafka" }),
            _ => Err(AddressError::Source { text: text.into(), expected: SOURCES }),
        }
    }
}

/// As the flag takes it.
impl fmt::Display for SourceAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datagen => f.write_str("datagen"),
            Self::Files(folder) => write!(f, "files:{}", folder.display()),
            #[cfg(feature = "rdkafka")]
            Self::Kafka(address) => write!(f, "{address}"),
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
    /// `mysql://…`: tables in a database of a server.
    #[cfg(feature = "mysql")]
    Mysql(MysqlAddress),
    /// `kafka://HOST:PORT/TOPIC`: each order as it is, into a topic.
    #[cfg(feature = "rdkafka")]
    Kafka(KafkaAddress),
}

impl FromStr for SinkAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        match text.split_once(':') {
            None if text == "blackhole" => Ok(Self::Blackhole),
            Some(("sqlite", file)) if !file.is_empty() => Ok(Self::Sqlite(file.into())),
            #[cfg(feature = "mysql")]
            Some(("mysql", _)) => text.parse().map(Self::Mysql),
            #[cfg(not(feature = "mysql"))]
            Some(("mysql", _)) => Err(AddressError::NotBuilt { server: "MySQL", feature: "mysql" }),
            #[cfg(feature = "rdkafka")]
            Some(("kafka", _)) => text.parse().map(Self::Kafka),
            #[cfg(not(feature = "rdkafka"))]
            Some(("kafka", _)) => Err(AddressError::NotBuilt { server: "Kafka", feature: "rdkafka" }),
            _ => Err(AddressError::Sink { text: text.into(), expected: SINKS }),
        }
    }
}

/// As the flag takes it.
impl fmt::Display for SinkAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Blackhole => f.write_str("blackhole"),
            Self::Sqlite(file) => write!(f, "sqlite:{}", file.display()),
            #[cfg(feature = "mysql")]
            Self::Mysql(address) => write!(f, "{}", address.with_mode()),
            #[cfg(feature = "rdkafka")]
            Self::Kafka(address) => write!(f, "{address}"),
        }
    }
}

/// `--source` of `verify`: only what can be read a second time.
pub(crate) fn parse_audited_source(text: &str) -> Result<SourceAddress, AddressError> {
    match text.parse() {
        Ok(SourceAddress::Datagen) | Err(AddressError::Source { .. }) => {
            Err(AddressError::Source { text: text.into(), expected: AUDITED_SOURCES })
        }
        other => other,
    }
}

/// `--sink` of `verify`: only what can be asked.
pub(crate) fn parse_audited_sink(text: &str) -> Result<SinkAddress, AddressError> {
    match text.parse() {
        Ok(SinkAddress::Blackhole) | Err(AddressError::Sink { .. }) => {
            Err(AddressError::Sink { text: text.into(), expected: AUDITED_SINKS })
        }
        other => other,
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
            assert!(error.to_string().contains("datagen, files:DIR"));
        }
        assert!("sqlite:".parse::<SinkAddress>().is_err());
        assert!(parse_audited_source("datagen").is_err(), "verify has to read the input again");
        assert!(parse_audited_sink("blackhole").is_err(), "nothing comes out of a black hole");
    }

    #[test]
    fn an_address_is_shown_as_it_is_given() {
        for text in ["datagen", "files:a/b"] {
            assert_eq!(text.parse::<SourceAddress>().unwrap().to_string(), text);
        }
        assert_eq!("sqlite:x.db".parse::<SinkAddress>().unwrap().to_string(), "sqlite:x.db");
    }

    #[cfg(not(any(feature = "mysql", feature = "rdkafka")))]
    #[test]
    fn a_binary_without_a_client_says_how_to_build_one() {
        let errors = [
            "kafka://h:9092/orders".parse::<SourceAddress>().unwrap_err(),
            "mysql://u:p@h/d".parse::<SinkAddress>().unwrap_err(),
            parse_audited_sink("kafka://h:9092/orders").unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains("cargo build -p tidegate-jobs --features"), "{error}");
        }
    }
}
