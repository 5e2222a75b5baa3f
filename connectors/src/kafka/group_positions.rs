//! Where the Kafka source of a chain stands, as a Kafka sink of the same chain is told at a barrier.
//!
//! Owns: what is told. Does not own: when (the engine hands it on with the barrier), what becomes of it ([`super::sink`]).
//! Runs on: plain data.

use std::collections::BTreeMap;

/// Positions of one reader's partitions for its consumer group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GroupPositions {
    pub(crate) group: String,
    pub(crate) topic: String,
    /// By it a sink tells whether its cluster is that of the source.
    pub(crate) topic_id: String,
    /// By partition: the offset behind the last record that lies before the barrier.
    pub(crate) offsets: BTreeMap<i32, i64>,
}
