//! A part of the indices, and the position in it.
//!
//! Owns: the arithmetic. Does not own: who reads it. Runs on: plain data; it is operator state.

use tidegate_state::StateType;

/// The indices `first, first + stride, …` below `end`, read up to (not including) `next`.
#[derive(Clone, Debug, PartialEq, Eq, StateType)]
pub struct DatagenSplit {
    /// The first index.
    pub first: u64,
    /// From one index to the next: the number of splits.
    pub stride: u64,
    /// The next index to hand out.
    pub next: u64,
    /// Below this; `None` if unbounded.
    pub end: Option<u64>,
}

impl DatagenSplit {
    /// Takes the next index.
    pub(crate) fn take(&mut self) -> Option<u64> {
        if self.is_finished() {
            return None;
        }
        let index = self.next;
        self.next = self.next.saturating_add(self.stride.max(1));
        Some(index)
    }

    /// How many indices were handed out.
    pub(crate) fn handed_out(&self) -> u64 {
        self.next.saturating_sub(self.first).div_ceil(self.stride.max(1))
    }

    /// Whether no index is left.
    pub(crate) fn is_finished(&self) -> bool {
        self.end.is_some_and(|end| self.next >= end) || self.next == u64::MAX
    }
}
