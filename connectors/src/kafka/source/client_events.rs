//! What librdkafka tells beside records: statistics, its log, failed commits.
//!
//! librdkafka goes on with the old position when a topic has been deleted and created again; all it does is write "changed id" into its
//! debugging log, before it fetches from the new topic. So the line waits already when the first record of the new topic is taken, and is
//! seen if the log is served before that record is looked at.
//!
//! Owns: flags for the consumer's loop. Does not own: what follows from them. Runs on: the thread that polls the consumer.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use rdkafka::config::RDKafkaLogLevel;
use rdkafka::consumer::ConsumerContext;
use rdkafka::error::{KafkaError, KafkaResult};
use rdkafka::statistics::{Broker, Partition};
use rdkafka::{ClientContext, Statistics, TopicPartitionList};

use super::KafkaCounters;
use crate::kafka::client_log::log_line;

/// Partitions whose broker is away, as the newest statistics tell: whether they have records is not known.
#[derive(Clone, Debug, Default)]
pub(super) struct Away(Arc<Mutex<BTreeSet<i32>>>);

impl Away {
    /// Guards a few numbers and is held for one look: the consumer's thread and the reader's slot meet here.
    fn lock(&self) -> MutexGuard<'_, BTreeSet<i32>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn has(&self, partition: i32) -> bool {
        self.lock().contains(&partition)
    }

    pub(super) fn set(&self, partitions: BTreeSet<i32>) {
        *self.lock() = partitions;
    }
}

/// An id that librdkafka does not know.
const NO_ID: &str = "AAAAAAAAAAAAAAAAAAAAAA";

/// See the module.
pub(super) struct ClientEvents {
    topic: String,
    /// The topic's id, as librdkafka writes it; `None` if it is not known.
    topic_id: Option<String>,
    counters: KafkaCounters,
    away: Away,
    topic_changed: AtomicBool,
    unreachable: AtomicBool,
}

impl ClientEvents {
    /// `topic_id` as a split has it.
    pub(super) fn new(topic: String, topic_id: &str, counters: KafkaCounters, away: Away) -> Self {
        let (topic_changed, unreachable) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { topic, topic_id: as_librdkafka(topic_id), counters, away, topic_changed, unreachable }
    }

    /// Whether the topic may be another one since this was asked last.
    pub(super) fn take_topic_changed(&self) -> bool {
        self.topic_changed.load(Ordering::Relaxed) && self.topic_changed.swap(false, Ordering::Relaxed)
    }

    /// Whether the newest statistics know of no broker that is up.
    pub(super) fn is_unreachable(&self) -> bool {
        self.unreachable.load(Ordering::Relaxed)
    }
}

/// Partitions whose leader is not connected, or not known.
fn away(brokers: &HashMap<String, Broker>, partitions: &HashMap<i32, Partition>) -> BTreeSet<i32> {
    let up: BTreeSet<i32> =
        brokers.values().filter(|broker| broker.state == "UP").map(|broker| broker.nodeid).collect();
    // The library keeps one of the number -1 for those that it cannot place.
    let known = partitions.values().filter(|partition| partition.partition >= 0);
    known.filter(|partition| !up.contains(&partition.leader)).map(|partition| partition.partition).collect()
}

/// Whether a line of the log says that the topic has another id than `known`. A client that has just begun tells that it has one now.
fn tells_another_id(topic: &str, known: Option<&str>, line: &str) -> bool {
    let Some((before, ids)) = line.split_once(" changed id from ") else { return false };
    let Some((from, to)) = ids.split_once(" to ") else { return false };
    let is_other = match known {
        Some(known) => to.trim() != known,
        None => from != NO_ID,
    };
    is_other && before.ends_with(&format!("Topic {topic}"))
}

/// An id of a topic as librdkafka's log has it: its sixteen bytes in base64.
fn as_librdkafka(topic_id: &str) -> Option<String> {
    let id = u128::from_str_radix(&topic_id.replace('-', ""), 16).ok()?;
    Some(STANDARD_NO_PAD.encode(id.to_be_bytes()))
}

