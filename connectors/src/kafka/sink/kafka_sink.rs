//! Settings of the Kafka sink.
//!
//! Owns: the builder, what `validate` refuses, opening. Does not own: writing and committing (see [`KafkaWriter`],
//! [`KafkaCommitter`]). Runs on: built on the author's thread, opened on the I/O side.

use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::Serialize;
use tidegate_engine::api::{
    Committer, ConnectorError, PreflightContext, PreflightResult, TwoPhaseContext, TwoPhaseSink,
};
use tidegate_engine::broker::{BrokerCommittable, SlotTable};
use tidegate_engine::clock::SharedClock;
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::io::SharedIo;
use tidegate_engine::operator::TransactionName;

use super::records::RecordShape;
use super::retention::{RetentionWatch, Warned};
use super::topic::{self, KnownId};
use super::{AtLeastOnceKafkaSink, KafkaCommitter, KafkaSinkError, KafkaWriter, SerializeError, preflight};
use crate::kafka::config::{ClientRole, KafkaConfig, validate_topic};
use crate::kafka::wire::WireClient;

/// As long as a broker allows, unless its maximum was changed.
const TRANSACTION_TIMEOUT: Duration = Duration::from_secs(15 * 60);
/// For how long the job may be away, unless something else is said.
const LONGEST_OUTAGE: Duration = Duration::from_secs(5 * 60);
/// librdkafka takes no shorter transaction timeout.
const TRANSACTION_TIMEOUT_MIN: Duration = Duration::from_secs(1);

/// The slots of one subtask in one attempt, as its writer and its committer share them.
pub(super) type SharedSlots = Arc<Mutex<SlotTable>>;

pub(super) fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Records into a topic, exactly once.
///
/// ```
/// use std::time::Duration;
/// use serde::Serialize;
/// use tidegate_connectors::kafka::KafkaSink;
///
/// #[derive(Serialize)]
/// struct Order { order_id: u64, user_id: u64, cents: i64 }
///
/// let sink = KafkaSink::<Order>::json("localhost:9092", "orders")
///     .key(|order| order.user_id.to_string())
///     .property("compression.type", "lz4")
///     .longest_outage(Duration::from_secs(60));
/// let plain = KafkaSink::<Order>::json("localhost:9092", "orders").at_least_once();
/// ```
pub struct KafkaSink<T> {
    pub(super) config: KafkaConfig,
    pub(super) topic: Arc<str>,
    pub(super) shape: RecordShape<T>,
    pub(super) transaction_timeout: Duration,
    pub(super) longest_outage: Duration,
    pub(super) source_offsets: bool,
    /// By name template. Guards which slots are taken, and is held for one look only: writer and committer run side by side.
    slots: Arc<Mutex<BTreeMap<TransactionName, SharedSlots>>>,
    pub(super) topic_id: KnownId,
    pub(super) warned: Warned,
}

impl<T> KafkaSink<T> {
    /// Into `topic` of the cluster at `bootstrap` (`host:port`, several with commas). `serialize` appends a record's bytes.
    pub fn new(
        bootstrap: impl Into<String>,
        topic: impl AsRef<str>,
        serialize: impl Fn(&T, &mut Vec<u8>) -> Result<(), SerializeError> + Send + Sync + 'static,
    ) -> Self {
        Self::of(bootstrap, topic, RecordShape::new(serialize))
    }

    /// Into `topic` of the cluster at `bootstrap`, each record as a line of JSON.
    pub fn json(bootstrap: impl Into<String>, topic: impl AsRef<str>) -> Self
    where
        T: Serialize,
    {
        Self::of(bootstrap, topic, RecordShape::json())
    }

