//! The Kafka sink without transactions: an idempotent producer that waits for all replicas.
//!
//! Owns: the one-phase writer. Does not own: settings (shared with [`KafkaSink`]). Runs on: the I/O side.

use std::future::Future;
use std::sync::Arc;

use rdkafka::producer::BaseProducer;
use tidegate_engine::api::{
    ConnectorContext, ConnectorError, PreflightContext, PreflightResult, Sink, Writer,
};
use tidegate_engine::element::Batch;

use super::deliveries::Deliveries;
use super::kafka_sink::OpenedTopic;
use super::record_producer::RecordProducer;
use super::{KafkaSink, KafkaSinkError, preflight, topic};
use crate::kafka::wire::WireClient;

/// Records into a topic, at least once. Made by [`KafkaSink::at_least_once`].
#[derive(Debug)]
pub struct AtLeastOnceKafkaSink<T> {
    sink: KafkaSink<T>,
}

impl<T> AtLeastOnceKafkaSink<T> {
    pub(super) fn of(sink: KafkaSink<T>) -> Self {
        Self { sink }
    }
}

impl<T> Clone for AtLeastOnceKafkaSink<T> {
    fn clone(&self) -> Self {
        Self { sink: self.sink.clone() }
    }
}

impl<T: Clone + Send + 'static> Sink for AtLeastOnceKafkaSink<T> {
    type Record = T;
    type Writer = AtLeastOnceKafkaWriter<T>;

    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(self.sink.check()?)
    }

    fn preflight(&self, context: PreflightContext) -> impl Future<Output = PreflightResult> + Send + use<T> {
        let sink = self.sink.clone();
        async move { Ok(preflight::at_least_once(&sink, &context).await?) }
    }

    fn open(
        &self,
        context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<AtLeastOnceKafkaWriter<T>, ConnectorError>> + Send + use<T> {
        let sink = self.sink.clone();
        async move {
            let mut wire = sink.wire(&context.io);
            let OpenedTopic { partitions, id, retention } =
                sink.open_topic(&mut wire, &context.clock).await?;
            let mut config = sink.config.client();
            config.set("enable.idempotence", "true").set("acks", "all");
            let made = config.create_with_context(Deliveries::default());
            let producer: BaseProducer<Deliveries> =
                made.map_err(|source| KafkaSinkError::Client { source })?;
            let (producer, topic) = (Arc::new(producer), Arc::clone(&sink.topic));
            let (shape, io) = (sink.shape, context.io);
            let records = RecordProducer::new(producer, Arc::clone(&topic), partitions, shape, retention, io);
            Ok(AtLeastOnceKafkaWriter { records, wire, topic, topic_id: id, written: 0, flushed: 0 })
        }
    }
}

/// Writer of an [`AtLeastOnceKafkaSink`].
pub struct AtLeastOnceKafkaWriter<T> {
    records: RecordProducer<T>,
    wire: WireClient,
    topic: Arc<str>,
    /// Of the topic that was there when the writer opened.
    topic_id: u128,
    written: u64,
    /// How many were written when it was last flushed.
    flushed: u64,
}

impl<T: Clone + Send + 'static> Writer for AtLeastOnceKafkaWriter<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        let records = batch.len() as u64;
        self.records.send(batch, self.written).await?;
        self.written += records;
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        self.records.flush().await?;
        if self.flushed < self.written {
            topic::refuse_another(&mut self.wire, &self.topic, self.topic_id).await?;
            self.flushed = self.written;
        }
        Ok(())
    }
}
