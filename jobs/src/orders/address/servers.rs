//! Addresses of servers: `kafka://HOST:PORT/TOPIC` and `mysql://USER:PASSWORD@HOST:PORT/DATABASE?mode=xa`.
//!
//! Owns: their parts, and that a password is never shown. Does not own: whether the server is there.
//! Runs on: the main thread, while flags are read. Pure.
#![cfg_attr(
    not(all(feature = "mysql", feature = "rdkafka")),
    allow(dead_code, reason = "one of two clients is missing")
)]

use std::fmt;
use std::str::FromStr;

use super::AddressError;

const KAFKA: &str = "kafka://HOST:PORT/TOPIC";
const MYSQL: &str = "mysql://USER:PASSWORD@HOST:PORT/DATABASE, for a sink with ?mode=xa, staging, upsert or plain, and &batch_rows=N";
/// The longest name that Kafka gives a topic.
const TOPIC_BYTES_MAX: usize = 249;

/// A topic of a Kafka cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KafkaAddress {
    /// `host:port`, or several with commas.
    pub(crate) bootstrap: String,
    /// The topic.
    pub(crate) topic: String,
}

impl FromStr for KafkaAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = |problem: &str| AddressError::Server {
            server: "a Kafka topic",
            problem: problem.to_owned(),
            expected: KAFKA,
        };
        let rest = text.strip_prefix("kafka://").ok_or_else(|| wrong("does not begin with kafka://"))?;
        let (bootstrap, topic) = rest.split_once('/').ok_or_else(|| wrong("has no topic"))?;
        check_bootstrap(bootstrap).map_err(|problem| wrong(&problem))?;
        let letters = topic.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
        if topic.is_empty() || topic.len() > TOPIC_BYTES_MAX || !letters {
            return Err(wrong(&format!("has no topic of letters, digits, '.', '_' and '-': {topic:?}")));
        }
        Ok(Self { bootstrap: bootstrap.to_owned(), topic: topic.to_owned() })
    }
}

impl fmt::Display for KafkaAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kafka://{}/{}", self.bootstrap, self.topic)
    }
}

/// `--kafka HOST:PORT`.
pub(crate) fn parse_bootstrap(text: &str) -> Result<String, AddressError> {
    let bootstrap = text.strip_prefix("kafka://").unwrap_or(text);
    check_bootstrap(bootstrap).map_err(|problem| AddressError::Server {
        server: "a Kafka cluster",
        problem,
        expected: "HOST:PORT, or several with commas",
    })?;
    Ok(bootstrap.to_owned())
}

fn check_bootstrap(bootstrap: &str) -> Result<(), String> {
    for server in bootstrap.split(',') {
        match server.rsplit_once(':') {
            Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0) => {}
            _ => return Err(format!("has no HOST:PORT in {server:?}")),
        }
    }
    Ok(())
}

/// How the tables are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MysqlMode {
    /// XA transactions, committed when their checkpoint is complete.
    Xa,
    /// Staging tables, merged when their checkpoint is complete.
    Staging,
    /// Rows written over by their key, flushed before each acknowledgement.
    Upsert,
    /// Each batch a transaction of its own: what goes wrong without the others.
    Plain,
}

impl MysqlMode {
    /// As in the address.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Xa => "xa",
            Self::Staging => "staging",
            Self::Upsert => "upsert",
            Self::Plain => "plain",
        }
    }

    fn of(word: &str) -> Option<Self> {
        [Self::Xa, Self::Staging, Self::Upsert, Self::Plain].into_iter().find(|mode| mode.word() == word)
    }
}

/// A database of a MySQL or MariaDB server.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct MysqlAddress {
    /// Without the mode, as clients take it.
    pub(crate) url: String,
    /// XA where none is given.
    pub(crate) mode: MysqlMode,
    /// Rows of a statement; the sink's own number where none is given.
    pub(crate) batch_rows: Option<usize>,
}

impl MysqlAddress {
    /// As the flag takes it, password included: for the command line of a child.
    pub(crate) fn with_mode(&self) -> String {
        let batch_rows = self.batch_rows.map_or_else(String::new, |rows| format!("&batch_rows={rows}"));
        format!("{}?mode={}{batch_rows}", self.url, self.mode.word())
    }

    /// The same database written in another way.
    pub(crate) fn in_mode(&self, mode: MysqlMode) -> Self {
        Self { url: self.url.clone(), mode, ..*self }
    }

    /// The same with so many rows in a statement.
    pub(crate) fn with_batch_rows(self, rows: usize) -> Self {
        Self { batch_rows: Some(rows), ..self }
    }
}

