//! What a Kafka sink looks at before its job runs: the topic, what brokers offer and allow, what this client may do.
//!
//! Rights are looked at as the job will use them: the topic's are told by the brokers, those of transactional ids and ledger groups are
//! tried with names that no transaction has (`tidegate.<job>.trial`, `tidegate-ledger.<job>.trial`). A right for single ids, or to write
//! that is taken away later, is met while the job runs, and fails it for good.
//!
//! Owns: the checks. Does not own: when they run (the engine), the rule about timeouts ([`TransactionTimeout`]).
//! Runs on: the I/O side.

use std::time::Duration;

use kafka_protocol::messages::ApiKey;
use tidegate_engine::api::PreflightContext;
use tidegate_engine::broker::{BrokerCode, TransactionTimeout};

use super::committer::fence;
use super::{KafkaSink, KafkaSinkError, topic};
use crate::kafka::committer_decisions::EndTxnVersion;
use crate::kafka::transactional_id::{trial_id, trial_ledger};
use crate::kafka::wire::{ClusterBroker, OfferedVersions, READ, TOPIC_DENIED, WRITE, WireClient, WireError};

/// The group, the transactional id, is not this client's to use.
const GROUP_DENIED: BrokerCode = BrokerCode(30);
const ID_DENIED: BrokerCode = BrokerCode(53);
/// A coordinator that is being elected is asked again so often, after so long.
const LOOKS_MAX: u32 = 20;
const LOOK_PAUSE: Duration = Duration::from_millis(250);

/// The brokers' own limit of a transaction timeout.
const MAXIMUM: &str = "transaction.max.timeout.ms";
/// What it is where it was not changed, for a broker that does not tell.
const MAXIMUM_DEFAULT_MS: u64 = 900_000;