impl ClientContext for ClientEvents {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        if matches!(level, RDKafkaLogLevel::Debug)
            && tells_another_id(&self.topic, self.topic_id.as_deref(), line)
        {
            self.topic_changed.store(true, Ordering::Relaxed);
        }
        log_line(level, facility, line);
    }

    fn stats(&self, statistics: Statistics) {
        let is_up = statistics.brokers.values().any(|broker| broker.state == "UP");
        self.unreachable.store(!is_up, Ordering::Relaxed);
        let Some(topic) = statistics.topics.get(&self.topic) else { return };
        self.away.set(away(&statistics.brokers, &topic.partitions));
        for partition in topic.partitions.values() {
            let end = if partition.ls_offset >= 0 { partition.ls_offset } else { partition.hi_offset };
            if end >= 0 {
                self.counters.note_end(partition.partition, end);
            }
        }
    }

    fn error(&self, error: KafkaError, reason: &str) {
        // Comes out of the poll as well, and is judged there. The end of a partition is among them: a job that follows its topic is there all
        // the time.
        tracing::debug!(topic = self.topic, %error, reason, "Kafka consumer");
    }
}

impl ConsumerContext for ClientEvents {
    fn commit_callback(&self, result: KafkaResult<()>, _offsets: &TopicPartitionList) {
        if let Err(error) = result {
            tracing::warn!(topic = self.topic, %error, "the group was not told how far the job is; nothing rests on it");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_away_while_its_leader_is() {
        let statistics = |state: &str| -> Statistics {
            let broker =
                |id: i32, state: &str| Broker { nodeid: id, state: state.to_owned(), ..Broker::default() };
            let brokers = [("a", broker(1, state)), ("b", broker(2, "UP"))];
            let partition =
                |partition, leader| (partition, Partition { partition, leader, ..Partition::default() });
            let topic = rdkafka::statistics::Topic {
                partitions: [partition(0, 1), partition(1, 2), partition(2, -1), partition(-1, -1)].into(),
                ..Default::default()
            };
            Statistics {
                brokers: brokers.map(|(name, broker)| (name.to_owned(), broker)).into(),
                topics: [("orders".to_owned(), topic)].into(),
                ..Statistics::default()
            }
        };
        let away = Away::default();
        let events = ClientEvents::new("orders".to_owned(), "", KafkaCounters::default(), away.clone());
        let told = |state| {
            events.stats(statistics(state));
            [0, 1, 2, -1].map(|partition| away.has(partition))
        };
        assert_eq!(told("CONNECT"), [true, false, true, false]);
        assert!(!events.is_unreachable(), "one broker is up");
        assert_eq!(told("UP"), [false, false, true, false]);
    }

    #[test]
    fn the_line_about_another_id_is_found_for_this_topic_only() {
        let known = as_librdkafka("6cc330db-de28-40b1-8a5e-49b90a43ba3d");
        assert_eq!(known.as_deref(), Some("bMMw294oQLGKXkm5CkO6PQ"));
        let line = |to: &str| format!("[thrd:main]: Topic orders changed id from {NO_ID} to {to}");
        let (same, other) = (line("bMMw294oQLGKXkm5CkO6PQ"), line("bMMw294oQLGKXkm5CkO6PA"));
        assert!(!tells_another_id("orders", known.as_deref(), &same), "that is how each client begins");
        assert!(tells_another_id("orders", known.as_deref(), &other));
        assert!(!tells_another_id("order", known.as_deref(), &other));
        assert!(!tells_another_id("rders", known.as_deref(), &other));
        assert!(!tells_another_id("orders", None, &other), "the first id that is seen is taken");
        assert!(tells_another_id("orders", None, &other.replace(NO_ID, "bMMw294oQLGKXkm5CkO6PQ")));
        assert!(!tells_another_id("orders", known.as_deref(), "Topic orders [0] is new"));
    }
}
