//! One file and the position in it.
//!
//! Owns: what makes a position, and the hash that ties it to the file's content. Does not own: reading. Runs on: plain data; it is
//! operator state.

use tidegate_state::StateType;

/// How many bytes before a position are hashed.
pub(crate) const TAIL_BYTES: usize = 4_096;

/// A file, read up to `offset`.
#[derive(Clone, Debug, PartialEq, Eq, StateType)]
pub struct FileSplit {
    /// Name of the file in the source's folder.
    pub path: String,
    /// Bytes read: the position behind the newline of the last record handed out.
    pub offset: u64,
    /// Lines read, so that a message names the right line after a restore too.
    pub line: u64,
    /// xxh3 of the last 4 KiB (or fewer, if there are not so many) before `offset`.
    pub tail_hash: u64,
    /// Bounded reading: the length of the file at its discovery. `None`: followed.
    pub end: Option<u64>,
}

impl FileSplit {
    /// A file from its beginning.
    pub(crate) fn from_start(path: String, end: Option<u64>) -> Self {
        Self { path, offset: 0, line: 0, tail_hash: tail_hash(&[]), end }
    }
}

/// The hash of the last [`TAIL_BYTES`] of `before`.
pub(crate) fn tail_hash(before: &[u8]) -> u64 {
    xxhash_rust::xxh3::xxh3_64(&before[before.len().saturating_sub(TAIL_BYTES)..])
}
