//! Writes transactions, one producer each.
//!
//! The producer of the next transaction is made in the background while the present one is written: an initialisation takes some
//! 80 ms through the library. It takes its slot at once, under a name of its own, and the slot is the transaction's with its first record.
//!
//! Owns: the open transaction, the producer made ahead, preparing. Does not own: what becomes of a prepared one (see
//! [`super::KafkaCommitter`]). Runs on: the I/O side.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{ConnectorError, SourcePosition, TwoPhaseContext, TwoPhaseWriter};
use tidegate_engine::broker::{BrokerCommittable, ProducerSlot};
use tidegate_engine::element::Batch;
use tidegate_engine::ids::CheckpointId;
use tidegate_engine::io::{IoGone, SharedIo};
use tidegate_engine::operator::TransactionName;
use tokio::sync::oneshot;

use super::committer::fence;
use super::kafka_sink::{OpenedTopic, SharedSlots, lock};
use super::record_producer::RecordProducer;
use super::transaction_offsets::{TransactionOffsets, refuse_another_cluster};
use super::transactional_producer::{TransactionalProducer, client_config};
use super::{KafkaSink, KafkaSinkError, topic};
use crate::kafka::committer_decisions::EndTxnVersion;
use crate::kafka::group_positions::GroupPositions;
use crate::kafka::transactional_id::TransactionalIds;
use crate::kafka::wire::{LEDGER_PARTITION, WireClient};

/// A writer without a free slot looks again after so long.
const LOOK: Duration = Duration::from_millis(2);
/// Under this slot number a slot is taken that no transaction has yet. There are never as many slots.
const AHEAD: u32 = u32::MAX;

/// Writer of a [`KafkaSink`].
pub struct KafkaWriter<T> {
    sink: KafkaSink<T>,
    wire: WireClient,
    ids: TransactionalIds,
    slots: SharedSlots,
    topic: OpenedTopic,
    io: SharedIo,
    /// Name template.
    own: TransactionName,
    ahead: Option<Ahead>,
    open: Option<OpenTransaction<T>>,
    closing: CheckpointId,
    /// Where the source stands at the barrier that closes the open transaction.
    position: Option<SourcePosition>,
    /// The source's topic, once it was seen that this cluster has it.
    source_topic_id: Option<String>,
    /// Records written in this attempt.
    records: u64,
    /// A request failed or was cut short: the records of the open transaction are no longer held.
    broken: bool,
}

/// A producer in the making.
struct Ahead {
    slot: u32,
    made: oneshot::Receiver<Result<TransactionalProducer, KafkaSinkError>>,
}

struct OpenTransaction<T> {
    slot: ProducerSlot,
    name: TransactionName,
    // Dropped first: the producer's end is then the last owner's.
    records: RecordProducer<T>,
    producer: TransactionalProducer,
}

impl<T> KafkaWriter<T> {
    pub(super) fn new(
        sink: KafkaSink<T>,
        wire: WireClient,
        slots: SharedSlots,
        topic: OpenedTopic,
        context: TwoPhaseContext,
    ) -> Self {
        let (ids, io) = (TransactionalIds::of(&context.name.scope), context.connector.io);
        let mut writer = Self {
            sink,
            wire,
            ids,
            slots,
            topic,
            io,
            own: context.name,
            ahead: None,
            open: None,
            closing: CheckpointId(0),
            position: None,
            source_topic_id: None,
            records: 0,
            broken: false,
        };
        writer.make_ahead();
        writer
    }

    fn topic(&self) -> String {
        self.sink.topic.to_string()
    }

    fn refuse_broken(&self) -> Result<(), KafkaSinkError> {
        if self.broken {
            return Err(KafkaSinkError::WriterBroken { topic: self.topic() });
        }
        Ok(())
    }

    fn ahead_name(&self) -> TransactionName {
        TransactionName::of_slot(self.own.scope.clone(), self.own.subtask, AHEAD, self.own.attempt)
    }

    /// Begins to make the next transaction's producer, if a slot is free.
    fn make_ahead(&mut self) {
        if self.ahead.is_some() {
            return;
        }
        let Some(slot) = lock(&self.slots).take(&self.ahead_name()) else { return };
        let id = self.ids.spell(&ProducerSlot::of(&self.own, slot));
        let config = client_config(self.sink.config.client(), &id, self.sink.transaction_timeout_ms());
        let (tx, made) = oneshot::channel();
        let making = TransactionalProducer::begin(config, id, Arc::clone(&self.io));
        let work = async move {
            // If the writer is gone, the producer ends here.
            let _ = tx.send(making.await);
        };
        drop(self.io.spawn("kafka producer ahead", Box::pin(work)));
        self.ahead = Some(Ahead { slot, made });
    }

