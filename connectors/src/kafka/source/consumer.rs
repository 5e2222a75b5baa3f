//! Takes batches from a librdkafka consumer, deserializes, and sends chunks.
//!
//! The consumer is given its partitions (`assign`); it joins no group and commits nothing by itself. While the slot has no room, sending
//! waits and the consumer is not polled: librdkafka fetches until its queue is full and then rests.
//!
//! Owns: the consumer, what it has read ahead, the policy for bad records, where bounded reading ends. Does not own: the position that
//! counts (the reader's, behind the last record handed out), asking the cluster (see [`super::fetcher`]).
//! Runs on: a thread of its own, as blocking work.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rdkafka::consumer::{CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::{Offset, TopicPartitionList};
use tidegate_engine::clock::{Moment, SharedClock};
use tidegate_engine::element::EventTime;
use tidegate_engine::io::Waker;
use tokio::sync::mpsc::{Receiver, Sender};

use super::bad_record::DeadLetters;
use super::batch_consumer::{BatchConsumer, FetchedMessage, MessageKind};
use super::chunk::{Chunk, Fetched};
use super::client_events::{Away, ClientEvents};
use super::kafka_source::Deserialize;
use super::settings::KafkaSourceSettings;
use super::{BadRecord, KafkaRecord, KafkaSourceError, KafkaSplit};

/// Records in a chunk, at most.
const CHUNK_RECORDS: usize = 1_024;
/// Records read for one chunk, those that are left out too.
const CHUNK_POLLS: usize = 8 * CHUNK_RECORDS;
/// Bytes of keys and values in a chunk; the last record may overshoot it.
const CHUNK_BYTES: usize = 1 << 20;
/// What a record is taken to be large before the first batch has told.
const RECORD_BYTES_GUESSED: usize = 1_024;
/// How long a poll waits for a record before commands are looked at.
const IDLE_POLL: Duration = Duration::from_millis(20);

/// What a reader asks of its consumer.
pub(super) enum Command {
    /// Read these partitions too.
    Add(Vec<KafkaSplit>),
    /// Tell the group how far the job is: the next offset by partition.
    Commit(BTreeMap<i32, i64>),
}

/// Why the loop stopped.
pub(super) enum Exit {
    /// Nobody listens any more.
    Closed,
    /// The topic may be another one: go on only if it is not.
    LookAtTopic,
    /// A position is not in its partition.
    OutOfRange(String),
    /// Reading stops here.
    Failed(KafkaSourceError),
}

/// A partition that is read.
struct Lane {
    /// What comes next.
    position: i64,
    stop: Option<i64>,
}

impl Lane {
    fn is_finished(&self) -> bool {
        self.stop.is_some_and(|stop| self.position >= stop)
    }
}

/// The ends of a reader's channels.
pub(super) struct ConsumerEnds<T> {
    pub(super) chunks: Sender<Fetched<T>>,
    pub(super) commands: Receiver<Command>,
    pub(super) waker: Waker,
    pub(super) clock: SharedClock,
    pub(super) away: Away,
}

/// See the module.
pub(super) struct ConsumerLoop<T> {
    settings: Arc<KafkaSourceSettings>,
    deserialize: Deserialize<T>,
    topic_id: String,
    /// Shared with a batch in hand only.
    consumer: Arc<BatchConsumer<ClientEvents>>,
    ends: ConsumerEnds<T>,
    lanes: BTreeMap<i32, Lane>,
    chunk: Chunk<T>,
    chunk_bytes: usize,
    chunk_polls: usize,
    /// Bytes of a record in the newest batch, rounded up: the next one is not to be much larger than its chunk.
    record_bytes: usize,
    dead_letters: Option<DeadLetters>,
    unreachable_since: Option<Moment>,
}

impl<T> ConsumerLoop<T> {
    /// Makes the consumer and gives it its first partitions.
    pub(super) fn open(
        settings: Arc<KafkaSourceSettings>,
        deserialize: Deserialize<T>,
        ends: ConsumerEnds<T>,
        splits: Vec<KafkaSplit>,
    ) -> Result<Self, KafkaSourceError> {
        let topic_id = splits.first().map(|split| split.topic_id.clone()).unwrap_or_default();
        let consumer = connect(&settings, &topic_id, &ends.away)?;
        let mut opened = Self {
            settings,
            deserialize,
            topic_id,
            consumer,
            ends,
            lanes: BTreeMap::new(),
            chunk: Chunk::with_capacity(CHUNK_RECORDS),
            chunk_bytes: 0,
            chunk_polls: 0,
            record_bytes: RECORD_BYTES_GUESSED,
            dead_letters: None,
            unreachable_since: None,
        };
        opened.add(splits)?;
        Ok(opened)
    }

