//! What can go wrong with a Kafka source.
//!
//! Owns: the cases, their words and whether a restart may help. Does not own: the policy for bad records. Runs on: plain data.

use tidegate_engine::api::ConnectorError;
use tidegate_engine::io::IoGone;

use crate::kafka::config::KafkaConfigError;
use crate::kafka::wire::WireError;

/// A failure of the Kafka source.
#[derive(Debug, thiserror::Error)]
pub enum KafkaSourceError {
    /// The settings are refused.
    #[error(transparent)]
    Config(#[from] KafkaConfigError),
    /// Two settings do not go together.
    #[error("{problem}\n  help: {remedy}")]
    Settings {
        /// What is wrong.
        problem: &'static str,
        /// What to do.
        remedy: &'static str,
    },
    /// No broker answers, or one refuses.
    #[error(
        "{doing} at {bootstrap} failed\n  help: is a Kafka broker running there, and may this host reach it?"
    )]
    Cluster {
        /// What was tried.
        doing: String,
        /// The brokers that were given.
        bootstrap: String,
        /// Why.
        #[source]
        source: Box<WireError>,
    },
    /// There is no such topic.
    #[error(
        "the topic {topic} does not exist at {bootstrap}\n  help: create it (kafka-topics.sh --create --topic {topic} ..), or mend its \
         name; a source makes no topic"
    )]
    TopicMissing {
        /// The topic.
        topic: String,
        /// The brokers that were given.
        bootstrap: String,
    },
    /// The topic was there and is gone.
    #[error(
        "the topic {topic} was deleted while it was read\n  help: its positions mean nothing any more; create the topic and start the \
         job without restored state (`--restore none`)"
    )]
    TopicGone {
        /// The topic.
        topic: String,
    },
    /// Another topic of the same name.
    #[error(
        "the topic {topic} was deleted and created again: its id was {was} and is {is}; positions in the old topic mean nothing in \
         the new one\n  help: start the job without restored state (`--restore none`): it begins anew, with the new topic"
    )]
    TopicRecreated {
        /// The topic.
        topic: String,
        /// Id when it was handed out.
        was: String,
        /// Id now.
        is: String,
    },
    /// The restored state is of another topic.
    #[error(
        "the restored state is of the topic {was}, but the source reads {is}\n  help: give the source the topic {was}, or another \
         name, or start without restored state"
    )]
    OtherTopic {
        /// In the state.
        was: String,
        /// In the settings.
        is: String,
    },
    /// A partition that the settings or the state name is not there.
    #[error(
        "the topic {topic} has no partition {partition}\n  help: look at the partitions named in the job's settings"
    )]
    PartitionMissing {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
    },
    /// A starting offset that is not in the partition.
    #[error(
        "{said_by} says to begin {topic}[{partition}] at offset {offset}, but it has offsets from {earliest} to {latest}\n  help: begin \
         at an offset that is there, or with StartingOffsets::Earliest or Latest"
    )]
    StartOutOfRange {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
        /// The oldest offset.
        earliest: i64,
        /// Behind the newest.
        latest: i64,
        /// Who named the offset.
        said_by: &'static str,
    },
    /// The position is no longer in the partition.
    #[error(
        "{topic}[{partition}] no longer has offset {offset}: it has {earliest} to {latest}; records in between were deleted before \
         they were read (retention), or the partition was cut\n  help: start without restored state and accept the gap, and raise the \
         topic's retention.ms or retention.bytes above the longest time that the job may be away"
    )]
    OffsetGone {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The position.
        offset: i64,
        /// The oldest offset.
        earliest: i64,
        /// Behind the newest.
        latest: i64,
    },
    /// A position is refused by its broker, but looks right.
    #[error("a broker refused a position in {topic}: {said}")]
    OffsetRefused {
        /// The topic.
        topic: String,
        /// What librdkafka says.
        said: String,
    },
    /// A record that is no record to the deserializer.
    #[error(
        "{topic}[{partition}] offset {offset}: not a record: {problem}\n  help: skip such records with .on_bad_record(BadRecord::Skip) \
         (--broken-lines skip, where the job has this flag), or keep them with BadRecord::DeadLetter(topic)"
    )]
    BadRecord {
        /// The topic.
        topic: String,
        /// The partition.
        partition: i32,
        /// The offset.
        offset: i64,
        /// What the deserializer says.
        problem: String,
    },
    /// Bad records could not be kept.
    #[error(
        "bad records of {topic} could not be written to the dead-letter topic {dead_letter}: {said}{}",
        help(remedy)
    )]
    DeadLetter {
        /// The topic that is read.
        topic: String,
        /// The topic that is written.
        dead_letter: String,
        /// Why.
        said: String,
        /// What to do, where no restart helps.
        remedy: Option<String>,
    },
    /// No broker could be reached for too long.
    #[error("no broker of {bootstrap} could be reached for {outage_ms} ms while reading {topic}")]
    Outage {
        /// The topic.
        topic: String,
        /// The brokers that were given.
        bootstrap: String,
        /// For how long.
        outage_ms: u64,
    },
    /// This client may not read the topic.
    #[error(
        "the broker does not let this client read {topic}: {said}\n  help: give it the right to read the topic"
    )]
    NotAllowed {
        /// The topic.
        topic: String,
        /// What the broker says.
        said: String,
    },
    /// A right that this client does not have.
    #[error(
        "the source of the topic {topic}: the brokers do not let this client {what}\n  help: kafka-acls.sh --add --allow-principal User:.. \
         {rule}"
    )]
    Denied {
        /// The topic that is read.
        topic: String,
        /// What it may not do.
        what: String,
        /// The rule that would allow it, as `kafka-acls.sh` takes it.
        rule: String,
    },
    /// librdkafka gives up.
    #[error("reading {topic} failed: {said}")]
    Client {
        /// The topic.
        topic: String,
        /// What it says.
        said: String,
    },
    /// The deserializer panicked.
    #[error("the deserializer of {topic} panicked: {said}")]
    Panicked {
        /// The topic.
        topic: String,
        /// The panic's message.
        said: String,
    },
    /// The I/O side went away.
    #[error("reading {topic} was cut short")]
    CutShort {
        /// The topic.
        topic: String,
        /// Why.
        #[source]
        source: IoGone,
    },
}

impl KafkaSourceError {
    /// Whether a restart from the last checkpoint may help.
    pub fn is_restartable(&self) -> bool {
        match self {
            Self::Cluster { source, .. } => source.is_transient(),
            Self::DeadLetter { remedy, .. } => remedy.is_none(),
            Self::OffsetRefused { .. }
            | Self::Outage { .. }
            | Self::Client { .. }
            | Self::Panicked { .. }
            | Self::CutShort { .. } => true,
            _ => false,
        }
    }
}

fn help(remedy: &Option<String>) -> String {
    remedy.as_ref().map_or_else(String::new, |remedy| format!("\n  help: {remedy}"))
}

impl From<KafkaSourceError> for ConnectorError {
    fn from(error: KafkaSourceError) -> Self {
        let connector = if error.is_restartable() { Self::transient(&error) } else { Self::fatal(&error) };
        match error {
            KafkaSourceError::Cluster { source, .. } => connector.caused_by(source),
            KafkaSourceError::CutShort { source, .. } => connector.caused_by(source),
            _ => connector,
        }
    }
}
