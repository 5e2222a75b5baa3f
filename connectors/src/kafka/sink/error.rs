//! What can go wrong in a Kafka sink, sorted by what people can do about it.
//!
//! Owns: the error, whether a restart may help. Does not own: codes of the broker ([`tidegate_engine::broker::BrokerCode`]).
//! Runs on: plain data.

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use tidegate_engine::api::ConnectorError;
use tidegate_engine::broker::{BrokerCode, TimeoutRefusal};
use tidegate_engine::io::IoGone;

use crate::kafka::committer_decisions::VersionRefusal;
use crate::kafka::config::KafkaConfigError;
use crate::kafka::wire::WireError;

/// An error of a Kafka sink.
#[derive(Debug, thiserror::Error)]
pub enum KafkaSinkError {
    /// Brokers or properties that are refused.
    #[error(transparent)]
    Config(#[from] KafkaConfigError),
    /// A timeout that does not fit checkpoints or brokers.
    #[error("the sink into the topic {topic}: {source}")]
    Timeout {
        /// The topic.
        topic: String,
        /// Why.
        source: TimeoutRefusal,
    },
    /// A setting of the sink that cannot work.
    #[error("the sink into the topic {topic}: {problem}\n  help: {remedy}")]
    Setting {
        /// The topic.
        topic: String,
        /// What is wrong.
        problem: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A topic that is not there.
    #[error(
        "the cluster at {bootstrap} has no topic {topic}\n  help: create it before the job is started, with as many partitions as it \
         shall have: kafka-topics.sh --create --topic {topic}"
    )]
    NoTopic {
        /// Where it was looked for.
        bootstrap: String,
        /// The topic.
        topic: String,
    },
    /// A right that this client does not have.
    #[error(
        "the sink into the topic {topic}: the brokers do not let this client {what}\n  help: kafka-acls.sh --add --allow-principal User:.. \
         {rule}"
    )]
    NotAllowed {
        /// The topic.
        topic: String,
        /// What it may not do.
        what: String,
        /// The rule that would allow it, as `kafka-acls.sh` takes it.
        rule: String,
    },
    /// Another topic of the same name.
    #[error(
        "the topic {topic} was deleted and created again while the job wrote into it: its id was {was} and is {is}; what had been \
         committed went with the old topic\n  help: start the job again with `--restore none` to write everything into the new topic; \
         without it the job goes on from its last checkpoint, and tells which transactions are lost"
    )]
    TopicRecreated {
        /// The topic.
        topic: String,
        /// Id before.
        was: String,
        /// Id now.
        is: String,
    },
    /// A request of ours came to nothing.
    #[error("{doing} failed")]
    Wire {
        /// What was tried.
        doing: String,
        /// Why.
        #[source]
        source: WireError,
    },
    /// Asked again until patience was over.
    #[error("{doing} was tried {tries} times; the last answer: {last}")]
    GaveUp {
        /// What was tried.
        doing: String,
        /// How often.
        tries: u32,
        /// What came last.
        last: String,
    },
    /// A broker that cannot end a transaction in a way whose answers are known.
    #[error(transparent)]
    Version(#[from] VersionRefusal),
    /// librdkafka could not make a producer.
    #[error(
        "the Kafka client refuses its properties\n  help: look at the names and values given with .property(..)"
    )]
    Client {
        /// What it says.
        #[source]
        source: KafkaError,
    },
    /// A transactional id was not initialised.
    #[error(
        "no producer could be made for the transactional id {id}\n  help: see whether the brokers are up, and whether the job may \
         write with transactional ids of this prefix"
    )]
    Initialise {
        /// The id.
        id: String,
        /// What librdkafka says.
        #[source]
        source: KafkaError,
    },
    /// An initialisation may still be on its way.
    #[error(
        "the initialisation of the transactional id {id} was sent {sent} times, and a request got no answer: it could still abort \
         what is written under this id, so that it is not used"
    )]
    InitialisedTwice {
        /// The id.
        id: String,
        /// How often it was sent.
        sent: i64,
    },
    /// The producer's identity was not told, or is another one now.
    #[error("the producer of the transactional id {id} does not tell who it is: {found}")]
    NoIdentity {
        /// The id.
        id: String,
        /// What is known.
        found: String,
    },
    /// A record was not delivered.
    #[error("{record} was not delivered into the topic {topic}{advice}")]
    Delivery {
        /// The topic.
        topic: String,
        /// The record: its number from 1, among those this subtask wrote in this attempt, its key, size and event time.
        record: String,
        /// Why, where it is known, and what helps.
        advice: String,
        /// What librdkafka says.
        #[source]
        source: KafkaError,
    },
    /// The producer can do nothing more.
    #[error("the producer for the topic {topic} has failed for good: {reason}")]
    Fatal {
        /// The topic.
        topic: String,
        /// What librdkafka says.
        reason: String,
    },
    /// Deliveries and records do not add up.
    #[error("{delivered} of {sent} records for the topic {topic} are confirmed within {waited_ms} ms")]
    Unconfirmed {
        /// The topic.
        topic: String,
        /// Records handed over.
        sent: u64,
        /// Records confirmed.
        delivered: u64,
        /// How long was waited.
        waited_ms: u64,
    },
    /// A record that its serializer refuses.
    #[error(
        "record {record} for the topic {topic} cannot be serialized\n  help: let the operator before the sink drop or mend such records"
    )]
    Serialize {
        /// The topic.
        topic: String,
        /// The record, from 1, among those this subtask wrote in this attempt.
        record: u64,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A partition that the topic does not have.
    #[error(
        "record {record} is to go to partition {partition} of the topic {topic}, which has {partitions}\n  help: let .partition_by(..) \
         stay below the number it is given"
    )]
    Partition {
        /// The topic.
        topic: String,
        /// The record, from 1, among those this subtask wrote in this attempt.
        record: u64,
        /// Where it is to go.
        partition: u32,
        /// How many there are.
        partitions: u32,
    },
    /// A transaction that failed before: its records are no longer held.
    #[error(
        "the open transaction for the topic {topic} failed before; its records are gone, restart from the last checkpoint"
    )]
    WriterBroken {
        /// The topic.
        topic: String,
    },
    /// The I/O side went away.
    #[error("writing to the topic {topic} was cut short")]
    CutShort {
        /// The topic.
        topic: String,
        /// Why.
        #[source]
        source: IoGone,
    },
}

