//! A topic, read exactly once: one split for each partition, the offset in state. RFC 0011 is its protocol.
//!
//! Owns: the settings ([`KafkaSource`]) and the way from topic to records. Does not own: event time strategies, nor when a snapshot is
//! taken. Runs on: see below.
//!
//! 1. [`KafkaEnumerator`] looks at the topic over the wire (`topic`), resolves where partitions begin and end (`offsets`) and hands
//!    them out. On the job manager and the I/O side.
//! 2. One `fetcher` for each reader checks that the topic still is the one it was, and runs the `consumer`: a thread that takes
//!    batches from librdkafka (`batch_consumer`), deserializes and sends chunks (`chunk`). On the I/O side.
//! 3. [`KafkaReader`] hands records out and knows the exact position behind each of them. On the slot's thread.
//! 4. After a completed checkpoint its positions are told to the consumer group, if there is one. Nobody asks the group again.

mod bad_record;
#[expect(unsafe_code, reason = "librdkafka's batches are not in rdkafka's interface")]
mod batch_consumer;
mod chunk;
mod client_events;
mod consumer;
mod counters;
mod enumerator;
mod error;
mod fetcher;
mod kafka_source;
mod offsets;
mod reader;
mod record;
mod settings;
mod split;
mod topic;

pub use bad_record::BadRecord;
pub use counters::KafkaCounters;
pub use enumerator::{KafkaAssigned, KafkaEnumerator, KafkaTopicFound};
pub use error::KafkaSourceError;
pub use kafka_source::{DeserializeError, KafkaSource};
pub use offsets::{StartingOffsets, StoppingOffsets};
pub use reader::KafkaReader;
pub use record::KafkaRecord;
pub use split::KafkaSplit;
