//! What can go wrong with a topic.
//!
//! Owns: the enum. Does not own: the failures of the client, which are its sources. Runs on: nowhere.

use std::path::PathBuf;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::admin::PATIENCE;
use crate::address::servers::KafkaAddress;

/// See the module.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TopicError {
    /// A client that cannot be made.
    #[error("cannot make a client of {bootstrap}\n  help: check --kafka HOST:PORT")]
    Client {
        /// The cluster.
        bootstrap: String,
        /// Why not.
        #[source]
        source: KafkaError,
    },
    /// No thread for the client.
    #[error("cannot speak to Kafka: no thread for it can be had")]
    Runtime(#[source] std::io::Error),
    /// Nobody listens there.
    #[error(
        "connecting to {bootstrap} failed\n  help: is a Kafka broker running there, and may this host reach it?"
    )]
    Unreachable {
        /// The cluster.
        bootstrap: String,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// Its transactions cannot be listed.
    #[error("cannot list the transactions of {bootstrap}")]
    Transactions {
        /// The cluster.
        bootstrap: String,
        /// Why not.
        #[source]
        source: Box<tidegate::engine::api::ConnectorError>,
    },
    /// The cluster is away or refuses.
    #[error("cannot {action} {address}\n  help: check that the broker runs and the topic is the one meant")]
    Refused {
        /// What was tried.
        action: &'static str,
        /// The topic.
        address: KafkaAddress,
        /// Why not.
        #[source]
        source: KafkaError,
    },
    /// The broker answers with an error for this topic.
    #[error("the broker does not {action} {address}: {code}")]
    Topic {
        /// What was tried.
        action: &'static str,
        /// The topic.
        address: KafkaAddress,
        /// Its word.
        code: RDKafkaErrorCode,
    },
    /// The topic has records.
    #[error(
        "{address} has {records} records already\n  help: give another topic, or --force to remove this one first"
    )]
    NotEmpty {
        /// The topic.
        address: KafkaAddress,
        /// How many.
        records: u64,
    },
    /// There is no such topic.
    #[error(
        "there is no topic {address}\n  help: an input is filled by `orders produce --kafka {} --topic {} --orders N`; an output is written by \
         `orders run`: see whether a job has run into it",
        .address.bootstrap,
        .address.topic
    )]
    NoTopic {
        /// The topic.
        address: KafkaAddress,
    },
    /// Another number of partitions than asked for.
    #[error(
        "{address} has {found} partitions, not {asked}\n  help: give --partitions {found}, another topic, or --force"
    )]
    Partitions {
        /// The topic.
        address: KafkaAddress,
        /// It has.
        found: usize,
        /// Asked for.
        asked: u32,
    },
    /// Records that were sent and not acknowledged.
    #[error(
        "{lost} of the records sent to {address} were not acknowledged\n  help: check the broker's log, then --force"
    )]
    Undelivered {
        /// The topic.
        address: KafkaAddress,
        /// How many.
        lost: u64,
    },
    /// A topic that was made and cannot be written to.
    #[error(
        "{address} was made, and after {} s {led} of its {count} partitions have a leader\n  help: see whether all brokers run; then --force",
        PATIENCE.as_secs()
    )]
    NoLeader {
        /// The topic.
        address: KafkaAddress,
        /// Partitions with a leader.
        led: usize,
        /// All.
        count: u32,
    },
    /// Nothing comes although the end is not reached.
    #[error(
        "nothing comes from {address} partition {partition} behind offset {offset}, although it ends at {end}\n  help: a transaction that is open hides what follows it: see tidegate txn list"
    )]
    Stuck {
        /// The topic.
        address: KafkaAddress,
        /// The partition.
        partition: i32,
        /// The next offset to read.
        offset: i64,
        /// The end.
        end: i64,
    },
    /// The folder of orders.
    #[error("cannot read orders from {path}\n  help: give a folder written by orders generate or import")]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// Why not.
        #[source]
        source: std::io::Error,
    },
    /// A topic cannot have this name.
    #[error("no topic can have this name")]
    Name {
        /// Why not.
        #[source]
        source: std::io::Error,
    },
}