impl KafkaSinkError {
    /// Whether a restart from the last checkpoint may help.
    pub fn is_restartable(&self) -> bool {
        match self {
            Self::GaveUp { .. }
            | Self::InitialisedTwice { .. }
            | Self::NoIdentity { .. }
            | Self::Unconfirmed { .. }
            | Self::Fatal { .. }
            | Self::WriterBroken { .. }
            | Self::CutShort { .. } => true,
            Self::Wire { source, .. } => !is_final_wire(source),
            Self::Initialise { source, .. } | Self::Delivery { source, .. } => !is_final(source),
            Self::Config(_)
            | Self::Timeout { .. }
            | Self::Setting { .. }
            | Self::NoTopic { .. }
            | Self::NotAllowed { .. }
            | Self::TopicRecreated { .. }
            | Self::Version(_)
            | Self::Client { .. }
            | Self::Serialize { .. }
            | Self::Partition { .. } => false,
        }
    }
}

/// Broker codes that no restart mends: rights, unsupported versions, a timeout above the maximum, records that a topic does not take.
const FINAL_CODES: [i16; 12] = [10, 17, 18, 29, 30, 31, 32, 35, 44, 50, 53, 87];

fn is_final_wire(error: &WireError) -> bool {
    match error {
        WireError::Refused { code: BrokerCode(code), .. } => FINAL_CODES.contains(code),
        WireError::NotOffered { .. } | WireError::Malformed { .. } => true,
        WireError::NoAnswer { .. } => false,
    }
}

fn is_final(error: &KafkaError) -> bool {
    matches!(
        error.rdkafka_error_code(),
        Some(
            RDKafkaErrorCode::TopicAuthorizationFailed
                | RDKafkaErrorCode::ClusterAuthorizationFailed
                | RDKafkaErrorCode::TransactionalIdAuthorizationFailed
                | RDKafkaErrorCode::InvalidTransactionTimeout
                | RDKafkaErrorCode::MessageSizeTooLarge
                | RDKafkaErrorCode::MessageBatchTooLarge
                | RDKafkaErrorCode::InvalidTimestamp
                | RDKafkaErrorCode::PolicyViolation
                | RDKafkaErrorCode::InvalidRecord
                | RDKafkaErrorCode::InvalidDifferentRecord
                | RDKafkaErrorCode::InvalidTopic
                | RDKafkaErrorCode::UnsupportedVersion
        )
    )
}

impl From<KafkaSinkError> for ConnectorError {
    fn from(error: KafkaSinkError) -> Self {
        let connector = if error.is_restartable() { Self::transient(&error) } else { Self::fatal(&error) };
        match error {
            KafkaSinkError::Wire { source, .. } => connector.caused_by(source),
            KafkaSinkError::Client { source }
            | KafkaSinkError::Initialise { source, .. }
            | KafkaSinkError::Delivery { source, .. } => connector.caused_by(source),
            KafkaSinkError::Serialize { source, .. } => connector.caused_by(source),
            KafkaSinkError::CutShort { source, .. } => connector.caused_by(source),
            _ => connector,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn undelivered(code: RDKafkaErrorCode) -> KafkaSinkError {
        let [topic, record, advice] = ["orders", "record 1", ""].map(str::to_owned);
        KafkaSinkError::Delivery { topic, record, advice, source: KafkaError::MessageProduction(code) }
    }

    #[test]
    fn a_record_that_is_refused_for_what_it_is_is_not_written_again_and_one_that_got_no_answer_is() {
        for code in [
            RDKafkaErrorCode::MessageSizeTooLarge,
            RDKafkaErrorCode::MessageBatchTooLarge,
            RDKafkaErrorCode::InvalidTimestamp,
            RDKafkaErrorCode::PolicyViolation,
            RDKafkaErrorCode::InvalidRecord,
        ] {
            assert!(!undelivered(code).is_restartable(), "{code:?}");
            let (address, code) = ("h:1".to_owned(), BrokerCode(code as i16));
            let source = WireError::Refused { request: "Produce", address, code };
            assert!(is_final_wire(&source), "{code}");
        }
        assert!(undelivered(RDKafkaErrorCode::MessageTimedOut).is_restartable());
        assert!(undelivered(RDKafkaErrorCode::PurgeQueue).is_restartable());
    }
}
