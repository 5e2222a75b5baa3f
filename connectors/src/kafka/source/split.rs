//! One partition and the position in it.
//!
//! Owns: what makes a position. Does not own: reading. Runs on: plain data; it is operator state (RFC 0011).

use tidegate_state::StateType;

/// A partition, read up to `next_offset`.
#[derive(Clone, Debug, PartialEq, Eq, StateType)]
pub struct KafkaSplit {
    /// Id that the topic had when the partition was handed out: another topic of the same name is not this one.
    pub topic_id: String,
    /// Number of the partition.
    pub partition: i32,
    /// The offset behind the last record handed out, or behind transaction markers that follow it.
    pub next_offset: i64,
    /// Bounded reading: the first offset that is not read. `None`: read for ever.
    pub stop_offset: Option<i64>,
    /// Records handed out from it so far, for progress only.
    pub records: u64,
}

impl KafkaSplit {
    /// Whether a bounded split is read to its end.
    pub fn is_finished(&self) -> bool {
        self.stop_offset.is_some_and(|stop| self.next_offset >= stop)
    }
}