impl FromStr for MysqlAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong =
            |problem: String| AddressError::Server { server: "a MySQL database", problem, expected: MYSQL };
        let rest =
            text.strip_prefix("mysql://").ok_or_else(|| wrong("does not begin with mysql://".into()))?;
        let (rest, query) = rest.split_once('?').map_or((rest, None), |(rest, query)| (rest, Some(query)));
        let (server, database) = rest.rsplit_once('/').ok_or_else(|| wrong("has no database".into()))?;
        if database.is_empty() {
            return Err(wrong("has no database".into()));
        }
        let host = server.rsplit_once('@').map_or(server, |(_, host)| host);
        if host.is_empty() || host.starts_with(':') {
            return Err(wrong("has no host".into()));
        }
        if let Some((_, port)) = host.rsplit_once(':') {
            port.parse::<u16>().map_err(|_| wrong(format!("has a port that is none: {port:?}")))?;
        }
        let (mut mode, mut batch_rows) = (MysqlMode::Xa, None);
        for part in query.iter().flat_map(|query| query.split('&')) {
            match part.split_once('=') {
                Some(("mode", word)) => {
                    mode = MysqlMode::of(word).ok_or_else(|| {
                        wrong(format!("has ?mode={word}, which is none of xa, staging, upsert, plain"))
                    })?;
                }
                Some(("batch_rows", rows)) => match rows.parse() {
                    Ok(rows) if rows > 0 => batch_rows = Some(rows),
                    _ => return Err(wrong(format!("has batch_rows={rows}, which is no number from 1 on"))),
                },
                _ => {
                    let problem = "has something else than ?mode= and batch_rows= behind its database";
                    return Err(wrong(problem.into()));
                }
            }
        }
        Ok(Self { url: format!("mysql://{rest}"), mode, batch_rows })
    }
}

/// For people: without the password.
impl fmt::Display for MysqlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = match self.url.rsplit_once('@') {
            Some((_, place)) => place,
            None => self.url.trim_start_matches("mysql://"),
        };
        write!(f, "mysql://{shown}")
    }
}

impl fmt::Debug for MysqlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MysqlAddress({self}, {})", self.mode.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_topic_has_a_server_and_a_name() {
        let address: KafkaAddress = "kafka://h:1,i:2/orders".parse().unwrap();
        assert_eq!((address.bootstrap.as_str(), address.topic.as_str()), ("h:1,i:2", "orders"));
        assert_eq!(address.to_string(), "kafka://h:1,i:2/orders");
        for (text, problem) in [
            ("kafka:h:1/t", "kafka://"),
            ("kafka://h:1", "no topic"),
            ("kafka://h:1/", "no topic"),
            ("kafka://h:1/a/b", "a/b"),
            ("kafka://h/t", "HOST:PORT"),
            ("kafka://h:x/t", "HOST:PORT"),
            ("kafka://:1/t", "HOST:PORT"),
            ("kafka://h:1,/t", "HOST:PORT"),
        ] {
            let error = text.parse::<KafkaAddress>().unwrap_err().to_string();
            assert!(error.contains(problem) && error.contains(KAFKA), "{text}: {error}");
        }
        assert_eq!(parse_bootstrap("h:1"), Ok("h:1".to_owned()));
        assert!(parse_bootstrap("h").is_err());
    }

    #[test]
    fn a_database_has_a_mode_and_its_password_is_never_shown() {
        let address: MysqlAddress = "mysql://u:s3cret@h:3306/d?mode=staging".parse().unwrap();
        assert_eq!(address.url, "mysql://u:s3cret@h:3306/d");
        assert_eq!(address.mode, MysqlMode::Staging);
        assert_eq!(address.with_mode(), "mysql://u:s3cret@h:3306/d?mode=staging");
        assert_eq!(address.to_string(), "mysql://h:3306/d");
        assert!(!format!("{address:?}").contains("s3cret"));
        let small: MysqlAddress = "mysql://u:s3cret@h:3306/d?mode=upsert&batch_rows=5".parse().unwrap();
        assert_eq!((small.mode, small.batch_rows), (MysqlMode::Upsert, Some(5)));
        assert_eq!(small.with_mode().parse(), Ok(small));
        let without: MysqlAddress = "mysql://u:p@h/d".parse().unwrap();
        assert_eq!(without.mode, MysqlMode::Xa);
        for (text, problem) in [
            ("mysql:u@h/d", "mysql://"),
            ("mysql://u:s3cret@h", "no database"),
            ("mysql://u:s3cret@h/", "no database"),
            ("mysql://u:s3cret@/d", "no host"),
            ("mysql://u:s3cret@h:x/d", "port"),
            ("mysql://u:s3cret@h/d?mode=xx", "mode=xx"),
            ("mysql://u:s3cret@h/d?pool=3", "?mode="),
            ("mysql://u:s3cret@h/d?mode=xa&batch_rows=0", "batch_rows=0"),
            ("mysql://u:s3cret@h/d?batch_rows=x", "batch_rows=x"),
        ] {
            let error = text.parse::<MysqlAddress>().unwrap_err().to_string();
            assert!(error.contains(problem) && !error.contains("s3cret"), "{text}: {error}");
        }
    }
}
