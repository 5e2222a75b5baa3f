//! Topics for one run, made and filled.
//!
//! Owns: their making, filling, deletion. Does not own: the broker. Runs on: the main thread.

use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};

use super::Order;
use crate::error::BenchError;
use crate::stopwatch::Stopwatch;

/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(60);
/// A topic from which nothing comes for so long has nothing more.
const SILENCE: Duration = Duration::from_millis(500);

/// A topic that is deleted with this.
pub(super) struct Topic {
    pub(super) bootstrap: String,
    pub(super) name: String,
}

/// For `map_err` on what the client says.
pub(super) fn kafka(tried: &'static str) -> impl Fn(KafkaError) -> BenchError {
    move |source| BenchError::Server { tried, said: source.to_string() }
}

impl Topic {
    /// Makes a topic of this name.
    pub(super) fn make(bootstrap: &str, name: &str, partitions: i32) -> Result<Self, BenchError> {
        let new = NewTopic::new(name, partitions, TopicReplication::Fixed(1));
        admin(bootstrap, |admin, options| async move {
            let results = admin.create_topics([&new], &options).await?;
            for result in results {
                result.map_err(|(_, code)| KafkaError::AdminOp(code))?;
            }
            Ok(())
        })?;
        Ok(Self { bootstrap: bootstrap.to_owned(), name: name.to_owned() })
    }

    fn consumer(&self) -> Result<BaseConsumer, BenchError> {
        ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("group.id", "bench-audit")
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed")
            .create()
            .map_err(kafka("making a consumer"))
    }

    /// The end of each partition, markers included.
    pub(super) fn ends(&self, partitions: i32) -> Result<Vec<i64>, BenchError> {
        let consumer = self.consumer()?;
        let end = |partition| consumer.fetch_watermarks(&self.name, partition, PATIENCE).map(|(_, end)| end);
        (0..partitions).map(end).collect::<Result<_, _>>().map_err(kafka("asking for the ends of a topic"))
    }

    /// Committed records behind these ends. A commit is answered before it can be seen: as many as are expected are waited for.
    pub(super) fn committed_behind(&self, ends: &[i64], expected: u64) -> Result<u64, BenchError> {
        let failed = kafka("counting records");
        let (consumer, mut from) = (self.consumer()?, TopicPartitionList::new());
        for (end, partition) in ends.iter().zip(0..) {
            from.add_partition_offset(&self.name, partition, Offset::Offset(*end)).map_err(&failed)?;
        }
        consumer.assign(&from).map_err(&failed)?;
        let (watch, mut count) = (Stopwatch::start(), 0);
        loop {
            match consumer.poll(SILENCE) {
                Some(Ok(_)) => count += 1,
                Some(Err(error)) => return Err(failed(error)),
                None if count >= expected || watch.elapsed() >= PATIENCE => return Ok(count),
                None => {}
            }
        }
    }

    /// Writes orders, in turn over the partitions.
    pub(super) fn fill(&self, orders: u64, partitions: u64) -> Result<(), BenchError> {
        let producer: ThreadedProducer<DefaultProducerContext> = ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("linger.ms", "20")
            .set("batch.num.messages", "10000")
            .create()
            .map_err(kafka("making a producer"))?;
        for index in 0..orders {
            let payload = serde_json::to_vec(&Order::make(index)).unwrap_or_default();
            let partition = i32::try_from(index % partitions).unwrap_or(0);
            let mut record = BaseRecord::<(), [u8]>::to(&self.name).payload(&payload).partition(partition);
            while let Err((error, back)) = producer.send(record) {
                if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
                    return Err(kafka("filling a topic")(error));
                }
                // The producer's own thread makes room.
                producer.poll(Duration::from_millis(10));
                record = back;
            }
        }
        producer.flush(PATIENCE).map_err(kafka("filling a topic"))
    }
}

impl Drop for Topic {
    fn drop(&mut self) {
        let name = self.name.clone();
        let deleted = admin(&self.bootstrap, |admin, options| async move {
            admin.delete_topics(&[&name], &options).await.map(drop)
        });
        if let Err(error) = deleted {
            eprintln!("note: the topic {} is left: {error}", self.name);
        }
    }
}

fn admin<F>(
    bootstrap: &str,
    work: impl FnOnce(AdminClient<DefaultClientContext>, AdminOptions) -> F,
) -> Result<(), BenchError>
where
    F: Future<Output = Result<(), KafkaError>>,
{
    let client = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .create()
        .map_err(kafka("making an admin client"))?;
    let options = AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| BenchError::Folder { source })?;
    runtime.block_on(work(client, options)).map_err(kafka("making or deleting a topic"))
}
