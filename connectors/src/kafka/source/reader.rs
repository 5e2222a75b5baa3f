//! Hands out the records of its partitions.
//!
//! Owns: the position of each split, behind the last record handed out. Does not own: reading (a fetcher does). Runs on: its slot's
//! thread; it never waits.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tidegate_engine::api::{
    ConnectorContext, ConnectorError, ReadStatus, SourceOutput, SourcePosition, SplitReader,
};
use tidegate_engine::element::SplitStanding;
use tidegate_engine::ids::CheckpointId;
use tidegate_engine::io::IoGone;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::mpsc::{self, Receiver, Sender};

use super::chunk::{ChunkInHand, Fetched};
use super::client_events::Away;
use super::consumer::{Command, ConsumerEnds};
use super::fetcher::Fetcher;
use super::kafka_source::Deserialize;
use super::settings::KafkaSourceSettings;
use super::{KafkaSourceError, KafkaSplit};
use crate::kafka::group_positions::GroupPositions;
use crate::rate::Grant;

/// Chunks that may wait for the slot.
const CHUNKS_WAITING: usize = 4;
/// Commands that may wait for the consumer's thread.
const COMMANDS_WAITING: usize = 16;
/// Checkpoints whose positions are remembered until they complete, for the group.
const SNAPSHOTS_REMEMBERED: usize = 16;

/// Reader of a [`super::KafkaSource`].
pub struct KafkaReader<T> {
    settings: Arc<KafkaSourceSettings>,
    deserialize: Deserialize<T>,
    context: ConnectorContext,
    splits: BTreeMap<i32, OpenSplit>,
    fetching: Option<Fetching<T>>,
    in_hand: Option<ChunkInHand<T>>,
    failure: Option<KafkaSourceError>,
    /// Positions in the newest checkpoints that are not complete yet.
    snapshots: VecDeque<(CheckpointId, BTreeMap<i32, i64>)>,
    restored_records: u64,
    away: Away,
}

/// A split that is read.
pub(super) struct OpenSplit {
    pub(super) split: KafkaSplit,
    /// Whether everything that the partition had was handed out, when it was last heard of.
    pub(super) caught_up: bool,
}

impl OpenSplit {
    /// One whose broker is away is not silent: nobody knows what it has.
    fn standing(&self, is_away: bool) -> SplitStanding {
        match (self.split.is_finished(), self.caught_up && !is_away) {
            (true, _) => SplitStanding::Ended,
            (false, true) => SplitStanding::CaughtUp,
            (false, false) => SplitStanding::Reading,
        }
    }
}

/// The reader's ends of its channels.
struct Fetching<T> {
    chunks: Receiver<Fetched<T>>,
    commands: Sender<Command>,
    /// Splits that wait for room in the channel.
    to_add: VecDeque<Vec<KafkaSplit>>,
}

impl<T: Send + 'static> KafkaReader<T> {
    pub(super) fn new(
        settings: Arc<KafkaSourceSettings>,
        deserialize: Deserialize<T>,
        context: ConnectorContext,
    ) -> Self {
        Self {
            settings,
            deserialize,
            context,
            splits: BTreeMap::new(),
            fetching: None,
            in_hand: None,
            failure: None,
            snapshots: VecDeque::new(),
            restored_records: 0,
            away: Away::default(),
        }
    }

    fn fetch(&mut self, splits: Vec<KafkaSplit>) {
        if let Some(fetching) = &mut self.fetching {
            fetching.to_add.push_back(splits);
            return;
        }
        let (chunks_tx, chunks) = mpsc::channel(CHUNKS_WAITING);
        let (commands, commands_rx) = mpsc::channel(COMMANDS_WAITING);
        let fetcher = Fetcher {
            settings: Arc::clone(&self.settings),
            deserialize: Arc::clone(&self.deserialize),
            ends: ConsumerEnds {
                chunks: chunks_tx,
                commands: commands_rx,
                waker: Arc::clone(&self.context.waker),
                clock: Arc::clone(&self.context.clock),
                away: self.away.clone(),
            },
            splits,
            io: Arc::clone(&self.context.io),
        };
        // It ends when this reader's ends of the channels are dropped.
        drop(self.context.io.spawn("kafka-fetcher", Box::pin(fetcher.run())));
        self.fetching = Some(Fetching { chunks, commands, to_add: VecDeque::new() });
    }

    /// Takes the next chunk if none is in hand.
    fn refill(&mut self) {
        let Some(fetching) = &mut self.fetching else { return };
        fetching.send_waiting();
        while self.in_hand.is_none() && self.failure.is_none() {
            match fetching.chunks.try_recv() {
                Ok(Fetched::Records(chunk)) => self.in_hand = Some(ChunkInHand::of(chunk)),
                Ok(Fetched::Bounds(bounds)) => {
                    for (partition, stop) in bounds {
                        if let Some(split) = self.splits.get_mut(&partition) {
                            split.split.stop_offset = stop;
                        }
                    }
                }
                Ok(Fetched::Failed(error)) => self.failure = Some(error),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    let topic = self.settings.topic.clone();
                    self.failure = Some(KafkaSourceError::CutShort { topic, source: IoGone });
                }
            }
        }
    }

    fn note_progress(&self, records: usize) {
        self.settings.counters.count_records(records as u64);
        for OpenSplit { split, .. } in self.splits.values() {
            self.settings.counters.note_position(split.partition, split.next_offset);
        }
    }

    /// Whether everything that is bounded was read. Splits whose bounds are still being found out are not.
    fn is_idle(&self) -> bool {
        self.in_hand.is_none() && self.splits.values().all(|open| open.split.is_finished())
    }
}

