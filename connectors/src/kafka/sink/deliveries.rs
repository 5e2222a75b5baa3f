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
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message as _;
use rdkafka::producer::{DeliveryResult, ProducerContext};
use serde::Deserialize;
use tidegate_engine::broker::Producer;

use super::refused_record::RefusedRecord;
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
    failed: Mutex<Option<Undelivered>>,
    /// Guards the newest identity; written by the thread that polls, read by the writer.
    seen: Mutex<Option<SeenProducer>>,
}

/// A record that was not delivered.
#[derive(Clone, Debug)]
pub(super) struct Undelivered {
    pub(super) record: RefusedRecord,
    pub(super) error: KafkaError,
}

impl Undelivered {
    /// Whether it tells more than the one before: that shares the fate of another one in its batch, or is a smaller one of a batch that is too
    /// large, of which the broker names none.
    fn tells_more_than(&self, first: &Self) -> bool {
        let too_large =
            |it: &Self| it.error.rdkafka_error_code() == Some(RDKafkaErrorCode::MessageSizeTooLarge);
        match (first.is_beside_another(), self.is_beside_another()) {
            (true, own) => !own,
            (false, _) => too_large(first) && too_large(self) && self.record.bytes > first.record.bytes,
        }
    }

    /// Whether it shares the fate of another one in its batch, which tells the reason.
    fn is_beside_another(&self) -> bool {
        self.error.rdkafka_error_code() == Some(RDKafkaErrorCode::InvalidDifferentRecord)
    }
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

    fn note_failure(&self, new: Undelivered) {
        let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        if failed.as_ref().is_none_or(|first| new.tells_more_than(first)) {
            *failed = Some(new);
        }
    }

    /// The first record that was not delivered for a reason of its own.
    pub(super) fn failure(&self) -> Option<Undelivered> {
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
    /// The record's number.
    type DeliveryOpaque = usize;

    fn delivery(&self, result: &DeliveryResult<'_>, number: usize) {
        self.events.fetch_add(1, Ordering::AcqRel);
        match result {
            Ok(_) => drop(self.delivered.fetch_add(1, Ordering::AcqRel)),
            Err((error, message)) => {
                let record = RefusedRecord {
                    number: number as u64,
                    key: message.key().map(<[u8]>::to_vec),
                    time_ms: message.timestamp().to_millis(),
                    bytes: message.payload_len() + message.key_len(),
                };
                self.note_failure(Undelivered { record, error: error.clone() });
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
    fn the_failure_that_is_kept_is_the_first_one_with_a_reason_of_its_own_or_the_largest_of_its_batch() {
        let deliveries = Deliveries::default();
        let failed = |number, code| {
            let record = RefusedRecord { number, key: None, time_ms: None, bytes: 1 };
            deliveries.note_failure(Undelivered { record, error: KafkaError::MessageProduction(code) });
            deliveries.failure().map(|it| it.record.number)
        };
        assert_eq!(failed(1, RDKafkaErrorCode::InvalidDifferentRecord), Some(1));
        assert_eq!(failed(2, RDKafkaErrorCode::InvalidDifferentRecord), Some(1));
        assert_eq!(failed(3, RDKafkaErrorCode::InvalidTimestamp), Some(3));
        assert_eq!(failed(4, RDKafkaErrorCode::PurgeQueue), Some(3));
        let deliveries = Deliveries::default();
        for (number, bytes) in [(1, 1), (2, 200_000), (3, 1)] {
            let record = RefusedRecord { number, key: None, time_ms: None, bytes };
            let error = KafkaError::MessageProduction(RDKafkaErrorCode::MessageSizeTooLarge);
            deliveries.note_failure(Undelivered { record, error });
        }
        assert_eq!(deliveries.failure().map(|it| it.record.number), Some(2));
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
