//! What travels through a channel.
//!
//! **Channel grammar** (law 1): `(Records | Watermark | Status | Barrier)* EndOfData Barrier* EndOfPartition`. Barrier ids rise,
//! watermarks never fall. [`grammar::ChannelGrammar`] asserts it in debug builds.
//!
//! Owns: elements, batches, event time, changes of rows. Does not own: channels (see [`crate::exchange`]). Runs on: slot threads.

mod barrier;
mod batch;
mod change;
pub mod grammar;
mod row_kind;
mod split_notes;

pub use barrier::{AlignmentMode, CheckpointBarrier, CheckpointKind};
pub use batch::Batch;
pub use change::Change;
pub use row_kind::RowKind;
pub use split_notes::{SplitNotes, SplitRun, SplitStanding, WHOLE_INPUT};

use serde::{Deserialize, Serialize};

/// Event time in milliseconds since 1970-01-01 00:00 UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct EventTime(pub i64);

impl EventTime {
    /// Below every event.
    pub const MIN: Self = Self(i64::MIN);
    /// Above every event: what `EndOfData` counts as.
    pub const MAX: Self = Self(i64::MAX);
}

/// Whether a channel takes part in the watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamStatus {
    /// It does.
    Active,
    /// It has been silent for its idle timeout and holds nobody up.
    Idle,
}

/// One element of a channel.
#[derive(Clone, Debug)]
pub enum Element<T> {
    /// Records, at least one.
    Records(Batch<T>),
    /// No record with an event time at or below this one follows (but late ones).
    Watermark(EventTime),
    /// The channel became idle or active.
    Status(StreamStatus),
    /// A checkpoint barrier, in band.
    Barrier(CheckpointBarrier),
    /// No record follows. Counts as the maximum watermark. Barriers may still follow.
    EndOfData,
    /// Nothing follows.
    EndOfPartition,
}
