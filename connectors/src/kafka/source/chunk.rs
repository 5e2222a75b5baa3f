//! Records on their way from the consumer's thread to the slot, with the position behind each of them.
//!
//! Owns: exact positions, also in the middle of a chunk. Does not own: reading, or the channel. Runs on: made on the consumer's thread,
//! taken apart on the slot's thread.

use std::collections::BTreeMap;

use tidegate_engine::api::SourceOutput;
use tidegate_engine::element::EventTime;

use super::KafkaSourceError;
use super::reader::OpenSplit;

/// What a consumer's thread sends.
pub(super) enum Fetched<T> {
    /// Where bounded reading ends, as it was found out for these restored splits: partition and first offset that is not read.
    Bounds(Vec<(i32, Option<i64>)>),
    /// The next records.
    Records(Chunk<T>),
    /// Reading stops here.
    Failed(KafkaSourceError),
}

/// Consecutive records of one partition inside a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) partition: i32,
    /// How many; records that were left out do not count.
    pub(super) records: usize,
    /// Position behind the run: behind what was left out, and behind transaction markers, too.
    pub(super) position: i64,
    /// Whether the partition had nothing more behind it.
    pub(super) caught_up: bool,
}

/// Records of several partitions, run by run.
pub(super) struct Chunk<T> {
    pub(super) records: Vec<T>,
    pub(super) times: Vec<EventTime>,
    pub(super) offsets: Vec<i64>,
    pub(super) runs: Vec<Run>,
}

impl<T> Chunk<T> {
    pub(super) fn with_capacity(records: usize) -> Self {
        Self {
            records: Vec::with_capacity(records),
            times: Vec::with_capacity(records),
            offsets: Vec::with_capacity(records),
            runs: Vec::new(),
        }
    }

    /// Everything of `partition` before `position` is in this chunk or was before it.
    pub(super) fn move_to(&mut self, partition: i32, position: i64) -> &mut Run {
        if self.runs.last().is_none_or(|run| run.partition != partition) {
            self.runs.push(Run { partition, records: 0, position, caught_up: false });
        }
        let last = self.runs.len() - 1;
        let run = &mut self.runs[last];
        run.position = position;
        run.caught_up = false;
        run
    }

    /// Adds a record.
    pub(super) fn push(&mut self, partition: i32, offset: i64, time: EventTime, record: T) {
        self.records.push(record);
        self.times.push(time);
        self.offsets.push(offset);
        self.move_to(partition, offset + 1).records += 1;
    }
}

/// A chunk that is being handed out.
pub(super) struct ChunkInHand<T> {
    records: std::vec::IntoIter<T>,
    times: std::vec::IntoIter<EventTime>,
    offsets: std::vec::IntoIter<i64>,
    runs: std::vec::IntoIter<Run>,
    run: Option<Run>,
}

impl<T> ChunkInHand<T> {
    pub(super) fn of(chunk: Chunk<T>) -> Self {
        let mut runs = chunk.runs.into_iter();
        let run = runs.next();
        Self {
            records: chunk.records.into_iter(),
            times: chunk.times.into_iter(),
            offsets: chunk.offsets.into_iter(),
            runs,
            run,
        }
    }

    /// Records that are left.
    pub(super) fn left(&self) -> usize {
        self.records.len()
    }

    /// Hands out as much as there is room for, at most `most`, and moves the splits behind it. `true`: nothing is left.
    pub(super) fn hand_out(
        &mut self,
        mut most: usize,
        output: &mut SourceOutput<T>,
        splits: &mut BTreeMap<i32, OpenSplit>,
    ) -> bool {
        while let Some(run) = &mut self.run {
            let count = run.records.min(output.room()).min(most);
            most -= count;
            if count > 0 {
                output.records_of(run.partition.unsigned_abs());
            }
            for (record, time) in self.records.by_ref().zip(self.times.by_ref()).take(count) {
                output.emit_at(record, time);
            }
            run.records -= count;
            let last = count.checked_sub(1).and_then(|skipped| self.offsets.nth(skipped));
            let position = if run.records == 0 { Some(run.position) } else { last.map(|offset| offset + 1) };
            if let (Some(split), Some(position)) = (splits.get_mut(&run.partition), position) {
                split.split.next_offset = position;
                split.split.records += count as u64;
                split.caught_up = run.records == 0 && run.caught_up;
            }
            if run.records > 0 {
                return false;
            }
            self.run = self.runs.next();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kafka::KafkaSplit;

    fn splits() -> BTreeMap<i32, OpenSplit> {
        let split = |partition| KafkaSplit {
            topic_id: "id".to_owned(),
            partition,
            next_offset: 0,
            stop_offset: None,
            records: 0,
        };
        (0..2).map(|partition| (partition, OpenSplit { split: split(partition), caught_up: false })).collect()
    }

    fn positions(splits: &BTreeMap<i32, OpenSplit>) -> Vec<i64> {
        splits.values().map(|split| split.split.next_offset).collect()
    }

    #[test]
    fn positions_are_exact_wherever_a_batch_ends() {
        for room in 1..5 {
            let mut chunk = Chunk::with_capacity(8);
            for (partition, offset) in [(0, 4), (0, 7), (1, 2), (0, 9)] {
                chunk.push(partition, offset, EventTime(offset), (partition, offset));
            }
            chunk.move_to(0, 12);
            let (mut hand, mut splits, mut seen) = (ChunkInHand::of(chunk), splits(), Vec::new());
            loop {
                let mut output = SourceOutput::with_room(room);
                let done = hand.hand_out(usize::MAX, &mut output, &mut splits);
                seen.extend(output.take().values);
                for (partition, offset) in [(0, 4), (0, 7), (1, 2), (0, 9)] {
                    let read = splits[&partition].split.next_offset > offset;
                    assert_eq!(
                        read,
                        seen.contains(&(partition, offset)),
                        "room {room}, {partition}[{offset}]"
                    );
                }
                if done {
                    break;
                }
            }
            assert_eq!(positions(&splits), [12, 3]);
            assert_eq!(splits[&0].split.records, 3);
        }
    }

    #[test]
    fn what_was_left_out_moves_the_position_with_the_record_behind_it() {
        let mut chunk = Chunk::with_capacity(2);
        chunk.push(0, 0, EventTime(0), ());
        chunk.move_to(0, 5);
        chunk.push(0, 5, EventTime(0), ());
        let (mut hand, mut splits) = (ChunkInHand::of(chunk), splits());
        let mut output = SourceOutput::with_room(1);
        assert!(!hand.hand_out(usize::MAX, &mut output, &mut splits));
        assert_eq!(positions(&splits)[0], 1, "what was left out is left out again, not lost");
        let mut output = SourceOutput::with_room(1);
        assert!(hand.hand_out(usize::MAX, &mut output, &mut splits));
        assert_eq!(positions(&splits)[0], 6);
    }

    #[test]
    fn a_chunk_without_records_moves_positions_only() {
        let mut chunk = Chunk::<()>::with_capacity(0);
        chunk.move_to(1, 8);
        let mut splits = splits();
        assert!(ChunkInHand::of(chunk).hand_out(usize::MAX, &mut SourceOutput::with_room(4), &mut splits));
        assert_eq!(positions(&splits), [0, 8]);
    }
}
