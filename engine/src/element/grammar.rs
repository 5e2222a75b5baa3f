//! The channel grammar as a checker.
//!
//! Owns: the state of law 1 for one channel. Does not own: the channel. Runs on: the receiving slot, in debug builds.

use crate::element::{CheckpointBarrier, Element, EventTime};
use crate::ids::CheckpointId;

/// Checks `(Records | Watermark | Status | Barrier)* EndOfData Barrier* EndOfPartition`.
#[derive(Clone, Copy, Debug)]
pub struct ChannelGrammar {
    phase: Phase,
    barrier: CheckpointId,
    watermark: EventTime,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Data,
    Ended,
    Closed,
}

/// A breach of the channel grammar: a fault of the engine, never of a job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GrammarBreach {
    /// Something but a barrier after `EndOfData`, or anything after `EndOfPartition`.
    #[error("{what} after {after}")]
    AfterEnd {
        /// The element.
        what: &'static str,
        /// The end that was passed.
        after: &'static str,
    },
    /// A barrier id that does not rise.
    #[error("barrier {id} after barrier {newest}")]
    BarrierFell {
        /// The barrier.
        id: CheckpointId,
        /// The one before.
        newest: CheckpointId,
    },
    /// A watermark that falls.
    #[error("watermark {now:?} after {newest:?}")]
    WatermarkFell {
        /// The watermark.
        now: EventTime,
        /// The one before.
        newest: EventTime,
    },
    /// `EndOfPartition` without `EndOfData`.
    #[error("the partition ended before its data")]
    PartitionBeforeData,
}

impl Default for ChannelGrammar {
    fn default() -> Self {
        Self { phase: Phase::Data, barrier: CheckpointId(0), watermark: EventTime::MIN }
    }
}

impl ChannelGrammar {
    /// Takes the next element.
    ///
    /// # Errors
    /// [`GrammarBreach`] if it may not stand here.
    pub fn check<T>(&mut self, element: &Element<T>) -> Result<(), GrammarBreach> {
        if self.phase == Phase::Closed {
            return Err(GrammarBreach::AfterEnd { what: word(element), after: "EndOfPartition" });
        }
        match element {
            Element::Barrier(barrier) => return self.barrier(barrier),
            Element::EndOfPartition if self.phase == Phase::Ended => self.phase = Phase::Closed,
            Element::EndOfPartition => return Err(GrammarBreach::PartitionBeforeData),
            _ if self.phase == Phase::Ended => {
                return Err(GrammarBreach::AfterEnd { what: word(element), after: "EndOfData" });
            }
            Element::EndOfData => self.phase = Phase::Ended,
            Element::Watermark(now) if *now < self.watermark => {
                return Err(GrammarBreach::WatermarkFell { now: *now, newest: self.watermark });
            }
            Element::Watermark(now) => self.watermark = *now,
            Element::Records(_) | Element::Status(_) => {}
        }
        Ok(())
    }

    fn barrier(&mut self, barrier: &CheckpointBarrier) -> Result<(), GrammarBreach> {
        if barrier.id <= self.barrier {
            return Err(GrammarBreach::BarrierFell { id: barrier.id, newest: self.barrier });
        }
        self.barrier = barrier.id;
        Ok(())
    }
}

fn word<T>(element: &Element<T>) -> &'static str {
    match element {
        Element::Records(_) => "records",
        Element::Watermark(_) => "a watermark",
        Element::Status(_) => "a status",
        Element::Barrier(_) => "a barrier",
        Element::EndOfData => "EndOfData",
        Element::EndOfPartition => "EndOfPartition",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{AlignmentMode, Batch, CheckpointKind};

    fn barrier(id: u64) -> Element<u64> {
        Element::Barrier(CheckpointBarrier {
            id: CheckpointId(id),
            kind: CheckpointKind::Checkpoint,
            alignment: AlignmentMode::Aligned,
            newest_completed: CheckpointId(0),
            triggered_at_us: 0,
        })
    }

    #[test]
    fn barriers_may_follow_the_end_of_data_but_records_may_not() {
        let mut grammar = ChannelGrammar::default();
        for element in [Element::Records(Batch::of(vec![1])), barrier(1), Element::EndOfData, barrier(2)] {
            grammar.check(&element).unwrap();
        }
        assert!(grammar.check(&Element::Records(Batch::of(vec![2]))).is_err());
        grammar.check::<u64>(&Element::EndOfPartition).unwrap();
        assert!(grammar.check(&barrier(3)).is_err());
    }

    #[test]
    fn barrier_ids_rise_and_watermarks_never_fall() {
        let mut grammar = ChannelGrammar::default();
        grammar.check(&barrier(4)).unwrap();
        assert!(grammar.check(&barrier(4)).is_err());
        grammar.check::<u64>(&Element::Watermark(EventTime(5))).unwrap();
        grammar.check::<u64>(&Element::Watermark(EventTime(5))).unwrap();
        assert!(grammar.check::<u64>(&Element::Watermark(EventTime(4))).is_err());
    }

    #[test]
    fn a_partition_does_not_end_before_its_data() {
        assert!(ChannelGrammar::default().check::<u64>(&Element::EndOfPartition).is_err());
    }
}
