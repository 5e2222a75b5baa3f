//! What is done with a record that is no record to the deserializer.
//!
//! Owns: the policy, the dead-letter topic's producer. Does not own: deserializing. Runs on: the consumer's thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};

use super::settings::KafkaSourceSettings;
use super::{KafkaRecord, KafkaSourceError};
use crate::kafka::KafkaConfig;

/// How long the dead-letter topic may take.
const DELIVERY_LIMIT: Duration = Duration::from_secs(30);
/// Between two looks at a full queue.
const QUEUE_PAUSE: Duration = Duration::from_millis(10);
/// After a flush the answers are looked for so often.
const POLLS_MAX: u32 = 1_000;

/// What to do with a record that cannot be deserialized.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum BadRecord {
    /// Fail the job, naming topic, partition and offset.
    #[default]
    Fail,
    /// Leave it out and count it ([`super::KafkaCounters::bad_records`]).
    Skip,
    /// Write it to this topic of the same cluster, with headers that say where it came from and why, and count it. It is there before
    /// a checkpoint goes past it; after a restart it may be there twice.
    DeadLetter(String),
}

/// Writes bad records to a topic.
pub(super) struct DeadLetters {
    settings: Arc<KafkaSourceSettings>,
    topic: String,
    producer: BaseProducer<Deliveries>,
    reports: Arc<Reports>,
    pending: u64,
}

/// What became of letters. Guarded, because librdkafka's threads may report it.
#[derive(Default)]
struct Reports {
    /// How many, since they were counted last.
    told: AtomicU64,
    /// The first failure.
    failed: Mutex<Option<KafkaError>>,
}

struct Deliveries(Arc<Reports>);

impl ClientContext for Deliveries {
    fn error(&self, error: KafkaError, reason: &str) {
        tracing::warn!(%error, reason, "dead-letter producer");
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            let mut failed = self.0.failed.lock().unwrap_or_else(PoisonError::into_inner);
            failed.get_or_insert_with(|| error.clone());
        }
        self.0.told.fetch_add(1, Ordering::Release);
    }
}

impl DeadLetters {
    /// Connects lazily.
    pub(super) fn open(settings: &Arc<KafkaSourceSettings>, topic: &str) -> Result<Self, KafkaSourceError> {
        let reports = Arc::<Reports>::default();
        let mut client = KafkaConfig::new(settings.addresses()).client();
        client.set("enable.idempotence", "true").set("acks", "all");
        client.set("message.timeout.ms", DELIVERY_LIMIT.as_millis().to_string());
        let (settings, topic) = (Arc::clone(settings), topic.to_owned());
        match client.create_with_context(Deliveries(Arc::clone(&reports))) {
            Ok(producer) => Ok(Self { settings, topic, producer, reports, pending: 0 }),
            Err(error) => Err(failure(&settings, &topic, &error)),
        }
    }

    /// Takes one; it is written when [`Self::settle`] has said so.
    pub(super) fn take(&mut self, record: &KafkaRecord<'_>, problem: &str) -> Result<(), KafkaSourceError> {
        let (partition, offset) = (record.partition.to_string(), record.offset.to_string());
        let said = [
            ("tidegate.topic", record.topic),
            ("tidegate.partition", &partition),
            ("tidegate.offset", &offset),
            ("tidegate.problem", problem),
        ];
        let mut headers = OwnedHeaders::new_with_capacity(said.len());
        for (key, value) in record.headers() {
            headers = headers.insert(Header { key, value });
        }
        for (key, value) in said {
            headers = headers.insert(Header { key, value: Some(value) });
        }
        let mut letter = BaseRecord::<[u8], [u8]>::to(&self.topic).headers(headers);
        letter.key = record.key;
        letter.payload = record.value;
        letter.timestamp = record.timestamp_ms;
        while let Err((error, back)) = self.producer.send(letter) {
            if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                return Err(failure(&self.settings, &self.topic, &error));
            }
            letter = back;
            self.producer.poll(QUEUE_PAUSE);
        }
        self.pending += 1;
        Ok(())
    }

    /// Waits until all that were taken are written.
    pub(super) fn settle(&mut self) -> Result<(), KafkaSourceError> {
        if self.pending == 0 {
            return Ok(());
        }
        let flushed = self.producer.flush(DELIVERY_LIMIT);
        // Nothing is on its way any more, but what became of it may still wait to be told: a letter that was refused is no written one.
        let mut polls = 0;
        while flushed.is_ok() && self.reports.told.load(Ordering::Acquire) < self.pending && polls < POLLS_MAX
        {
            self.producer.poll(QUEUE_PAUSE);
            polls += 1;
        }
        let told = self.reports.told.swap(0, Ordering::AcqRel);
        let untold = (told < self.pending).then_some(KafkaError::Flush(RDKafkaErrorCode::OperationTimedOut));
        let failed = self.reports.failed.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(error) = failed.or(flushed.err()).or(untold) {
            return Err(failure(&self.settings, &self.topic, &error));
        }
        self.settings.counters.count_dead_letters(self.pending);
        self.pending = 0;
        Ok(())
    }
}

fn failure(settings: &KafkaSourceSettings, dead_letter: &str, error: &KafkaError) -> KafkaSourceError {
    KafkaSourceError::DeadLetter {
        topic: settings.topic.clone(),
        dead_letter: dead_letter.to_owned(),
        said: error.to_string(),
        remedy: remedy(dead_letter, error.rdkafka_error_code()),
    }
}

/// What helps where the topic refuses a letter, and would refuse it after every restart. `None`: a restart may help.
fn remedy(dead_letter: &str, code: Option<RDKafkaErrorCode>) -> Option<String> {
    match code? {
        RDKafkaErrorCode::TopicAuthorizationFailed | RDKafkaErrorCode::ClusterAuthorizationFailed => Some(
            format!("kafka-acls.sh --add --allow-principal User:.. --operation write --topic {dead_letter}"),
        ),
        RDKafkaErrorCode::MessageSizeTooLarge | RDKafkaErrorCode::MessageBatchTooLarge => Some(format!(
            "kafka-configs.sh --alter --topic {dead_letter} --add-config max.message.bytes=.., at least as much as the topic that is read \
             allows, and some hundred bytes for the headers; or skip such records with BadRecord::Skip"
        )),
        RDKafkaErrorCode::InvalidTimestamp
        | RDKafkaErrorCode::InvalidRecord
        | RDKafkaErrorCode::PolicyViolation => Some(format!(
            "the topic {dead_letter} does not take it (cleanup.policy=compact takes no record without a key; message.timestamp.after.max.ms \
             and before.max.ms bound its time): mend the topic, or skip such records with BadRecord::Skip"
        )),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_letter_that_the_topic_would_refuse_again_ends_the_job() {
        let of = |code| remedy("letters", Some(code));
        assert!(
            of(RDKafkaErrorCode::TopicAuthorizationFailed)
                .unwrap()
                .contains("--operation write --topic letters")
        );
        assert!(of(RDKafkaErrorCode::MessageSizeTooLarge).unwrap().contains("max.message.bytes"));
        assert_eq!(of(RDKafkaErrorCode::MessageTimedOut), None);
        assert_eq!(remedy("letters", None), None);
    }
}