    /// What comes next in each partition that is still read.
    pub(super) fn positions(&self) -> BTreeMap<i32, i64> {
        let open = self.lanes.iter().filter(|(_, lane)| !lane.is_finished());
        open.map(|(partition, lane)| (*partition, lane.position)).collect()
    }

    /// Reads until something has to be decided elsewhere.
    pub(super) fn run(&mut self) -> Exit {
        loop {
            if let Err(exit) = self.step() {
                // What was read before goes out before the reason why reading stops.
                return match self.send() {
                    Ok(()) | Err(Exit::Closed) => exit,
                    Err(other) => other,
                };
            }
        }
    }

    fn step(&mut self) -> Result<(), Exit> {
        self.take_commands()?;
        self.check_outage()?;
        let wait = if self.chunk_polls == 0 { IDLE_POLL } else { Duration::ZERO };
        let consumer = Arc::clone(&self.consumer);
        let batch = consumer.take(self.room(), wait);
        let mut told = Vec::new();
        consumer.serve_events(|other| match other {
            Err(error) => {
                told.push(error);
                Ok(())
            }
            // Nothing is assigned without a queue of its own. What came elsewhere would be out of order: it is read again.
            Ok(_) => Err(Exit::LookAtTopic),
        })?;
        if consumer.client().context().take_topic_changed() {
            // What is in hand may be the other topic's; if it is not, it is read again from its position.
            return Err(Exit::LookAtTopic);
        }
        for error in &told {
            self.on_error(error)?;
        }
        if batch.is_empty() {
            return if self.chunk_polls > 0 { self.send() } else { Ok(()) };
        }
        let mut bytes = 0;
        for message in batch.iter() {
            bytes += message.bytes();
            self.take(message)?;
        }
        self.record_bytes = bytes.div_ceil(batch.len()).max(1);
        Ok(())
    }

    /// Records that fit into the chunk in hand, by what the last ones were: a batch is in no queue's limit any more.
    fn room(&self) -> usize {
        let records = CHUNK_RECORDS.saturating_sub(self.chunk.records.len());
        let polls = CHUNK_POLLS.saturating_sub(self.chunk_polls);
        let by_bytes = CHUNK_BYTES.saturating_sub(self.chunk_bytes) / self.record_bytes;
        records.min(polls).min(by_bytes).max(1)
    }

    fn take(&mut self, message: FetchedMessage<'_>) -> Result<(), Exit> {
        match message.kind() {
            MessageKind::AtEnd => self.at_end(message.partition(), message.offset()),
            MessageKind::Failed(code) => self.on_error(&KafkaError::MessageConsumption(code)),
            MessageKind::Record => self.take_record(message),
        }
    }

    fn take_record(&mut self, message: FetchedMessage<'_>) -> Result<(), Exit> {
        let mut taking = Taking {
            settings: &self.settings,
            deserialize: &self.deserialize,
            lanes: &mut self.lanes,
            chunk: &mut self.chunk,
            dead_letters: &mut self.dead_letters,
        };
        let finished = taking.take(message).map_err(Exit::Failed)?;
        self.chunk_bytes += message.bytes();
        self.chunk_polls += 1;
        if finished {
            self.finish(message.partition())?;
        }
        let is_full = self.chunk.records.len() >= CHUNK_RECORDS
            || self.chunk_bytes >= CHUNK_BYTES
            || self.chunk_polls >= CHUNK_POLLS;
        if is_full { self.send() } else { Ok(()) }
    }

    fn take_commands(&mut self) -> Result<(), Exit> {
        while let Ok(command) = self.ends.commands.try_recv() {
            match command {
                Command::Add(splits) => self.add(splits).map_err(Exit::Failed)?,
                Command::Commit(offsets) => self.commit(&offsets),
            }
        }
        if self.ends.chunks.is_closed() { Err(Exit::Closed) } else { Ok(()) }
    }

    fn add(&mut self, splits: Vec<KafkaSplit>) -> Result<(), KafkaSourceError> {
        let mut new = TopicPartitionList::new();
        for split in splits {
            let lane = Lane { position: split.next_offset, stop: split.stop_offset };
            if !lane.is_finished() {
                self.assigned(&mut new, split.partition, lane.position)?;
            }
            self.lanes.insert(split.partition, lane);
        }
        if new.count() == 0 {
            return Ok(());
        }
        self.read_too(&new)
    }

    fn read_too(&self, partitions: &TopicPartitionList) -> Result<(), KafkaSourceError> {
        let added = self.consumer.add(&self.settings.topic, partitions);
        added.map_err(|error| client_failure(&self.settings, &error))
    }

