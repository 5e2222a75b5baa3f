//! Where the brokers are, and which properties a user may hand to librdkafka.
//!
//! A property that would break a promise of the source or the sink is refused with the reason: auto-commit would move offsets that
//! belong to checkpoints, a foreign transactional id could not be recovered.
//!
//! Owns: the bootstrap list, the user's properties, the list of forbidden ones. Does not own: what each client sets besides.
//! Runs on: plain data, on the author's thread.

use std::collections::BTreeMap;

use rdkafka::ClientConfig;
use tidegate_engine::api::ConnectorError;

/// The port of a Kafka broker, where none is said.
const DEFAULT_PORT: u16 = 9_092;

/// What a client is for: each part has properties of its own that it must set itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientRole {
    /// A consumer of a source.
    Source,
    /// A producer of a sink.
    Sink,
}

/// Bootstrap addresses and client properties.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaConfig {
    bootstrap: String,
    properties: BTreeMap<String, String>,
}

/// Why a configuration is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KafkaConfigError {
    /// No address, or one that is none.
    #[error(
        "{given:?} is no list of Kafka brokers: {problem}\n  help: give host:port, or several with commas between them, as in \
         \"kafka-1:9092,kafka-2:9092\""
    )]
    Bootstrap {
        /// What was given.
        given: String,
        /// What is wrong.
        problem: &'static str,
    },
    /// A property that the connector sets itself.
    #[error("the Kafka property {key} = {value:?} is refused: {reason}\n  help: {remedy}")]
    Forbidden {
        /// The property.
        key: String,
        /// The value given.
        value: String,
        /// What it would break.
        reason: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// A topic name that no broker accepts.
    #[error(
        "{topic:?} is no name of a topic\n  help: a topic has 1 to 249 letters, digits, dots, underscores and hyphens, and is not \
         \".\" or \"..\""
    )]
    Topic {
        /// What was given.
        topic: String,
    },
    /// librdkafka does not take a property.
    #[error(
        "the Kafka client refuses its properties: {said}\n  help: look at the names and values given with .property(..)"
    )]
    Refused {
        /// What it says.
        said: String,
    },
}

impl From<KafkaConfigError> for ConnectorError {
    fn from(error: KafkaConfigError) -> Self {
        Self::fatal(error)
    }
}

/// A property that is not the user's, for whom, why, and what to do.
struct Forbidden {
    key: &'static str,
    role: Option<ClientRole>,
    reason: &'static str,
    remedy: &'static str,
}

const LEAVE: &str = "leave the property away";
const OWN: &str = "the connector sets it to what its protocol needs";

const fn forbidden(
    key: &'static str,
    role: Option<ClientRole>,
    reason: &'static str,
    remedy: &'static str,
) -> Forbidden {
    Forbidden { key, role, reason, remedy }
}

const SOURCE: Option<ClientRole> = Some(ClientRole::Source);
const SINK: Option<ClientRole> = Some(ClientRole::Sink);
const BY_ARGUMENT: &str = "the brokers are an argument of their own, which all parts of the connector use";
const IN_CHECKPOINTS: &str = "a position counts when its checkpoint is complete, and only then";
const IDEMPOTENT: &str =
    "without an idempotent producer that waits for all replicas, retries lose, double or reorder records";

