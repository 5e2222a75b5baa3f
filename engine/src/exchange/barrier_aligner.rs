//! Aligns checkpoint barriers across the channels of one input gate.
//!
//! **Snapshot law** (law 2, exactly-once, aligned). What is in checkpoint *n* is exactly the effect of the records before barrier
//! *n* on every input. So a channel whose barrier has come is held until the barrier has come on every other one. A barrier of
//! a later checkpoint ends the alignment of an earlier one (law 1): that one is declined.
//!
//! Owns: which channels have delivered the barrier now awaited. Does not own: holding a channel's queue (see [`super::input_gate`]),
//! nor taking the snapshot. Runs on: the task thread. Pure: events in, answers out, no clock, no I/O.

use crate::element::{AlignmentMode, CheckpointBarrier};
use crate::ids::CheckpointId;
use crate::mutation::{self, Mutation};

/// What a barrier leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarrierOutcome {
    /// An earlier checkpoint whose alignment ended because of this barrier: decline it.
    pub declined: Option<CheckpointBarrier>,
    /// The barrier has now come on every channel: snapshot, then send it on.
    pub aligned: Option<CheckpointBarrier>,
}

/// Barriers of one gate.
#[derive(Clone, Debug)]
pub struct BarrierAligner {
    awaited: Option<CheckpointBarrier>,
    received: Vec<bool>,
    closed: Vec<bool>,
    newest: CheckpointId,
}

impl BarrierAligner {
    /// No barrier seen on any of `channels`.
    pub fn new(channels: usize) -> Self {
        Self {
            awaited: None,
            received: vec![false; channels],
            closed: vec![false; channels],
            newest: CheckpointId(0),
        }
    }

    /// The barrier that is being aligned.
    pub fn awaited(&self) -> Option<&CheckpointBarrier> {
        self.awaited.as_ref()
    }

    /// Whether records of `channel` have to wait.
    pub fn holds(&self, channel: usize) -> bool {
        let aligned = matches!(&self.awaited, Some(b) if b.alignment == AlignmentMode::Aligned);
        aligned && self.received[channel] && !mutation::on(Mutation::AlignmentSkipped)
    }

    /// `barrier` stands at the head of `channel`.
    pub fn on_barrier(&mut self, channel: usize, barrier: CheckpointBarrier) -> BarrierOutcome {
        let mut declined = None;
        if barrier.id <= self.newest && self.awaited.is_none_or(|a| a.id != barrier.id) {
            // A straggler of a checkpoint that was declined here already.
            return BarrierOutcome { declined: None, aligned: None };
        }
        if self.awaited.is_none_or(|a| a.id < barrier.id) {
            declined = self.awaited.replace(barrier);
            self.received.fill(false);
            self.newest = barrier.id;
        }
        self.received[channel] = true;
        BarrierOutcome { declined, aligned: self.complete() }
    }

    /// `channel` sends nothing any more: nobody waits for it.
    pub fn on_closed(&mut self, channel: usize) -> BarrierOutcome {
        self.closed[channel] = true;
        BarrierOutcome { declined: None, aligned: self.complete() }
    }

    fn complete(&mut self) -> Option<CheckpointBarrier> {
        let awaited = self.awaited?;
        let all = self.received.iter().zip(&self.closed).all(|(received, closed)| *received || *closed);
        if !all {
            return None;
        }
        self.awaited = None;
        self.received.fill(false);
        Some(awaited)
    }
}

#[cfg(test)]
mod tests;
