//! What a Kafka sink looks at before its job runs: the topic, what brokers offer and allow.
//!
//! Owns: the checks. Does not own: when they run (the engine), the rule about timeouts ([`TransactionTimeout`]).
//! Runs on: the I/O side.

use kafka_protocol::messages::ApiKey;
use tidegate_engine::api::PreflightContext;
use tidegate_engine::broker::TransactionTimeout;

use super::kafka_sink::partitions_of;
use super::{KafkaSink, KafkaSinkError};
use crate::kafka::committer_decisions::EndTxnVersion;
use crate::kafka::wire::{ClusterBroker, WireClient, WireError};

/// The brokers' own limit of a transaction timeout.
const MAXIMUM: &str = "transaction.max.timeout.ms";
/// What it is where it was not changed, for a broker that does not tell.
const MAXIMUM_DEFAULT_MS: u64 = 900_000;

/// What the protocol needs of each broker: the request, and the versions known here.
const NEEDED: [(ApiKey, &str, i16, i16); 6] = [
    (ApiKey::InitProducerId, "InitProducerId", 2, 4),
    (ApiKey::AddOffsetsToTxn, "AddOffsetsToTxn", 0, 3),
    (ApiKey::TxnOffsetCommit, "TxnOffsetCommit", 0, 3),
    (ApiKey::OffsetFetch, "OffsetFetch", 7, 7),
    (ApiKey::ListTransactions, "ListTransactions", 0, 1),
    (ApiKey::DescribeTransactions, "DescribeTransactions", 0, 0),
];

/// Of a sink in two phases.
pub(super) async fn two_phase<T>(
    sink: &KafkaSink<T>,
    context: &PreflightContext,
) -> Result<Vec<String>, KafkaSinkError> {
    let mut wire = sink.wire(&context.io);
    partitions_of(&mut wire, sink.config.bootstrap(), &sink.topic).await?;
    let failed = |source| KafkaSinkError::Wire { doing: "looking at the brokers".to_owned(), source };
    let brokers = wire.brokers().await.map_err(failed)?;
    let mut warnings = Vec::new();
    let mut maximum_ms = u64::MAX;
    for broker in &brokers {
        refuse_old(&mut wire, broker).await?;
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
    Ok(warnings)
}

/// Of a sink without transactions.
pub(super) async fn at_least_once<T>(
    sink: &KafkaSink<T>,
    context: &PreflightContext,
) -> Result<Vec<String>, KafkaSinkError> {
    partitions_of(&mut sink.wire(&context.io), sink.config.bootstrap(), &sink.topic).await?;
    Ok(Vec::new())
}

async fn refuse_old(wire: &mut WireClient, broker: &ClusterBroker) -> Result<(), KafkaSinkError> {
    let doing = || format!("looking at what the broker at {} offers", broker.address);
    let offered = wire.offered(&broker.address).await;
    let offered = offered.map_err(|source| KafkaSinkError::Wire { doing: doing(), source })?;
    for (key, request, oldest, newest) in NEEDED {
        let fits = offered.of(key).is_some_and(|of| *of.start() <= newest && *of.end() >= oldest);
        if !fits {
            let address = broker.address.clone();
            let source = WireError::NotOffered { request, address, oldest, newest };
            return Err(KafkaSinkError::Wire { doing: doing(), source });
        }
    }
    EndTxnVersion::choose(&offered.end_txn())?;
    Ok(())
}
