//! Records on their way from the I/O side to the slot, with the position behind each of them.
//!
//! Owns: exact positions, also in the middle of a chunk. Does not own: reading, or the channel. Runs on: made on the I/O side, taken
//! apart on the slot's thread.

use super::split::tail_hash;
use super::{FileError, FileSplit};

/// What a fetcher sends.
pub(crate) enum Fetched<T> {
    /// Records of the next lines.
    Lines(Chunk<T>),
    /// The split is read to its end.
    End,
    /// Reading stops here.
    Failed(FileError),
}

/// A position inside a chunk: behind a line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineEnd {
    /// Index into the chunk's bytes.
    pub(crate) at: usize,
    /// Lines of the file up to here.
    pub(crate) line: u64,
}

/// Consecutive lines of one file.
pub(crate) struct Chunk<T> {
    /// The records, in order.
    pub(crate) records: Vec<T>,
    /// Behind each record. Skipped lines before a record count to it.
    pub(crate) record_ends: Vec<LineEnd>,
    /// Up to 4 KiB before the first line, then the lines.
    pub(crate) bytes: Vec<u8>,
    /// Offset in the file of the first byte here.
    pub(crate) bytes_offset: u64,
    /// Behind the last line, skipped ones too.
    pub(crate) end: LineEnd,
}

/// A chunk that is being handed out.
pub(crate) struct ChunkInHand<T> {
    records: std::vec::IntoIter<T>,
    record_ends: Vec<LineEnd>,
    bytes: Vec<u8>,
    bytes_offset: u64,
    end: LineEnd,
}

impl<T> ChunkInHand<T> {
    pub(crate) fn of(chunk: Chunk<T>) -> Self {
        let Chunk { records, record_ends, bytes, bytes_offset, end } = chunk;
        Self { records: records.into_iter(), record_ends, bytes, bytes_offset, end }
    }

    /// Records left.
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Takes the next records, at most `count`.
    pub(crate) fn take(&mut self, count: usize) -> impl Iterator<Item = T> + '_ {
        self.records.by_ref().take(count)
    }

    /// Moves `split` behind the last record taken; behind the whole chunk if none is left; nowhere if none was taken.
    pub(crate) fn write_position(&self, split: &mut FileSplit) {
        let taken = self.record_ends.len() - self.records.len();
        let behind = if self.records.len() == 0 {
            self.end
        } else if taken == 0 {
            return;
        } else {
            self.record_ends[taken - 1]
        };
        split.offset = self.bytes_offset + behind.at as u64;
        split.line = behind.line;
        split.tail_hash = tail_hash(&self.bytes[..behind.at]);
    }
}