    fn assigned(
        &self,
        list: &mut TopicPartitionList,
        partition: i32,
        position: i64,
    ) -> Result<(), KafkaSourceError> {
        let added = list.add_partition_offset(&self.settings.topic, partition, Offset::Offset(position));
        added.map_err(|error| client_failure(&self.settings, &error))
    }

    /// Begins again behind what was read, after the topic was looked at: with another consumer, as [`BatchConsumer`] wants it.
    pub(super) fn go_on(&mut self) -> Result<(), KafkaSourceError> {
        let mut all = TopicPartitionList::new();
        for (partition, position) in self.positions() {
            self.assigned(&mut all, partition, position)?;
        }
        self.consumer = connect(&self.settings, &self.topic_id, &self.ends.away)?;
        self.read_too(&all)
    }

    /// Nothing more is read from a partition.
    fn finish(&mut self, partition: i32) -> Result<(), Exit> {
        let mut gone = TopicPartitionList::new();
        gone.add_partition(&self.settings.topic, partition);
        let done = self.consumer.remove(&gone);
        done.map_err(|error| Exit::Failed(client_failure(&self.settings, &error)))
    }

    /// Everything that the partition has now was read, transaction markers too: `next` comes next.
    fn at_end(&mut self, partition: i32, next: i64) -> Result<(), Exit> {
        // The end of a partition that was given back may be in hand still, behind its last record.
        let Some(lane) = self.lanes.get_mut(&partition).filter(|lane| !lane.is_finished()) else {
            return Ok(());
        };
        lane.position = lane.position.max(next);
        let position = lane.position;
        let finished = lane.is_finished();
        self.settings.counters.note_end(partition, position);
        self.chunk.move_to(partition, position).caught_up = true;
        self.chunk_polls += 1;
        if finished { self.finish(partition) } else { Ok(()) }
    }

    fn on_error(&mut self, error: &KafkaError) -> Result<(), Exit> {
        let topic = &self.settings.topic;
        let code = error.rdkafka_error_code();
        match code {
            Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange) => {
                Err(Exit::OutOfRange(error.to_string()))
            }
            Some(
                RDKafkaErrorCode::UnknownTopicOrPartition
                | RDKafkaErrorCode::UnknownTopic
                | RDKafkaErrorCode::UnknownPartition,
            ) => Err(Exit::LookAtTopic),
            Some(RDKafkaErrorCode::TopicAuthorizationFailed) => {
                let (topic, said) = (topic.clone(), error.to_string());
                Err(Exit::Failed(KafkaSourceError::NotAllowed { topic, said }))
            }
            Some(code) if is_passing(code) => {
                tracing::debug!(topic, %error, "the client goes on asking");
                Ok(())
            }
            // To go on could mean to go past records.
            _ => Err(Exit::Failed(client_failure(&self.settings, error))),
        }
    }

    fn check_outage(&mut self) -> Result<(), Exit> {
        if !self.consumer.client().context().is_unreachable() {
            if let Some(since) = self.unreachable_since.take() {
                let away_ms = self.ends.clock.now().saturating_sub(since).as_millis();
                tracing::warn!(topic = self.settings.topic, away_ms, "brokers are back");
            }
            return Ok(());
        }
        let now = self.ends.clock.now();
        if self.unreachable_since.is_none() {
            let (topic, bootstrap) = (&self.settings.topic, self.settings.config.bootstrap());
            let longest = self.settings.longest_outage;
            tracing::warn!(
                topic,
                bootstrap,
                ?longest,
                "no broker answers; asking again until the longest outage is over"
            );
        }
        let outage = now.saturating_sub(*self.unreachable_since.get_or_insert(now));
        if outage < self.settings.longest_outage {
            return Ok(());
        }
        let (topic, bootstrap) = (self.settings.topic.clone(), self.settings.config.bootstrap().to_owned());
        let outage_ms = u64::try_from(outage.as_millis()).unwrap_or(u64::MAX);
        Err(Exit::Failed(KafkaSourceError::Outage { topic, bootstrap, outage_ms }))
    }

    /// Only for people who look at the group: what goes wrong is logged, nothing rests on it.
    fn commit(&self, offsets: &BTreeMap<i32, i64>) {
        let mut list = TopicPartitionList::new();
        for (partition, offset) in offsets {
            if self.assigned(&mut list, *partition, *offset).is_err() {
                return;
            }
        }
        if let Err(error) = self.consumer.client().commit(&list, CommitMode::Async) {
            tracing::warn!(topic = self.settings.topic, %error, "the group was not told how far the job is");
        }
    }

    /// Sends what was read; waits while there is no room.
    fn send(&mut self) -> Result<(), Exit> {
        if let Some(letters) = &mut self.dead_letters {
            letters.settle().map_err(Exit::Failed)?;
        }
        if self.chunk.runs.is_empty() {
            return Ok(());
        }
        let chunk = std::mem::replace(&mut self.chunk, Chunk::with_capacity(CHUNK_RECORDS));
        (self.chunk_bytes, self.chunk_polls) = (0, 0);
        self.ends.chunks.blocking_send(Fetched::Records(chunk)).map_err(|_| Exit::Closed)?;
        self.ends.waker.wake();
        Ok(())
    }
}