    fn of(bootstrap: impl Into<String>, topic: impl AsRef<str>, shape: RecordShape<T>) -> Self {
        let mut config = KafkaConfig::new(bootstrap);
        // The partitioner of Kafka's own clients: one key goes to one partition, whoever writes it.
        config.set("partitioner", "murmur2_random");
        Self {
            config,
            topic: Arc::from(topic.as_ref()),
            shape,
            transaction_timeout: TRANSACTION_TIMEOUT,
            longest_outage: LONGEST_OUTAGE,
            source_offsets: false,
            slots: Arc::default(),
            topic_id: Arc::default(),
            warned: Arc::default(),
        }
    }

    /// A record's key. Records with one key go to one partition, by its hash; without a key any partition may be taken.
    #[must_use]
    pub fn key<K: AsRef<[u8]>>(mut self, key: impl Fn(&T) -> K + Send + Sync + 'static) -> Self {
        self.shape.key = Some(Arc::new(move |record, bytes| bytes.extend_from_slice(key(record).as_ref())));
        self
    }

    /// A record's partition, of as many as the second argument says.
    #[must_use]
    pub fn partition_by(mut self, partition: impl Fn(&T, u32) -> u32 + Send + Sync + 'static) -> Self {
        self.shape.partition = Some(Arc::new(partition));
        self
    }

    /// A property of librdkafka, as `linger.ms` or `compression.type`. Those on which the promise rests are refused.
    #[must_use]
    pub fn property(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.config.set(name, value);
        self
    }

    /// For how long brokers keep a transaction that nobody ends; 15 minutes if not set. It must be longer than
    /// (tolerable failures + 1) × (interval + checkpoint timeout) + [`Self::longest_outage`], and at most what the brokers allow
    /// (`transaction.max.timeout.ms`). Both are checked at submit: what a broker gives up earlier is lost.
    #[must_use]
    pub fn transaction_timeout(mut self, timeout: Duration) -> Self {
        self.transaction_timeout = timeout;
        self
    }

    /// For how long the job may be away between a checkpoint and its restart; 5 minutes if not set.
    #[must_use]
    pub fn longest_outage(mut self, outage: Duration) -> Self {
        self.longest_outage = outage;
        self
    }

    /// Puts the offsets of a Kafka source with a group into the transactions, if it stands in front of this sink in the same subtask (no
    /// `key_by`, `rebalance` or `union` between them) and reads from the same cluster: the group moves with the records that become
    /// visible, and by nothing else. A checkpoint without records moves nothing. For monitoring and for other consumers of the group: the
    /// job itself never reads it. Elsewhere it has no effect.
    #[must_use]
    pub fn source_offsets(mut self) -> Self {
        self.source_offsets = true;
        self
    }

    /// The same topic without transactions: an idempotent producer that waits for all replicas, flushed before a checkpoint is
    /// acknowledged. Nothing is lost; what was written after the restored checkpoint appears twice.
    pub fn at_least_once(self) -> AtLeastOnceKafkaSink<T> {
        AtLeastOnceKafkaSink::of(self)
    }

    /// Refuses settings that cannot work.
    pub(super) fn check(&self) -> Result<(), KafkaSinkError> {
        self.config.validate(ClientRole::Sink)?;
        Ok(validate_topic(&self.topic)?)
    }

    fn check_timeout(&self) -> Result<(), KafkaSinkError> {
        let fits = i32::try_from(self.transaction_timeout.as_millis()).is_ok();
        if fits && self.transaction_timeout >= TRANSACTION_TIMEOUT_MIN {
            return Ok(());
        }
        Err(KafkaSinkError::Setting {
            topic: self.topic.to_string(),
            problem: format!("a transaction timeout of {:?}", self.transaction_timeout),
            remedy: "set .transaction_timeout(..) from 1 second to 24 days",
        })
    }

    /// In milliseconds.
    pub(super) fn transaction_timeout_ms(&self) -> u64 {
        u64::try_from(self.transaction_timeout.as_millis()).unwrap_or(u64::MAX)
    }

