//! What librdkafka tells beside records: statistics, its log, failed commits.
//!
//! librdkafka goes on with the old position when a topic has been deleted and created again; all it does is write "changed id" into its
//! debugging log, before it fetches from the new topic. Log lines come through the same queue as records, so that the line is seen
//! before the first record of the new topic.
//!
//! Owns: flags for the consumer's loop. Does not own: what follows from them. Runs on: the thread that polls the consumer.

use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// See the module.
pub(super) struct ClientEvents {
    topic: String,
    counters: KafkaCounters,
    away: Away,
    topic_changed: AtomicBool,
    unreachable: AtomicBool,
}

impl ClientEvents {
    pub(super) fn new(topic: String, counters: KafkaCounters, away: Away) -> Self {
        let (topic_changed, unreachable) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { topic, counters, away, topic_changed, unreachable }
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

/// Whether a line of the log says that the topic has another id than before.
fn tells_new_id(topic: &str, line: &str) -> bool {
    line.contains("changed id from") && line.contains(&format!("Topic {topic} "))
}

impl ClientContext for ClientEvents {
    fn log(&self, level: RDKafkaLogLevel, facility: &str, line: &str) {
        if matches!(level, RDKafkaLogLevel::Debug) && tells_new_id(&self.topic, line) {
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
        let events = ClientEvents::new("orders".to_owned(), KafkaCounters::default(), away.clone());
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
        let line =
            "[thrd:main]: Topic orders changed id from AAAAAAAAAAAAAAAAAAAAAA to bMMw2e4oQLGkXm5CkOq6PQ";
        assert!(tells_new_id("orders", line));
        assert!(!tells_new_id("order", line));
        assert!(!tells_new_id("orders", "Topic orders [0] is new"));
    }
}
