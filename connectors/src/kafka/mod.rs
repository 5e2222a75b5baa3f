//! Kafka: names and decisions, which need no client (feature `kafka`), and what moves records with one (feature `rdkafka`): a source,
//! sinks exactly once and at least once. RFC 0008 is the protocol of the sink in two phases.
//!
//! The decisions of a running sink (which request comes next, what an answer means) are the engine's, so that its simulation can
//! drive them: [`tidegate_engine::broker`].
//!
//! Owns: transactional ids and ledger groups as text, the version of `EndTxn`, clients. Does not own: when anything is prepared or
//! committed (the engine's drivers). Runs on: the I/O side.

#[cfg(feature = "rdkafka")]
mod client_log;
pub mod committer_decisions;
#[cfg(feature = "rdkafka")]
mod config;
#[cfg(feature = "rdkafka")]
mod group_positions;
#[cfg(feature = "rdkafka")]
mod sink;
#[cfg(feature = "rdkafka")]
mod source;
#[cfg(feature = "rdkafka")]
mod transaction_admin;
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
#[cfg(feature = "rdkafka")]
pub use transaction_admin::{JobTransaction, TransactionAdmin};
pub use transactional_id::{IdComponents, TransactionalIds};
