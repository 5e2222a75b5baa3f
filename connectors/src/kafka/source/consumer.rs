//! Polls a librdkafka consumer, deserializes, and sends chunks.
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

use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message};
use rdkafka::{Offset, TopicPartitionList};
use tidegate_engine::clock::{Moment, SharedClock};
use tidegate_engine::element::EventTime;
use tidegate_engine::io::Waker;
use tokio::sync::mpsc::{Receiver, Sender};

use super::bad_record::DeadLetters;
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
/// Records between two looks for commands.
const POLLS_BETWEEN_LOOKS: usize = 64;
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

/// What one poll brought.
enum Polled {
    Nothing,
    TopicChanged,
    Record { partition: i32, bytes: usize, finished: bool },
    AtEnd(i32),
    Failed(KafkaSourceError),
    Error(KafkaError),
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
    consumer: BaseConsumer<ClientEvents>,
    ends: ConsumerEnds<T>,
    lanes: BTreeMap<i32, Lane>,
    chunk: Chunk<T>,
    chunk_bytes: usize,
    chunk_polls: usize,
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
        let events = ClientEvents::new(settings.topic.clone(), settings.counters.clone(), ends.away.clone());
        let consumer = settings.consumer().create_with_context(events);
        let consumer = consumer.map_err(|error| client_failure(&settings, &error))?;
        let mut opened = Self {
            settings,
            deserialize,
            consumer,
            ends,
            lanes: BTreeMap::new(),
            chunk: Chunk::with_capacity(CHUNK_RECORDS),
            chunk_bytes: 0,
            chunk_polls: 0,
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
        if self.chunk_polls.is_multiple_of(POLLS_BETWEEN_LOOKS) {
            self.take_commands()?;
            self.check_outage()?;
        }
        match self.poll() {
            Polled::Nothing if self.chunk_polls > 0 => self.send(),
            Polled::Nothing => Ok(()),
            Polled::TopicChanged => Err(Exit::LookAtTopic),
            Polled::Record { partition, bytes, finished } => {
                self.chunk_bytes += bytes;
                self.chunk_polls += 1;
                if finished {
                    self.finish(partition)?;
                }
                let is_full = self.chunk.records.len() >= CHUNK_RECORDS
                    || self.chunk_bytes >= CHUNK_BYTES
                    || self.chunk_polls >= CHUNK_POLLS;
                if is_full { self.send() } else { Ok(()) }
            }
            Polled::AtEnd(partition) => self.at_end(partition),
            Polled::Failed(error) => Err(Exit::Failed(error)),
            Polled::Error(error) => self.on_error(&error),
        }
    }

    fn poll(&mut self) -> Polled {
        let wait = if self.chunk_polls == 0 { IDLE_POLL } else { Duration::ZERO };
        let polled = self.consumer.poll(wait);
        if self.consumer.context().take_topic_changed() {
            // A message in hand may be the other topic's; if it is not, it is read again from its position.
            return Polled::TopicChanged;
        }
        let message = match polled {
            None => return Polled::Nothing,
            Some(Err(KafkaError::PartitionEOF(partition))) => return Polled::AtEnd(partition),
            Some(Err(error)) => return Polled::Error(error),
            Some(Ok(message)) => message,
        };
        let mut taking = Taking {
            settings: &self.settings,
            deserialize: &self.deserialize,
            lanes: &mut self.lanes,
            chunk: &mut self.chunk,
            dead_letters: &mut self.dead_letters,
        };
        match taking.take(&message) {
            Ok((partition, finished)) => {
                Polled::Record { partition, bytes: message.payload_len() + message.key_len(), finished }
            }
            Err(error) => Polled::Failed(error),
        }
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
        self.consumer.incremental_assign(&new).map_err(|error| client_failure(&self.settings, &error))
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

    /// Begins again behind what was read, after the topic was looked at.
    pub(super) fn go_on(&mut self) -> Result<(), KafkaSourceError> {
        let mut all = TopicPartitionList::new();
        for (partition, position) in self.positions() {
            self.assigned(&mut all, partition, position)?;
        }
        self.consumer.assign(&all).map_err(|error| client_failure(&self.settings, &error))
    }

    /// Nothing more is read from a partition.
    fn finish(&mut self, partition: i32) -> Result<(), Exit> {
        let mut gone = TopicPartitionList::new();
        gone.add_partition(&self.settings.topic, partition);
        let done = self.consumer.incremental_unassign(&gone);
        done.map_err(|error| Exit::Failed(client_failure(&self.settings, &error)))
    }

    /// Everything that the partition has now was read, transaction markers too.
    fn at_end(&mut self, partition: i32) -> Result<(), Exit> {
        let failed = |error| Exit::Failed(client_failure(&self.settings, &error));
        let told = self.consumer.position().map_err(failed)?;
        let Some(lane) = self.lanes.get_mut(&partition) else { return Ok(()) };
        let told = told.find_partition(&self.settings.topic, partition).map(|found| found.offset());
        if let Some(Offset::Offset(position)) = told {
            lane.position = lane.position.max(position);
        }
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
        if !self.consumer.context().is_unreachable() {
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
        if let Err(error) = self.consumer.commit(&list, CommitMode::Async) {
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
    /// The partition, and whether it is read to its end now.
    fn take(&mut self, message: &BorrowedMessage<'_>) -> Result<(i32, bool), KafkaSourceError> {
        let (partition, offset) = (message.partition(), message.offset());
        let Some(lane) = self.lanes.get_mut(&partition) else { return Ok((partition, false)) };
        if lane.is_finished() || offset < lane.position {
            return Ok((partition, false));
        }
        if let Some(stop) = lane.stop.filter(|stop| offset >= *stop) {
            lane.position = stop;
            self.chunk.move_to(partition, stop);
            return Ok((partition, true));
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
        Ok((partition, lane.is_finished()))
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
