//! A directory of partitions, read as a log: one split per file, the offset in state. And a directory of part files, written exactly
//! once (see [`sink`]).
//!
//! A file is a partition that only grows; a record is a line with its newline. Every read proves that the file still is the one that
//! was read before: it must be at least as long as the position, and the last 4 KiB before the position must have the same hash.
//!
//! Owns: the settings ([`FileSource`]) and the way from directory to records. Does not own: event time, nor when a snapshot is taken.
//! Runs on: listing and reading on the I/O side, in blocking work; the slot's thread only takes finished batches from a bounded
//! channel.
//!
//! 1. [`FileEnumerator`] lists the directory (`listing`) and hands out files in order of their names.
//! 2. One `fetcher` per split reads blocks, cuts lines, parses them and sends chunks.
//! 3. [`FileReader`] hands records out and knows the exact position behind each of them (`chunk`).

mod chunk;
mod counters;
mod enumerator;
mod error;
mod fetcher;
mod listing;
mod reader;
pub mod sink;
mod source;
mod split;
#[cfg(test)]
mod tests;

pub use counters::FileCounters;
pub use enumerator::{FileEnumerator, FilesAssigned};
pub use error::FileError;
pub use listing::FoundFile;
pub use reader::FileReader;
pub use sink::{FileSink, FileSinkError, LineEncoder};
pub use source::{BrokenLine, FileSource};
pub use split::FileSplit;
