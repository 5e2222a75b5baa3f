//! Sends records through one librdkafka producer and knows which of them are confirmed.
//!
//! Nothing here waits in a thread: the library's queue is polled, and time passes through the I/O seam.
//!
//! Owns: the producer, the number of records sent. Does not own: transactions (see [`super::transactional_producer`]).
//! Runs on: the I/O side.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer as _};
use tidegate_engine::element::Batch;
use tidegate_engine::io::SharedIo;

use super::KafkaSinkError;
use super::deliveries::Deliveries;
use super::records::RecordShape;
use super::refused_record::{RefusedRecord, Refusing, timestamp_ms};
use super::retention::RetentionWatch;

/// Between two looks at the library's queue.
const LOOK: Duration = Duration::from_millis(1);
/// The library tells that it refused an earlier record within so many looks.
const LOOKS_FOR_ANOTHER: u32 = 2_000;
/// Records that are not confirmed, or not even taken, within this time fail the subtask.
pub(super) const CONFIRM_LIMIT: Duration = Duration::from_secs(60);

/// See the module.
pub(super) struct RecordProducer<T> {
    producer: Arc<BaseProducer<Deliveries>>,
    topic: Arc<str>,
    partitions: u32,
    shape: RecordShape<T>,
    retention: RetentionWatch,
    io: SharedIo,
    sent: u64,
    value: Vec<u8>,
    key: Vec<u8>,
}

impl<T> RecordProducer<T> {
    pub(super) fn new(
        producer: Arc<BaseProducer<Deliveries>>,
        topic: Arc<str>,
        partitions: u32,
        shape: RecordShape<T>,
        retention: RetentionWatch,
        io: SharedIo,
    ) -> Self {
        let (value, key) = (Vec::new(), Vec::new());
        Self { producer, topic, partitions, shape, retention, io, sent: 0, value, key }
    }

    /// Hands a batch to the library. `before`: records that this subtask wrote earlier, for messages.
    pub(super) async fn send(&mut self, batch: Batch<T>, before: u64) -> Result<(), KafkaSinkError> {
        let Batch { values, timestamps } = batch;
        self.retention.look(&timestamps);
        for (index, record) in values.into_iter().enumerate() {
            let number = before + index as u64 + 1;
            self.encode(&record, number)?;
            let partition = self.partition_of(&record, number)?;
            let time_ms = timestamp_ms(timestamps.get(index).copied());
            let mut looks = 0;
            while let Err(refused) = self.hand_over(number, partition, time_ms) {
                if refused.rdkafka_error_code() != Some(RDKafkaErrorCode::QueueFull) {
                    return Err(self.not_taken(number, time_ms, refused).await);
                }
                looks += 1;
                self.wait(looks).await?;
            }
        }
        self.poll();
        self.refuse_failure()
    }

    fn encode(&mut self, record: &T, number: u64) -> Result<(), KafkaSinkError> {
        self.value.clear();
        self.key.clear();
        if let Some(key) = &self.shape.key {
            key(record, &mut self.key);
        }
        (self.shape.value)(record, &mut self.value).map_err(|source| KafkaSinkError::Serialize {
            topic: self.topic.to_string(),
            record: number,
            source,
        })
    }

    fn partition_of(&self, record: &T, number: u64) -> Result<Option<i32>, KafkaSinkError> {
        let Some(choose) = &self.shape.partition else { return Ok(None) };
        let (partition, partitions) = (choose(record, self.partitions), self.partitions);
        match i32::try_from(partition) {
            Ok(fits) if partition < partitions => Ok(Some(fits)),
            _ => {
                let topic = self.topic.to_string();
                Err(KafkaSinkError::Partition { topic, record: number, partition, partitions })
            }
        }
    }

    fn hand_over(
        &mut self,
        number: u64,
        partition: Option<i32>,
        time_ms: Option<i64>,
    ) -> Result<(), KafkaError> {
        // An opaque is as wide as a pointer.
        let opaque = usize::try_from(number).unwrap_or(usize::MAX);
        let record = BaseRecord::<[u8], [u8], usize>::with_opaque_to(&self.topic, opaque);
        let mut record = record.payload(&self.value);
        if self.shape.key.is_some() {
            record = record.key(&self.key);
        }
        if let Some(partition) = partition {
            record = record.partition(partition);
        }
        if let Some(time_ms) = time_ms {
            record = record.timestamp(time_ms);
        }
        match self.producer.send(record) {
            Ok(()) => {
                self.sent += 1;
                Ok(())
            }
            Err((source, _)) => Err(source),
        }
    }

    /// Why the library does not take a record: mostly since an earlier one of the transaction was refused, which it tells a moment later.
    async fn not_taken(&self, number: u64, time_ms: Option<i64>, source: KafkaError) -> KafkaSinkError {
        let is_of_another = source.rdkafka_error_code() == Some(RDKafkaErrorCode::State);
        for _ in 0..if is_of_another { LOOKS_FOR_ANOTHER } else { 1 } {
            self.poll();
            if let Err(failed) = self.refuse_failure() {
                return failed;
            }
            self.io.sleep(LOOK).await;
        }
        let key = self.shape.key.as_ref().map(|_| self.key.clone());
        let bytes = self.value.len() + self.key.len();
        self.undelivered(&RefusedRecord { number, key, time_ms, bytes }, source)
    }

    /// Waits until every record is confirmed.
    pub(super) async fn flush(&mut self) -> Result<(), KafkaSinkError> {
        let mut looks = 0;
        loop {
            self.poll();
            self.refuse_failure()?;
            if self.deliveries().delivered() >= self.sent {
                return Ok(());
            }
            looks += 1;
            self.wait(looks).await?;
        }
    }

    async fn wait(&self, looks: u32) -> Result<(), KafkaSinkError> {
        let waited = LOOK.saturating_mul(looks);
        if waited > CONFIRM_LIMIT {
            return Err(KafkaSinkError::Unconfirmed {
                topic: self.topic.to_string(),
                sent: self.sent,
                delivered: self.deliveries().delivered(),
                waited_ms: u64::try_from(waited.as_millis()).unwrap_or(u64::MAX),
            });
        }
        self.io.sleep(LOOK).await;
        self.poll();
        self.refuse_failure()
    }

    pub(super) fn deliveries(&self) -> &Deliveries {
        self.producer.client().context()
    }

    fn poll(&self) {
        poll(&self.producer);
    }

    fn undelivered(&self, record: &RefusedRecord, source: KafkaError) -> KafkaSinkError {
        let (limits, now_ms) = (self.retention.limits(), self.retention.now_ms());
        let advice =
            Refusing { topic: &self.topic, limits, now_ms }.advice(record, source.rdkafka_error_code());
        KafkaSinkError::Delivery { topic: self.topic.to_string(), record: record.to_string(), advice, source }
    }

    fn refuse_failure(&self) -> Result<(), KafkaSinkError> {
        if let Some(failed) = self.deliveries().failure() {
            return Err(self.undelivered(&failed.record, failed.error));
        }
        match self.producer.client().fatal_error() {
            Some((code, text)) => {
                let reason = format!("{code}: {text}");
                Err(KafkaSinkError::Fatal { topic: self.topic.to_string(), reason })
            }
            None => Ok(()),
        }
    }
}

/// Takes everything that the library has to tell. (One poll takes one event.)
pub(super) fn poll(producer: &BaseProducer<Deliveries>) {
    loop {
        let before = producer.client().context().events();
        producer.poll(Duration::ZERO);
        if producer.client().context().events() == before {
            return;
        }
    }
}
