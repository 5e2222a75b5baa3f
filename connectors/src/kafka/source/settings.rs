//! What all parts of one Kafka source share.
//!
//! Owns: the options as they were given, the properties that the source sets itself. Does not own: the builder
//! ([`super::KafkaSource`]). Runs on: plain data.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::config::RDKafkaLogLevel;
use tidegate_engine::api::ConnectorError;

use super::offsets::{StartingOffsets, StoppingOffsets};
use super::{BadRecord, KafkaCounters, KafkaSourceError};
use crate::kafka::config::{ClientRole, KafkaConfig, validate_topic};
use crate::rate::SharedRate;

/// Kilobytes that librdkafka may keep for one reader before it stops fetching.
const QUEUED_KBYTES_MAX: &str = "16384";
/// Bytes that a broker may send at once; the queue may be overshot by so much.
const FETCH_BYTES_MAX: &str = "8388608";
/// How long a broker may wait for a record. It also bounds how long a partition that is added waits for its first request.
const FETCH_WAIT_MS: &str = "100";
/// Between two looks at a full queue.
const FETCH_BACKOFF_MS: &str = "5";
/// Between two statistics: the end of each partition, and which brokers are up.
const STATISTICS_MS: &str = "1000";
/// A client that joins no group must name one all the same.
const NO_GROUP: &str = "tidegate-no-group";

/// Options of a source.
#[derive(Clone, Debug)]
pub(super) struct KafkaSourceSettings {
    pub(super) config: KafkaConfig,
    pub(super) topic: String,
    pub(super) starting: StartingOffsets,
    /// `None`: read for ever.
    pub(super) stopping: Option<StoppingOffsets>,
    pub(super) group: Option<String>,
    /// `None`: the topic is looked at once.
    pub(super) discovery: Option<Duration>,
    pub(super) bad_record: BadRecord,
    pub(super) longest_outage: Duration,
    pub(super) counters: KafkaCounters,
    /// `None`: as fast as it goes.
    pub(super) rate: Option<SharedRate>,
}

impl KafkaSourceSettings {
    /// `host:port,host:port`, each with its port.
    pub(super) fn addresses(&self) -> String {
        let Ok(addresses) = self.config.addresses() else { return self.config.bootstrap().to_owned() };
        let text = |(host, port): &(String, u16)| {
            if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
        };
        addresses.iter().map(text).collect::<Vec<_>>().join(",")
    }

    /// Refuses what cannot work.
    pub(super) fn validate(&self) -> Result<(), ConnectorError> {
        self.check().map_err(ConnectorError::from)
    }

    fn check(&self) -> Result<(), KafkaSourceError> {
        self.config.validate(ClientRole::Source)?;
        validate_topic(&self.topic)?;
        let refused = |problem, remedy| Err(KafkaSourceError::Settings { problem, remedy });
        if self.starting == StartingOffsets::Group && self.group.is_none() {
            return refused(
                "a Kafka source shall begin where its group stands, but has no group",
                "name it with .group(..)",
            );
        }
        if self.rate.as_ref().is_some_and(|rate| rate.records_per_second() == 0) {
            return refused("a rate of 0 records a second never ends", "give a rate, or leave it away");
        }
        if self.group.as_ref().is_some_and(String::is_empty) {
            return refused(
                "the name of a Kafka source's group is empty",
                "give it a name, or leave .group(..) away",
            );
        }
        if self.discovery.is_some_and(|interval| interval.is_zero()) {
            return refused(
                "a discovery interval of 0 never rests",
                "give an interval, or .without_discovery()",
            );
        }
        if let BadRecord::DeadLetter(topic) = &self.bad_record {
            validate_topic(topic)?;
            if *topic == self.topic {
                return refused(
                    "bad records shall go to the topic that they are read from, and would come again for ever",
                    "give another dead-letter topic",
                );
            }
        }
        Ok(())
    }

    /// Properties of a reader's consumer. What the user gave stands, except where the source's promise rests on it.
    pub(super) fn consumer(&self) -> ClientConfig {
        let mut client = self.config.client();
        let defaults = [
            ("client.id", "tidegate"),
            ("queued.max.messages.kbytes", QUEUED_KBYTES_MAX),
            ("fetch.max.bytes", FETCH_BYTES_MAX),
            ("fetch.wait.max.ms", FETCH_WAIT_MS),
            ("fetch.queue.backoff.ms", FETCH_BACKOFF_MS),
        ];
        for (key, value) in defaults {
            if self.config.property(key).is_none() {
                client.set(key, value);
            }
        }
        client
            .set("bootstrap.servers", self.addresses())
            .set("group.id", self.group.as_deref().unwrap_or(NO_GROUP))
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("isolation.level", "read_committed")
            .set("enable.partition.eof", "true")
            .set("allow.auto.create.topics", "false")
            .set("statistics.interval.ms", STATISTICS_MS);
        // librdkafka tells that a topic has another id only in its debugging log (see `client_events`).
        let debug =
            self.config.property("debug").map_or_else(|| "topic".to_owned(), |own| format!("{own},topic"));
        client.set("debug", debug);
        // Else the level is that of the process's logger, and the library drops the line before anybody sees it.
        client.set_log_level(RDKafkaLogLevel::Debug);
        client
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::KafkaSource;

    #[test]
    fn a_consumers_debugging_log_is_on_whatever_the_process_logs() {
        let plain = KafkaSource::<u64>::json("localhost:1", "numbers");
        let (own, none) = (plain.clone().property("debug", "fetch"), plain);
        for (source, debug) in [(none, "topic"), (own, "fetch,topic")] {
            let client = source.settings.consumer();
            assert!(matches!(client.log_level, RDKafkaLogLevel::Debug), "{:?}", client.log_level);
            assert_eq!(client.get("debug"), Some(debug));
        }
    }
}
