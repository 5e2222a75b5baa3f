//! Makes, removes and measures topics.
//!
//! Owns: that a topic with records in it is not written to a second time by mistake. Does not own: the records.
//! Runs on: the calling thread, which waits; the client has threads of its own.

use std::io;
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::RDKafkaErrorCode;
use rdkafka::metadata::MetadataTopic;
use rdkafka::types::RDKafkaRespErr;
use tidegate::connectors::kafka::TransactionAdmin;
use tidegate::engine::io::TokioIo;
use tidegate_jobs::stopwatch::Stopwatch;

use super::TopicError;
use crate::address::servers::KafkaAddress;

/// An answer that takes longer does not come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);
/// A broker that takes no connection, or says nothing on it, within this time is away.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at something that takes its time.
const PAUSE: Duration = Duration::from_millis(50);

/// What every client of a cluster is told.
pub(crate) fn client(bootstrap: &str) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", bootstrap).set("client.id", "tidegate-orders");
    // What the client says beside its answers is not for people who run an audit.
    config.set_log_level(rdkafka::config::RDKafkaLogLevel::Critical);
    config
}

/// Whether anybody listens at one of the addresses. librdkafka would try for as long as it is waited for, and then not say why.
fn reach(bootstrap: &str) -> Result<(), TopicError> {
    let mut refused = io::Error::new(io::ErrorKind::AddrNotAvailable, "no address has this name");
    for server in bootstrap.split(',') {
        let addresses = match server.to_socket_addrs() {
            Ok(addresses) => addresses,
            Err(error) => {
                refused = error;
                continue;
            }
        };
        for address in addresses {
            match TcpStream::connect_timeout(&address, CONNECT_PATIENCE) {
                Ok(_) => return Ok(()),
                Err(error) => refused = error,
            }
        }
    }
    Err(TopicError::Unreachable { bootstrap: bootstrap.to_owned(), source: refused })
}

/// A consumer that belongs to no group's members and commits nothing, of a cluster that can be reached.
///
/// # Errors
/// [`TopicError::Client`], [`TopicError::Unreachable`].
pub(crate) fn consumer(bootstrap: &str) -> Result<BaseConsumer, TopicError> {
    reach(bootstrap)?;
    client(bootstrap)
        .set("group.id", "tidegate-orders-audit")
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        .set("enable.partition.eof", "true")
        .set("auto.offset.reset", "earliest")
        .create()
        .map_err(|source| TopicError::Client { bootstrap: bootstrap.to_owned(), source })
}

/// Partitions of a topic; none: there is no such topic.
///
/// # Errors
/// [`TopicError`].
pub(crate) fn partitions(
    consumer: &BaseConsumer,
    address: &KafkaAddress,
) -> Result<Option<usize>, TopicError> {
    let action = "look at";
    let metadata = consumer
        .fetch_metadata(Some(&address.topic), CONNECT_PATIENCE)
        .map_err(|source| TopicError::Refused { action, address: address.clone(), source })?;
    let Some(topic) = metadata.topics().first() else { return Ok(None) };
    match topic.error().map(RDKafkaErrorCode::from) {
        None if topic.partitions().is_empty() => Ok(None),
        None => Ok(Some(topic.partitions().len())),
        Some(RDKafkaErrorCode::UnknownTopicOrPartition | RDKafkaErrorCode::UnknownTopic) => Ok(None),
        Some(code) => Err(TopicError::Topic { action, address: address.clone(), code }),
    }
}

