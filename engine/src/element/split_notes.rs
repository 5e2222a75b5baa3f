//! What a source says about its splits beside records, for watermarks of each split.
//!
//! Notes go from a source's head straight to the operator that makes watermarks, in front of the batch that they are about; they never
//! enter a channel. A reader says at every poll how each of its splits stands, so that nothing has to be remembered in between.
//!
//! Owns: the notes. Does not own: watermarks ([`crate::operator::watermarks`]). Runs on: the slot's thread; plain data.

use crate::clock::Moment;

/// How a split stands after a poll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitStanding {
    /// More may be waiting: in the reader, in a client's queue, at the server. A split that is paused, or held up by whoever takes its
    /// records, is reading.
    Reading,
    /// Everything that it has now was handed out.
    CaughtUp,
    /// It is read to its end.
    Ended,
}

/// Consecutive records of one split in a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SplitRun {
    /// The reader's number of the split.
    pub split: u32,
    /// How many.
    pub records: usize,
}

/// The notes of one poll.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SplitNotes {
    /// When the poll was.
    pub now: Moment,
    /// Whether there was nothing to do since the poll before: then the time in between was waiting for records, and not for room.
    pub waited: bool,
    /// Which records of the next batch come from where, in order.
    pub runs: Vec<SplitRun>,
    /// Every split of the reader.
    pub splits: Vec<(u32, SplitStanding)>,
}

/// The only split of a reader that tells nothing about splits.
pub const WHOLE_INPUT: u32 = 0;