    async fn begin(&mut self, name: &TransactionName) -> Result<OpenTransaction<T>, KafkaSinkError> {
        let Ahead { slot, made } = loop {
            self.make_ahead();
            if let Some(ahead) = self.ahead.take() {
                break ahead;
            }
            self.io.sleep(LOOK).await;
        };
        let producer =
            made.await.map_err(|_| KafkaSinkError::CutShort { topic: self.topic(), source: IoGone })??;
        lock(&self.slots).rename(&self.ahead_name(), name);
        let Some(native) = producer.producer() else {
            return Err(KafkaSinkError::CutShort { topic: self.topic(), source: IoGone });
        };
        let (topic, shape) = (Arc::clone(&self.sink.topic), self.sink.shape.clone());
        let (retention, io) = (self.topic.retention.clone(), Arc::clone(&self.io));
        let records = RecordProducer::new(native, topic, self.topic.partitions, shape, retention, io);
        self.make_ahead();
        Ok(OpenTransaction { slot: ProducerSlot::of(name, slot), name: name.clone(), records, producer })
    }

    /// The checkpoint becomes the offset of the slot's ledger, inside the transaction; so do the source's positions that of its group.
    async fn note_offsets(&mut self, open: &OpenTransaction<T>) -> Result<(), KafkaSinkError> {
        let position = self.position.take();
        // A source that is no Kafka source tells something else.
        let positions = position.as_ref().and_then(|position| position.downcast_ref::<GroupPositions>());
        if let Some(positions) = positions
            && self.source_topic_id.as_ref() != Some(&positions.topic_id)
        {
            let (bootstrap, topic) = (self.sink.config.bootstrap(), &self.sink.topic);
            refuse_another_cluster(&mut self.wire, bootstrap, topic, positions).await?;
            self.source_topic_id = Some(positions.topic_id.clone());
        }
        let (id, identity) = (open.producer.id.as_str(), open.producer.identity);
        let mut offsets = TransactionOffsets { wire: &mut self.wire, io: &self.io, id, identity };
        if let Some(GroupPositions { group, topic, offsets: of_group, .. }) = positions {
            offsets.note(group, topic, of_group, "").await?;
        }
        let ledger = self.ids.spell_ledger(&open.slot.ledger());
        let checkpoint = i64::try_from(self.closing.0).unwrap_or(i64::MAX);
        // A start after a rewind tells by the attempt what the rewound ones have committed.
        let (entry, attempt) =
            (BTreeMap::from([(LEDGER_PARTITION, checkpoint)]), self.own.attempt.to_string());
        offsets.note(&ledger, &self.sink.topic, &entry, &attempt).await
    }

    async fn end_txn_version(&mut self, id: &str) -> Result<i16, KafkaSinkError> {
        let offered = self.wire.offered_by_coordinator(id).await;
        let doing = || format!("asking the coordinator of {id} what it offers");
        let offered = offered.map_err(|source| KafkaSinkError::Wire { doing: doing(), source })?;
        Ok(EndTxnVersion::choose(&offered.end_txn())?.0)
    }

    async fn prepare_open(
        &mut self,
        mut open: OpenTransaction<T>,
    ) -> Result<BrokerCommittable, KafkaSinkError> {
        open.records.flush().await?;
        open.producer.refuse_another_identity()?;
        topic::refuse_another(&mut self.wire, &self.sink.topic, self.topic.id).await?;
        self.note_offsets(&open).await?;
        let end_txn_version = self.end_txn_version(&open.producer.id).await?;
        let identity = open.producer.identity;
        Ok(BrokerCommittable {
            slot: open.slot.slot,
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            end_txn_version,
            topic_id: Some(self.topic.id),
        })
    }
}

impl<T: Clone + Send + 'static> TwoPhaseWriter for KafkaWriter<T> {
    type Record = T;
    type Committable = BrokerCommittable;

    async fn write(&mut self, name: &TransactionName, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.refuse_broken()?;
        if batch.is_empty() {
            return Ok(());
        }
        // Until it is done: a future dropped here leaves a writer that prepares nothing.
        self.broken = true;
        if self.open.is_none() {
            self.open = Some(self.begin(name).await?);
        }
        let records = batch.len() as u64;
        if let Some(open) = &mut self.open {
            open.records.send(batch, self.records).await?;
        }
        self.records += records;
        self.broken = false;
        Ok(())
    }

    fn closing(&mut self, barrier: CheckpointId) {
        self.closing = barrier;
    }

    fn position(&mut self, position: SourcePosition) {
        self.position = Some(position);
    }

    async fn prepare(&mut self) -> Result<Option<BrokerCommittable>, ConnectorError> {
        self.refuse_broken()?;
        let Some(open) = self.open.take() else {
            self.position = None;
            return Ok(None);
        };
        self.broken = true;
        let committable = self.prepare_open(open).await?;
        self.broken = false;
        self.make_ahead();
        Ok(Some(committable))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.broken = false;
        let Some(OpenTransaction { name, producer, records, .. }) = self.open.take() else { return Ok(()) };
        let id = producer.id.clone();
        drop((records, producer));
        fence(&mut self.wire, &id).await?;
        lock(&self.slots).settle(&name);
        Ok(())
    }
}
