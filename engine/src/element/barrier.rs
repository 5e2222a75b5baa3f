//! The checkpoint barrier and what it carries.
//!
//! Owns: the barrier's fields. Does not own: alignment (see [`crate::exchange::barrier_aligner`]). Runs on: plain data.

use serde::{Deserialize, Serialize};

use crate::ids::CheckpointId;

/// What a checkpoint is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum CheckpointKind {
    /// Periodic, or the last one at end of data.
    Checkpoint,
    /// A savepoint that lets the job go on.
    Savepoint,
    /// Stop with savepoint, without draining.
    Suspend,
    /// Stop with savepoint after firing everything (maximum watermark).
    Drain,
}

/// How the barrier lines up at an operator with several inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum AlignmentMode {
    /// A channel whose barrier has come waits for the others: exactly-once.
    Aligned,
    /// No channel waits; records behind the barrier may be counted: at-least-once.
    AtLeastOnce,
}

/// Divides what belongs to checkpoint `id` from what comes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointBarrier {
    /// The checkpoint.
    pub id: CheckpointId,
    /// Its kind.
    pub kind: CheckpointKind,
    /// Exactly-once or at-least-once.
    pub alignment: AlignmentMode,
    /// The newest completed checkpoint when the barrier left the source: a completion that was lost is learnt from it.
    pub newest_completed: CheckpointId,
    /// The sender's clock at the trigger, in microseconds of [`crate::clock::Clock::now`].
    pub triggered_at_us: u64,
}