/// First and last offset of a partition; the last one is where the next record goes.
///
/// # Errors
/// [`TopicError::Refused`].
pub(crate) fn offsets(
    consumer: &BaseConsumer,
    address: &KafkaAddress,
    partition: i32,
) -> Result<(i64, i64), TopicError> {
    let watch = Stopwatch::started();
    loop {
        let source = match consumer.fetch_watermarks(&address.topic, partition, PATIENCE) {
            Ok(found) => return Ok(found),
            Err(source) => source,
        };
        // A broker that has just started, or whose leaders move, is asked again.
        if !source.rdkafka_error_code().is_some_and(is_passing) || watch.elapsed() >= CONNECT_PATIENCE {
            return Err(TopicError::Refused {
                action: "ask for the end of",
                address: address.clone(),
                source,
            });
        }
        std::thread::park_timeout(PAUSE);
    }
}

fn is_passing(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::AllBrokersDown
            | RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::LeaderNotAvailable
            | RDKafkaErrorCode::NotLeaderForPartition
            | RDKafkaErrorCode::UnknownTopicOrPartition
            | RDKafkaErrorCode::UnknownPartition
    )
}

/// Makes the topic, and waits until each of its partitions has a leader. One that is there already must be empty and have as many
/// partitions, or is removed first with `force`.
///
/// # Errors
/// [`TopicError`].
pub(crate) fn create(address: &KafkaAddress, count: u32, force: bool) -> Result<(), TopicError> {
    let consumer = consumer(&address.bootstrap)?;
    if let Some(found) = partitions(&consumer, address)? {
        if !force {
            return refuse_unfit(&consumer, address, found, count);
        }
        delete(&consumer, address)?;
    }
    let partitions_asked = i32::try_from(count).unwrap_or(i32::MAX);
    let topic = NewTopic::new(&address.topic, partitions_asked, TopicReplication::Fixed(1))
        // Orders bear times of their own, which retention would go by.
        .set("retention.ms", "-1");
    let watch = Stopwatch::started();
    loop {
        match make(address, &topic)? {
            None => break,
            // A topic of this name is still being removed.
            Some(RDKafkaErrorCode::TopicAlreadyExists) if watch.elapsed() < PATIENCE => {
                std::thread::park_timeout(PAUSE);
            }
            Some(code) => return Err(TopicError::Topic { action: "create", address: address.clone(), code }),
        }
    }
    loop {
        let led = led(&consumer, address)?;
        if led == count as usize {
            return Ok(());
        }
        if watch.elapsed() >= PATIENCE {
            return Err(TopicError::NoLeader { address: address.clone(), led, count });
        }
        std::thread::park_timeout(PAUSE);
    }
}

/// How many partitions of a topic can be written to and read: the controller makes them, and the brokers learn a little later who leads
/// each.
fn led(consumer: &BaseConsumer, address: &KafkaAddress) -> Result<usize, TopicError> {
    let metadata = consumer.fetch_metadata(Some(&address.topic), PATIENCE);
    let metadata = metadata.map_err(|source| TopicError::Refused {
        action: "look at",
        address: address.clone(),
        source,
    })?;
    let partitions = metadata.topics().iter().flat_map(MetadataTopic::partitions);
    Ok(partitions.filter(|partition| is_led(partition.leader(), partition.error())).count())
}

fn is_led(leader: i32, error: Option<RDKafkaRespErr>) -> bool {
    leader >= 0 && error.is_none()
}

/// Partitions whose end for readers of committed records lies before their end: a transaction is open there.
///
/// # Errors
/// [`TopicError`].
pub(crate) fn held_back(address: &KafkaAddress) -> Result<u64, TopicError> {
    let committed = consumer(&address.bootstrap)?;
    let all: BaseConsumer = client(&address.bootstrap)
        .set("group.id", "tidegate-orders-audit")
        .set("isolation.level", "read_uncommitted")
        .create()
        .map_err(|source| TopicError::Client { bootstrap: address.bootstrap.clone(), source })?;
    let count = partitions(&all, address)?.ok_or_else(|| TopicError::NoTopic { address: address.clone() })?;
    let mut held = 0;
    for partition in 0..i32::try_from(count).unwrap_or(i32::MAX) {
        let (_, stable) = offsets(&committed, address, partition)?;
        let (_, end) = offsets(&all, address, partition)?;
        held += u64::from(stable < end);
    }
    Ok(held)
}

