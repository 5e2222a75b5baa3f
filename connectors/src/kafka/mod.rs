//! Kafka, as far as it needs no client: how names are spelled, and what is decided before a sink may run. RFC 0008 is its protocol.
//!
//! The decisions of a running sink (which request comes next, what an answer means) are the engine's, so that its simulation can
//! drive them: [`tidegate_engine::broker`].
//!
//! Owns: transactional ids and ledger groups as text, the version of `EndTxn`. Does not own: a connection; there is no source and
//! no sink yet. Runs on: plain data.

pub mod committer_decisions;
#[cfg(feature = "rdkafka")]
mod config;
#[cfg(feature = "rdkafka")]
mod sink;
#[cfg(feature = "rdkafka")]
mod source;
pub mod transactional_id;
#[cfg(feature = "rdkafka")]
pub mod wire;

pub use committer_decisions::{EndTxnVersion, VersionRefusal};
#[cfg(feature = "rdkafka")]
pub use config::{ClientRole, KafkaConfig, KafkaConfigError};
#[cfg(feature = "rdkafka")]
pub use sink::{
    AtLeastOnceKafkaSink, AtLeastOnceKafkaWriter, KafkaCommitter, KafkaSink, KafkaSinkError, KafkaWriter,
    SerializeError,
};
#[cfg(feature = "rdkafka")]
pub use source::{
    BadRecord, DeserializeError, KafkaAssigned, KafkaCounters, KafkaEnumerator, KafkaReader, KafkaRecord,
    KafkaSource, KafkaSourceError, KafkaSplit, KafkaTopicFound, StartingOffsets, StoppingOffsets,
};
pub use transactional_id::TransactionalIds;