impl<T> Fetching<T> {
    fn send_waiting(&mut self) {
        while let Some(splits) = self.to_add.pop_front() {
            match self.commands.try_send(Command::Add(splits)) {
                Ok(()) => {}
                Err(TrySendError::Full(Command::Add(splits))) => {
                    self.to_add.push_front(splits);
                    return;
                }
                // Its failure, or its end, is in the other channel.
                Err(_) => return,
            }
        }
    }
}

impl<T: Send + 'static> SplitReader for KafkaReader<T> {
    type Record = T;
    type Split = KafkaSplit;

    fn add_splits(&mut self, splits: Vec<KafkaSplit>) -> Result<(), ConnectorError> {
        if splits.is_empty() {
            return Ok(());
        }
        for split in &splits {
            self.restored_records += split.records;
            self.settings.counters.note_position(split.partition, split.next_offset);
            self.splits.insert(split.partition, OpenSplit { split: split.clone(), caught_up: false });
        }
        self.fetch(splits);
        Ok(())
    }

    fn poll(&mut self, output: &mut SourceOutput<T>) -> Result<ReadStatus, ConnectorError> {
        let room = output.room();
        let (mut moved, mut due) = (false, None);
        while output.room() > 0 {
            self.refill();
            let Some(chunk) = &mut self.in_hand else { break };
            let mut most = output.room();
            if let Some(rate) = self.settings.rate.as_ref().filter(|_| chunk.left() > 0) {
                match rate.grant(self.context.clock.now(), most.min(chunk.left())) {
                    Grant::Records(records) => most = records,
                    Grant::Wait(moment) => {
                        due = Some(moment);
                        break;
                    }
                }
            }
            moved = true;
            if chunk.hand_out(most, output, &mut self.splits) {
                self.in_hand = None;
            }
        }
        let records = room - output.room();
        if output.wants_splits() {
            for (partition, open) in &self.splits {
                output.note_split(partition.unsigned_abs(), open.standing(self.away.has(*partition)));
            }
        }
        if moved {
            self.note_progress(records);
        }
        if records > 0 {
            return Ok(ReadStatus::More);
        }
        if due.is_some() {
            return Ok(ReadStatus::Pending(due));
        }
        // What was read before goes out first.
        if let Some(error) = self.failure.take() {
            return Err(error.into());
        }
        Ok(if self.is_idle() { ReadStatus::Idle } else { ReadStatus::Pending(None) })
    }

    fn snapshot(&self) -> Vec<KafkaSplit> {
        self.splits.values().map(|open| open.split.clone()).collect()
    }

    fn tells_splits(&self) -> bool {
        true
    }

    /// Records handed out; those that were left out do not count.
    fn restored_records(&self) -> u64 {
        self.restored_records
    }

    fn lag(&self) -> Option<u64> {
        (!self.splits.is_empty()).then(|| self.settings.counters.lag_of(self.splits.keys().copied()))
    }

    fn position(&self) -> Option<SourcePosition> {
        let group = self.settings.group.clone()?;
        let topic_id = self.splits.values().next()?.split.topic_id.clone();
        let offsets =
            self.splits.values().map(|open| (open.split.partition, open.split.next_offset)).collect();
        let topic = self.settings.topic.clone();
        Some(Arc::new(GroupPositions { group, topic, topic_id, offsets }))
    }

    fn note_snapshot(&mut self, id: CheckpointId) {
        if self.settings.group.is_none() {
            return;
        }
        let positions =
            self.splits.values().map(|open| (open.split.partition, open.split.next_offset)).collect();
        self.snapshots.push_back((id, positions));
        if self.snapshots.len() > SNAPSHOTS_REMEMBERED {
            self.snapshots.pop_front();
        }
    }

    fn notify_complete(&mut self, id: CheckpointId) {
        let mut newest = None;
        while self.snapshots.front().is_some_and(|(taken, _)| *taken <= id) {
            newest = self.snapshots.pop_front();
        }
        if let (Some((taken, positions)), Some(fetching)) = (newest, &self.fetching)
            && taken == id
        {
            // Where there is no room, the next checkpoint tells the group.
            let _ = fetching.commands.try_send(Command::Commit(positions));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_at_its_end_is_silent_only_while_its_broker_is_there() {
        let open = |next_offset, stop_offset, caught_up| OpenSplit {
            split: KafkaSplit { topic_id: String::new(), partition: 0, next_offset, stop_offset, records: 0 },
            caught_up,
        };
        assert_eq!(open(5, None, true).standing(false), SplitStanding::CaughtUp);
        assert_eq!(open(5, None, true).standing(true), SplitStanding::Reading);
        assert_eq!(open(5, None, false).standing(false), SplitStanding::Reading);
        assert_eq!(open(5, Some(5), true).standing(true), SplitStanding::Ended);
    }
}