/// Transactions of the job with this log that are open at the cluster.
///
/// # Errors
/// [`TopicError`].
pub(crate) fn open_transactions(address: &KafkaAddress, log_id: &str) -> Result<u64, TopicError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(TopicError::Runtime)?;
    let mut admin = TransactionAdmin::new(&address.bootstrap, TokioIo::shared(runtime.handle().clone()));
    let open = runtime.block_on(admin.list(true)).map_err(|source| TopicError::Transactions {
        bootstrap: address.bootstrap.clone(),
        source: Box::new(source),
    })?;
    Ok(open.iter().filter(|transaction| transaction.owner.log_id == log_id).count() as u64)
}

fn refuse_unfit(
    consumer: &BaseConsumer,
    address: &KafkaAddress,
    found: usize,
    asked: u32,
) -> Result<(), TopicError> {
    let mut records: u64 = 0;
    for partition in 0..i32::try_from(found).unwrap_or(i32::MAX) {
        let (first, end) = offsets(consumer, address, partition)?;
        records += (end - first).unsigned_abs();
    }
    match records {
        0 if found == asked as usize => Ok(()),
        0 => Err(TopicError::Partitions { address: address.clone(), found, asked }),
        records => Err(TopicError::NotEmpty { address: address.clone(), records }),
    }
}

fn delete(consumer: &BaseConsumer, address: &KafkaAddress) -> Result<(), TopicError> {
    let action = "delete";
    let admin = Admin::of(address)?;
    let results = admin
        .runtime
        .block_on(admin.client.delete_topics(&[&address.topic], &admin.options))
        .map_err(|source| TopicError::Refused { action, address: address.clone(), source })?;
    for result in results {
        match result {
            Ok(_) | Err((_, RDKafkaErrorCode::UnknownTopicOrPartition)) => {}
            Err((_, code)) => return Err(TopicError::Topic { action, address: address.clone(), code }),
        }
    }
    let watch = Stopwatch::started();
    while partitions(consumer, address)?.is_some() && watch.elapsed() < PATIENCE {
        std::thread::park_timeout(PAUSE);
    }
    Ok(())
}

/// The broker's word, if it is a refusal.
fn make(address: &KafkaAddress, topic: &NewTopic<'_>) -> Result<Option<RDKafkaErrorCode>, TopicError> {
    let admin = Admin::of(address)?;
    let results = admin
        .runtime
        .block_on(admin.client.create_topics([topic], &admin.options))
        .map_err(|source| TopicError::Refused { action: "create", address: address.clone(), source })?;
    Ok(results.into_iter().find_map(|result| result.err().map(|(_, code)| code)))
}

/// An administrator's client, with the thread that waits for its answers.
struct Admin {
    runtime: tokio::runtime::Runtime,
    client: AdminClient<DefaultClientContext>,
    options: AdminOptions,
}

impl Admin {
    fn of(address: &KafkaAddress) -> Result<Self, TopicError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(TopicError::Runtime)?;
        let client = client(&address.bootstrap)
            .create()
            .map_err(|source| TopicError::Client { bootstrap: address.bootstrap.clone(), source })?;
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE));
        Ok(Self { runtime, client, options })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_nobody_listens_the_reason_is_told_at_once() {
        let error = consumer("127.0.0.1:1").map(drop).unwrap_err();
        let said = tidegate::error_text(&error);
        assert!(said.contains("127.0.0.1:1") && said.contains("help: "), "{said}");
        assert!(said.contains("Connection refused"), "{said}");
    }

    #[test]
    fn a_partition_can_be_written_to_when_it_has_a_leader_and_no_error() {
        assert!(is_led(0, None));
        assert!(!is_led(-1, None));
        assert!(!is_led(1, Some(RDKafkaRespErr::RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE)));
    }
}