/// librdkafka's names and their aliases.
const FORBIDDEN: &[Forbidden] = &[
    forbidden("bootstrap.servers", None, BY_ARGUMENT, "give the brokers as the first argument"),
    forbidden("metadata.broker.list", None, BY_ARGUMENT, "give the brokers as the first argument"),
    forbidden(
        "enable.auto.commit",
        SOURCE,
        IN_CHECKPOINTS,
        "offsets are committed after each checkpoint where .group(..) is set",
    ),
    forbidden(
        "auto.commit.enable",
        SOURCE,
        IN_CHECKPOINTS,
        "offsets are committed after each checkpoint where .group(..) is set",
    ),
    forbidden("enable.auto.offset.store", SOURCE, IN_CHECKPOINTS, LEAVE),
    forbidden(
        "auto.offset.reset",
        SOURCE,
        "a position that is no longer in the topic fails the job; a silent reset would lose or repeat records",
        "say where to begin with .starting(..)",
    ),
    forbidden(
        "group.id",
        SOURCE,
        "partitions are assigned by the job, not by a consumer group; a group is only told how far the job is",
        "name the group with .group(..)",
    ),
    forbidden("group.instance.id", SOURCE, "the source joins no consumer group", LEAVE),
    forbidden("group.protocol", SOURCE, "the source joins no consumer group", LEAVE),
    forbidden("partition.assignment.strategy", SOURCE, "the source joins no consumer group", LEAVE),
    forbidden(
        "isolation.level",
        SOURCE,
        "the source reads committed records only: one of a transaction that is aborted later would not come again after a restart",
        LEAVE,
    ),
    forbidden("enable.partition.eof", SOURCE, OWN, LEAVE),
    forbidden("statistics.interval.ms", None, OWN, LEAVE),
    forbidden(
        "transactional.id",
        SINK,
        "ids are made from job, operator, subtask and attempt, so that transactions of a killed process are found again",
        LEAVE,
    ),
    forbidden(
        "transaction.timeout.ms",
        SINK,
        "it is checked against checkpoint interval and longest outage",
        "set it with .transaction_timeout(..)",
    ),
    forbidden("enable.idempotence", SINK, IDEMPOTENT, LEAVE),
    forbidden("enable.gapless.guarantee", SINK, IDEMPOTENT, LEAVE),
    forbidden("acks", SINK, IDEMPOTENT, LEAVE),
    forbidden("request.required.acks", SINK, IDEMPOTENT, LEAVE),
    forbidden("max.in.flight", SINK, IDEMPOTENT, LEAVE),
    forbidden("max.in.flight.requests.per.connection", SINK, IDEMPOTENT, LEAVE),
];

/// Properties that must be checked by value: this build speaks plain TCP.
const PLAIN_ONLY: &str = "this build speaks to brokers over plain connections only (no TLS, no SASL)";

impl KafkaConfig {
    /// Brokers as `host:port`, several with commas between them. Checked by [`Self::validate`].
    pub fn new(bootstrap: impl Into<String>) -> Self {
        Self { bootstrap: bootstrap.into(), properties: BTreeMap::new() }
    }

    /// Sets a property of librdkafka. Checked by [`Self::validate`].
    pub fn set(&mut self, key: impl Into<String>, value: impl Into<String>) {
        self.properties.insert(key.into(), value.into());
    }

    /// The brokers as they were given.
    pub fn bootstrap(&self) -> &str {
        &self.bootstrap
    }

    /// A property that the user gave.
    pub fn property(&self, key: &str) -> Option<&str> {
        self.properties.get(key).map(String::as_str)
    }

    /// The brokers' hosts and ports.
    ///
    /// # Errors
    /// [`KafkaConfigError::Bootstrap`].
    pub fn addresses(&self) -> Result<Vec<(String, u16)>, KafkaConfigError> {
        self.bootstrap.split(',').map(|address| self.address(address.trim())).collect()
    }

