//! Kafka by wire: the few requests that source and sink send themselves: a client library knows only the transactions of its own
//! process, and does not tell a topic's id.
//!
//! | request | what for |
//! |---|---|
//! | ApiVersions | once for each connection: what the broker offers |
//! | Metadata, DescribeConfigs | brokers, a topic's id and partitions, `transaction.max.timeout.ms`, a topic's retention |
//! | ListOffsets | where a source begins and ends |
//! | FindCoordinator | of a transactional id, of a ledger group |
//! | InitProducerId | fences an id and aborts what is open under it |
//! | AddOffsetsToTxn, TxnOffsetCommit | offsets inside a transaction: the ledger's, a source's |
//! | EndTxn | commits a transaction of any process |
//! | OffsetFetch | reads a ledger, as it stands or only when it is stable; a group's offsets |
//! | ListGroups | the ledgers of a sink |
//! | OffsetCommit | notes what an operator has decided |
//! | ListTransactions, DescribeTransactions | what was left over |
//!
//! Every request has a time limit; what has no answer ends its connection, since a late answer would belong to no request. Messages are
//! those of <https://kafka.apache.org/protocol>, encoded by the crate `kafka-protocol`. Plain connections only: SASL and TLS are not
//! spoken here.
//!
//! Owns: connections, versions, correlation, coordinators. Does not own: which request comes next (see [`tidegate_engine::broker`]).
//! Runs on: the I/O side, on tokio.

mod client;
mod cluster;
mod connection;
mod error;
mod ledger;
mod request;
mod topics;
mod transactions;

pub use client::{CoordinatorKind, WireClient};
pub use cluster::{ClusterBroker, READ, TOPIC_DENIED, WRITE};
pub use connection::OfferedVersions;
pub use error::WireError;
pub use ledger::{LEDGER_PARTITION, LedgerEntry};
pub use request::WireRequest;
pub use topics::{EARLIEST, LATEST, TopicDescription, topic_id_text};
pub use transactions::{DescribedTransaction, ListedTransaction};