/// The parts of the loop that a message, which borrows the consumer, goes into.
struct Taking<'a, T> {
    settings: &'a Arc<KafkaSourceSettings>,
    deserialize: &'a Deserialize<T>,
    lanes: &'a mut BTreeMap<i32, Lane>,
    chunk: &'a mut Chunk<T>,
    dead_letters: &'a mut Option<DeadLetters>,
}

impl<T> Taking<'_, T> {
    /// Whether its partition is read to its end now.
    fn take(&mut self, message: FetchedMessage<'_>) -> Result<bool, KafkaSourceError> {
        let (partition, offset) = (message.partition(), message.offset());
        let Some(lane) = self.lanes.get_mut(&partition) else { return Ok(false) };
        if lane.is_finished() || offset < lane.position {
            return Ok(false);
        }
        if let Some(stop) = lane.stop.filter(|stop| offset >= *stop) {
            lane.position = stop;
            self.chunk.move_to(partition, stop);
            return Ok(true);
        }
        let record = KafkaRecord::of(&self.settings.topic, message);
        match (self.deserialize)(&record) {
            Ok(Some(value)) => {
                let time = EventTime(record.timestamp_ms.unwrap_or(EventTime::MIN.0));
                self.chunk.push(partition, offset, time, value);
            }
            Ok(None) => {
                self.settings.counters.count_left_out();
                self.chunk.move_to(partition, offset + 1);
            }
            Err(problem) => {
                bad(self.settings, self.dead_letters, &record, &problem.to_string())?;
                let so_far = self.settings.counters.count_bad_record();
                if so_far.is_power_of_two() {
                    tracing::warn!(topic = record.topic, partition, offset, %problem, so_far, "left out: not a record");
                }
                self.chunk.move_to(partition, offset + 1);
            }
        }
        lane.position = offset + 1;
        Ok(lane.is_finished())
    }
}

fn bad(
    settings: &Arc<KafkaSourceSettings>,
    dead_letters: &mut Option<DeadLetters>,
    record: &KafkaRecord<'_>,
    problem: &str,
) -> Result<(), KafkaSourceError> {
    match &settings.bad_record {
        BadRecord::Skip => Ok(()),
        BadRecord::Fail => Err(KafkaSourceError::BadRecord {
            topic: record.topic.to_owned(),
            partition: record.partition,
            offset: record.offset,
            problem: problem.to_owned(),
        }),
        BadRecord::DeadLetter(topic) => {
            let letters = match dead_letters {
                Some(letters) => letters,
                None => dead_letters.insert(DeadLetters::open(settings, topic)?),
            };
            letters.take(record, problem)
        }
    }
}

fn connect(
    settings: &KafkaSourceSettings,
    topic_id: &str,
    away: &Away,
) -> Result<Arc<BatchConsumer<ClientEvents>>, KafkaSourceError> {
    let events = ClientEvents::new(settings.topic.clone(), topic_id, settings.counters.clone(), away.clone());
    let opened = BatchConsumer::open(&settings.consumer(), events);
    opened.map(Arc::new).map_err(|error| client_failure(settings, &error))
}

fn client_failure(settings: &KafkaSourceSettings, error: &KafkaError) -> KafkaSourceError {
    KafkaSourceError::Client { topic: settings.topic.clone(), said: error.to_string() }
}

/// Errors that the client goes on after by itself, without passing over a record.
fn is_passing(code: RDKafkaErrorCode) -> bool {
    matches!(
        code,
        RDKafkaErrorCode::AllBrokersDown
            | RDKafkaErrorCode::BrokerTransportFailure
            | RDKafkaErrorCode::BrokerNotAvailable
            | RDKafkaErrorCode::CoordinatorLoadInProgress
            | RDKafkaErrorCode::CoordinatorNotAvailable
            | RDKafkaErrorCode::GroupAuthorizationFailed
            | RDKafkaErrorCode::LeaderNotAvailable
            | RDKafkaErrorCode::NetworkException
            | RDKafkaErrorCode::NotCoordinator
            | RDKafkaErrorCode::NotLeaderForPartition
            | RDKafkaErrorCode::OperationTimedOut
            | RDKafkaErrorCode::RequestTimedOut
            | RDKafkaErrorCode::Resolve
    )
}