    fn address(&self, address: &str) -> Result<(String, u16), KafkaConfigError> {
        let refused = |problem| KafkaConfigError::Bootstrap { given: self.bootstrap.clone(), problem };
        let address = address.strip_prefix("PLAINTEXT://").unwrap_or(address);
        if address.is_empty() {
            return Err(refused("an address is empty"));
        }
        if address.contains("://") || address.contains('/') {
            return Err(refused("an address is not a URL"));
        }
        let (host, port) = match address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((host, port)) => (host, port.strip_prefix(':')),
            None => address.rsplit_once(':').map_or((address, None), |(host, port)| (host, Some(port))),
        };
        if host.is_empty() || host.contains(char::is_whitespace) {
            return Err(refused("a host is missing or has a blank in it"));
        }
        let port = port.map_or(Ok(DEFAULT_PORT), str::parse).unwrap_or(0);
        if port == 0 {
            return Err(refused("a port is not a number from 1 to 65535"));
        }
        Ok((host.to_owned(), port))
    }

    /// Refuses addresses that are none and properties that would break a promise, and asks librdkafka about the others.
    ///
    /// # Errors
    /// [`KafkaConfigError`].
    pub fn validate(&self, role: ClientRole) -> Result<(), KafkaConfigError> {
        self.addresses()?;
        for (key, value) in &self.properties {
            let refuse = |reason, remedy| KafkaConfigError::Forbidden {
                key: key.clone(),
                value: value.clone(),
                reason,
                remedy,
            };
            let mine = |f: &&Forbidden| f.key == key && f.role.is_none_or(|r| r == role);
            if let Some(found) = FORBIDDEN.iter().find(mine) {
                return Err(refuse(found.reason, found.remedy));
            }
            let is_plain = key != "security.protocol" || value.eq_ignore_ascii_case("plaintext");
            if !is_plain || key.starts_with("sasl.") || key.starts_with("ssl.") {
                return Err(refuse(
                    PLAIN_ONLY,
                    "give a listener of the broker with security protocol PLAINTEXT",
                ));
            }
        }
        let native = self.client().create_native_config();
        native.map(drop).map_err(|error| KafkaConfigError::Refused { said: error.to_string() })
    }

    /// A client configuration with the brokers and the user's properties; the caller adds its own, which win.
    pub(crate) fn client(&self) -> ClientConfig {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", &self.bootstrap);
        for (key, value) in &self.properties {
            client.set(key, value);
        }
        client
    }
}

/// Refuses a name that no broker accepts as a topic.
///
/// # Errors
/// [`KafkaConfigError::Topic`].
pub(crate) fn validate_topic(topic: &str) -> Result<(), KafkaConfigError> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if matches!(topic.len(), 1..=249) && topic.chars().all(legal) && topic != "." && topic != ".." {
        return Ok(());
    }
    Err(KafkaConfigError::Topic { topic: topic.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(key: &str, value: &str) -> KafkaConfig {
        let mut config = KafkaConfig::new("localhost:9092");
        config.set(key, value);
        config
    }

    #[test]
    fn a_list_of_brokers_is_read_with_and_without_ports() {
        let config = KafkaConfig::new("a:1, b,[::1]:3");
        let expected = [("a", 1), ("b", 9_092), ("::1", 3)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!(config.addresses().unwrap(), expected);
    }

    #[test]
    fn a_bootstrap_that_is_none_is_refused_with_an_example() {
        for bad in ["", "a:1,,b:2", "kafka://a:1/topic", "a:port", "a:0", ":1", "a b:1", "a:70000"] {
            let error = KafkaConfig::new(bad).validate(ClientRole::Source).unwrap_err().to_string();
            assert!(error.contains("help: give host:port"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_property_that_would_break_a_promise_is_refused_with_the_reason() {
        let error = with("enable.auto.commit", "true").validate(ClientRole::Source).unwrap_err().to_string();
        assert!(error.contains("enable.auto.commit") && error.contains("checkpoint"), "{error}");
        let error = with("transactional.id", "x").validate(ClientRole::Sink).unwrap_err().to_string();
        assert!(error.contains("attempt"), "{error}");
        let error = with("acks", "1").validate(ClientRole::Sink).unwrap_err().to_string();
        assert!(error.contains("idempotent"), "{error}");
        let error = with("security.protocol", "ssl").validate(ClientRole::Sink).unwrap_err().to_string();
        assert!(error.contains("no TLS"), "{error}");
    }

    #[test]
    fn a_property_that_nobody_knows_is_refused_by_its_name() {
        let error = with("fetch.max.butes", "1").validate(ClientRole::Source).unwrap_err().to_string();
        assert!(error.contains("fetch.max.butes"), "{error}");
        with("fetch.wait.max.ms", "10").validate(ClientRole::Source).unwrap();
    }

    #[test]
    fn a_topic_has_a_name_that_brokers_accept() {
        validate_topic("orders.v1_all-2").unwrap();
        for bad in ["", ".", "..", "a b", "a/b", &"x".repeat(250)] {
            assert!(validate_topic(bad).is_err(), "{bad}");
        }
    }
}
