//! Topics for one run, made and filled.
//!
//! Owns: their making, filling, deletion. Does not own: the broker. Runs on: the main thread.

use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;

use super::Order;
use crate::error::BenchError;

/// Nothing here takes longer.
const PATIENCE: Duration = Duration::from_secs(60);

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