/// What the protocol needs of each broker: the request, and the versions known here.
type Needed = (ApiKey, &'static str, i16, i16);
const NEEDED: [Needed; 6] = [
    (ApiKey::InitProducerId, "InitProducerId", 2, 4),
    (ApiKey::AddOffsetsToTxn, "AddOffsetsToTxn", 0, 3),
    (ApiKey::TxnOffsetCommit, "TxnOffsetCommit", 0, 3),
    (ApiKey::OffsetFetch, "OffsetFetch", 7, 7),
    (ApiKey::ListTransactions, "ListTransactions", 0, 1),
    (ApiKey::DescribeTransactions, "DescribeTransactions", 0, 0),
];

/// The same of a sink without transactions: its client library makes an idempotent producer.
const NEEDED_AT_LEAST_ONCE: [Needed; 1] = [(ApiKey::InitProducerId, "InitProducerId", 0, 4)];

/// Of a sink in two phases.
pub(super) async fn two_phase<T>(
    sink: &KafkaSink<T>,
    context: &PreflightContext,
) -> Result<Vec<String>, KafkaSinkError> {
    let mut wire = sink.wire(&context.io);
    topic::find(&mut wire, sink.config.bootstrap(), &sink.topic).await?;
    let failed = |source| KafkaSinkError::Wire { doing: "looking at the brokers".to_owned(), source };
    let brokers = wire.brokers().await.map_err(failed)?;
    let mut warnings = Vec::new();
    let mut maximum_ms = u64::MAX;
    for broker in &brokers {
        let offered = refuse_old(&mut wire, broker, &NEEDED).await?;
        EndTxnVersion::choose(&offered.end_txn())?;
        match wire.broker_setting(broker, MAXIMUM).await.map(|told| told.and_then(|text| text.parse().ok())) {
            Ok(Some(ms)) => maximum_ms = maximum_ms.min(ms),
            // Without the right to describe brokers.
            Ok(None) | Err(WireError::Refused { .. }) => {
                maximum_ms = maximum_ms.min(MAXIMUM_DEFAULT_MS);
                let address = &broker.address;
                warnings.push(format!(
                    "the broker at {address} does not tell its {MAXIMUM}; {MAXIMUM_DEFAULT_MS} is assumed"
                ));
            }
            Err(source) => return Err(failed(source)),
        }
    }
    let outage_ms = u64::try_from(sink.longest_outage.as_millis()).unwrap_or(u64::MAX);
    let asked_ms = sink.transaction_timeout_ms();
    TransactionTimeout::check(asked_ms, &context.checkpoints, outage_ms, maximum_ms)
        .map_err(|source| KafkaSinkError::Timeout { topic: sink.topic.to_string(), source })?;
    // Offsets of a topic are committed with a right to read it.
    may(&mut wire, &sink.topic, &[(WRITE, "write"), (READ, "read")]).await?;
    may_write_with_ids(&mut wire, &sink.topic, &context.job.0).await?;
    may_use_ledgers(&mut wire, &sink.topic, &context.job.0).await?;
    Ok(warnings)
}

/// Of a sink without transactions.
pub(super) async fn at_least_once<T>(
    sink: &KafkaSink<T>,
    context: &PreflightContext,
) -> Result<Vec<String>, KafkaSinkError> {
    let mut wire = sink.wire(&context.io);
    topic::find(&mut wire, sink.config.bootstrap(), &sink.topic).await?;
    let failed = |source| KafkaSinkError::Wire { doing: "looking at the brokers".to_owned(), source };
    for broker in &wire.brokers().await.map_err(failed)? {
        refuse_old(&mut wire, broker, &NEEDED_AT_LEAST_ONCE).await?;
    }
    may(&mut wire, &sink.topic, &[(WRITE, "write")]).await?;
    Ok(Vec::new())
}

fn denied(topic: &str, what: String, rule: String) -> KafkaSinkError {
    KafkaSinkError::NotAllowed { topic: topic.to_owned(), what, rule }
}

async fn may(wire: &mut WireClient, topic: &str, operations: &[(i32, &str)]) -> Result<(), KafkaSinkError> {
    let refused = |operation: &str| {
        denied(topic, format!("{operation} the topic"), format!("--operation {operation} --topic {topic}"))
    };
    match wire.topic_operations(topic).await {
        Ok(Some(allowed)) => match operations.iter().find(|(bit, _)| allowed & bit == 0) {
            Some((_, operation)) => Err(refused(operation)),
            None => Ok(()),
        },
        // A broker that does not tell: what it refuses is told while the job runs.
        Ok(None) | Err(WireError::NotOffered { .. }) => Ok(()),
        Err(error) if error.code() == Some(TOPIC_DENIED) => Err(refused("write")),
        Err(source) => {
            Err(KafkaSinkError::Wire { doing: format!("asking for the rights in the topic {topic}"), source })
        }
    }
}

/// Under the trial id nothing is ever open, and no job waits for it.
async fn may_write_with_ids(wire: &mut WireClient, topic: &str, job: &str) -> Result<(), KafkaSinkError> {
    let (id, prefix) = trial_id(job);
    match fence(wire, &id).await {
        Err(KafkaSinkError::Wire { source, .. }) if source.code() == Some(ID_DENIED) => Err(denied(
            topic,
            format!("write with the transactional id {id}"),
            format!("--operation write --transactional-id {prefix} --resource-pattern-type prefixed"),
        )),
        fenced => fenced,
    }
}

async fn may_use_ledgers(wire: &mut WireClient, topic: &str, job: &str) -> Result<(), KafkaSinkError> {
    let (group, prefix) = trial_ledger(job);
    let mut looks = 0;
    loop {
        looks += 1;
        match wire.ledger_offset(&group, topic, false).await {
            Ok(_) => return Ok(()),
            Err(error) if error.code() == Some(GROUP_DENIED) => {
                return Err(denied(
                    topic,
                    format!("use the consumer group {group}"),
                    format!("--operation read --group {prefix} --resource-pattern-type prefixed"),
                ));
            }
            Err(error) if error.is_transient() && looks < LOOKS_MAX => wire.sleep(LOOK_PAUSE).await,
            Err(source) => {
                return Err(KafkaSinkError::Wire { doing: format!("looking at the group {group}"), source });
            }
        }
    }
}

async fn refuse_old(
    wire: &mut WireClient,
    broker: &ClusterBroker,
    needed: &[Needed],
) -> Result<OfferedVersions, KafkaSinkError> {
    let doing = || format!("looking at what the broker at {} offers", broker.address);
    let offered = wire.offered(&broker.address).await;
    let offered = offered.map_err(|source| KafkaSinkError::Wire { doing: doing(), source })?;
    for &(key, request, oldest, newest) in needed {
        let fits = offered.of(key).is_some_and(|of| *of.start() <= newest && *of.end() >= oldest);
        if !fits {
            let address = broker.address.clone();
            let source = WireError::NotOffered { request, address, oldest, newest };
            return Err(KafkaSinkError::Wire { doing: doing(), source });
        }
    }
    Ok(offered)
}
