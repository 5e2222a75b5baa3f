//! What librdkafka tells about a producer: confirmed records, failures, who it is.
//!
//! The identity (producer id and epoch) is told in statistics only. So is how often `InitProducerId` was sent, and how many requests got no
//! answer: the library repeats the request by itself, and one without an answer may still arrive.
//!
//! Owns: the counters. Does not own: the producer. Runs on: the thread that polls.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use rdkafka::client::ClientContext;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::error::KafkaError;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use serde::Deserialize;
use tidegate_engine::broker::Producer;

use crate::kafka::client_log::log_line;

/// What statistics tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SeenProducer {
    pub(super) identity: Producer,
    /// How often `InitProducerId` was sent.
    pub(super) initialised: i64,
    /// Requests that went out and got no answer, and are not waited for any more: their connection broke. (Told by counters that are
    /// not read at one moment: only one that stays is one.)
    pub(super) unanswered: i64,
}

impl SeenProducer {
    /// Whether an initialisation may still be on its way to the broker.
    pub(super) fn may_come_late(&self) -> bool {
        self.initialised > 1 && self.unanswered > 0
    }
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Deliveries {
    delivered: AtomicU64,
    /// Counts everything that was told, so that a poll can tell whether it found something.
    events: AtomicU64,
    /// Guards the first failure of a record; written when a poll meets one.
    failed: Mutex<Option<KafkaError>>,
    /// Guards the newest identity; written by the thread that polls, read by the writer.
    seen: Mutex<Option<SeenProducer>>,
}

#[derive(Deserialize)]
struct Statistics {
    eos: Option<Eos>,
    #[serde(default)]
    brokers: BTreeMap<String, BrokerStatistics>,
}

#[derive(Deserialize)]
struct Eos {
    producer_id: i64,
    producer_epoch: i16,
}

#[derive(Deserialize)]
struct BrokerStatistics {
    /// Requests sent.
    #[serde(default)]
    tx: i64,
    /// Answers received.
    #[serde(default)]
    rx: i64,
    /// Requests that wait for their answers.
    #[serde(default)]
    waitresp_cnt: i64,
    #[serde(default)]
    req: BTreeMap<String, i64>,
}

impl Statistics {
    /// `None`: not initialised yet.
    fn seen(&self) -> Option<SeenProducer> {
        let eos = self.eos.as_ref().filter(|eos| eos.producer_id >= 0)?;
        let brokers = || self.brokers.values();
        Some(SeenProducer {
            identity: Producer { id: eos.producer_id, epoch: eos.producer_epoch },
            initialised: brokers().filter_map(|broker| broker.req.get("InitProducerId")).sum(),
            unanswered: brokers().map(|broker| broker.tx - broker.rx - broker.waitresp_cnt).sum(),
        })
    }
}

impl Deliveries {
    pub(super) fn delivered(&self) -> u64 {
        self.delivered.load(Ordering::Acquire)
    }

    pub(super) fn events(&self) -> u64 {
        self.events.load(Ordering::Acquire)
    }

    /// The first record that was not delivered.
    pub(super) fn failure(&self) -> Option<KafkaError> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn seen(&self) -> Option<SeenProducer> {
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientContext for Deliveries {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, message: &str) {
        log_line(level, facility, message);
    }

    fn stats_raw(&self, statistics: &[u8]) {
        self.events.fetch_add(1, Ordering::AcqRel);
        match serde_json::from_slice::<Statistics>(statistics) {
            Ok(statistics) => {
                *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = statistics.seen();
            }
            Err(error) => tracing::warn!("librdkafka: statistics that cannot be read: {error}"),
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // A broker that is away: the library connects again; what it gives up comes as a failed delivery.
        self.events.fetch_add(1, Ordering::AcqRel);
        tracing::debug!("librdkafka: {error}: {reason}");
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        self.events.fetch_add(1, Ordering::AcqRel);
        match result {
            Ok(_) => drop(self.delivered.fetch_add(1, Ordering::AcqRel)),
            Err((error, _)) => {
                self.failed
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .get_or_insert_with(|| error.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(json: &str) -> Option<SeenProducer> {
        let deliveries = Deliveries::default();
        deliveries.stats_raw(json.as_bytes());
        deliveries.seen()
    }

    #[test]
    fn a_producer_without_an_id_is_not_seen_yet() {
        assert_eq!(told(r#"{"eos": {"producer_id": -1, "producer_epoch": -1}}"#), None);
        assert_eq!(told(r#"{"brokers": {}}"#), None);
        assert_eq!(told("{"), None);
    }

    #[test]
    fn who_a_producer_is_and_how_often_it_asked_is_read_from_statistics() {
        let json = r#"{"name": "x", "eos": {"producer_id": 7, "producer_epoch": 3, "txn_state": "Ready"}, "brokers": {
            "a:1/1": {"tx": 9, "rx": 7, "waitresp_cnt": 1, "req": {"InitProducerId": 1, "Produce": 5}},
            "b:1/2": {"tx": 3, "rx": 3, "waitresp_cnt": 0, "req": {"InitProducerId": 1}}}}"#;
        let seen = told(json).unwrap();
        let identity = Producer { id: 7, epoch: 3 };
        assert_eq!(seen, SeenProducer { identity, initialised: 2, unanswered: 1 });
        assert!(seen.may_come_late(), "one of two initialisations may be the request without an answer");
        assert!(!SeenProducer { initialised: 1, ..seen }.may_come_late(), "what was sent once was answered");
        assert!(!SeenProducer { unanswered: 0, ..seen }.may_come_late(), "refused for now, and asked again");
    }
}
