//! Kafka as a sink: exactly once in two phases, or at least once.
//!
//! Exactly once, a transaction is a producer of its own, with a transactional id of its own ([`crate::kafka::transactional_id`]). It is
//! prepared when all its records are confirmed and the ledger's offset is in it; what is then in the checkpoint is enough for any
//! process to commit it by wire. RFC 0008 is the protocol, [`tidegate_engine::broker`] its decisions.
//!
//! Owns: producers, the drive of the decisions, checks at submit. Does not own: the decisions; when anything is prepared, committed or
//! rolled back (the engine's sink driver). Runs on: the I/O side.

mod at_least_once;
mod committer;
mod deliveries;
mod error;
mod kafka_sink;
mod preflight;
mod record_producer;
mod records;
mod refused_record;
mod retention;
mod topic;
mod transaction_offsets;
mod transactional_producer;
mod writer;

pub use at_least_once::{AtLeastOnceKafkaSink, AtLeastOnceKafkaWriter};
pub use committer::KafkaCommitter;
pub(crate) use committer::fence;
pub use error::KafkaSinkError;
pub use kafka_sink::KafkaSink;
pub use records::SerializeError;
pub use writer::KafkaWriter;