    /// What a writer has to know of the topic.
    pub(super) async fn open_topic(
        &self,
        wire: &mut WireClient,
        clock: &SharedClock,
    ) -> Result<OpenedTopic, KafkaSinkError> {
        let (bootstrap, name) = (self.config.bootstrap(), &self.topic);
        let (partitions, id) = topic::describe(wire, bootstrap, name, &self.topic_id).await?;
        let (clock, warned) = (Arc::clone(clock), Arc::clone(&self.warned));
        let retention = RetentionWatch::of(wire, name, clock, warned).await;
        Ok(OpenedTopic { partitions, id, retention })
    }

    pub(super) fn wire(&self, io: &SharedIo) -> WireClient {
        WireClient::new(self.config.bootstrap(), Arc::clone(io))
    }

    /// Shared by writer and committer of one subtask in one attempt.
    fn slots_of(&self, context: &TwoPhaseContext) -> SharedSlots {
        let mut all = lock(&self.slots);
        // Of earlier attempts nobody is left.
        all.retain(|name, _| name.attempt >= context.name.attempt);
        let made = || Arc::new(Mutex::new(SlotTable::new(context.places)));
        Arc::clone(all.entry(context.name.clone()).or_insert_with(made))
    }
}

/// What a writer knows of its topic when it opens.
pub(super) struct OpenedTopic {
    pub(super) partitions: u32,
    pub(super) id: u128,
    pub(super) retention: RetentionWatch,
}

impl<T> Clone for KafkaSink<T> {
    fn clone(&self) -> Self {
        Self {
            config: self.config.clone(),
            topic: Arc::clone(&self.topic),
            shape: self.shape.clone(),
            transaction_timeout: self.transaction_timeout,
            longest_outage: self.longest_outage,
            source_offsets: self.source_offsets,
            slots: Arc::clone(&self.slots),
            topic_id: Arc::clone(&self.topic_id),
            warned: Arc::clone(&self.warned),
        }
    }
}

impl<T> fmt::Debug for KafkaSink<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink")
            .field("config", &self.config)
            .field("topic", &self.topic)
            .field("shape", &self.shape)
            .field("transaction_timeout", &self.transaction_timeout)
            .finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> TwoPhaseSink for KafkaSink<T> {
    type Record = T;
    type Committable = BrokerCommittable;
    type Writer = KafkaWriter<T>;
    type Committer = KafkaCommitter;

    fn validate(&self) -> Result<(), ConnectorError> {
        self.check()?;
        Ok(self.check_timeout()?)
    }

    fn preflight(&self, context: PreflightContext) -> impl Future<Output = PreflightResult> + Send + use<T> {
        let sink = self.clone();
        async move { Ok(preflight::two_phase(&sink, &context).await?) }
    }

    fn takes_position(&self) -> bool {
        self.source_offsets
    }

    fn newest_committed(
        &self,
        context: TwoPhaseContext,
        since: AttemptId,
    ) -> impl Future<Output = Result<Option<CheckpointId>, ConnectorError>> + Send + use<T> {
        let slots = Arc::new(Mutex::new(SlotTable::new(context.places)));
        let wire = self.wire(&context.connector.io);
        let mut committer = KafkaCommitter::new(wire, Arc::clone(&self.topic), slots, &context);
        async move { committer.newest_committed(since).await }
    }

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<KafkaCommitter, ConnectorError>> + Send + use<T> {
        let (wire, slots) = (self.wire(&context.connector.io), self.slots_of(&context));
        let committer = KafkaCommitter::new(wire, Arc::clone(&self.topic), slots, &context);
        std::future::ready(Ok(committer))
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<KafkaWriter<T>, ConnectorError>> + Send + use<T> {
        let (sink, slots) = (self.clone(), self.slots_of(&context));
        async move {
            let mut wire = sink.wire(&context.connector.io);
            let opened = sink.open_topic(&mut wire, &context.connector.clock).await?;
            Ok(KafkaWriter::new(sink, wire, slots, opened, context))
        }
    }
}
