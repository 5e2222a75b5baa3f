//! What a file source has left out, for people and metrics.
//!
//! Owns: the counts. Does not own: the policy. Runs on: counted on the I/O side, read anywhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Counts over all readers of this process, since it started. After a restart, what lies behind the restored position counts again.
#[derive(Clone, Debug, Default)]
pub struct FileCounters(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    broken_lines: AtomicU64,
    half_lines: AtomicU64,
}

impl FileCounters {
    /// Lines that were no record and were skipped by [`super::BrokenLine::Skip`].
    pub fn broken_lines(&self) -> u64 {
        self.0.broken_lines.load(Ordering::Relaxed)
    }

    /// Files whose last line had no newline when bounded reading came to their end: such a line is not a record.
    pub fn half_lines(&self) -> u64 {
        self.0.half_lines.load(Ordering::Relaxed)
    }

    /// The number with this one.
    pub(crate) fn count_broken_line(&self) -> u64 {
        self.0.broken_lines.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(crate) fn count_half_line(&self) {
        self.0.half_lines.fetch_add(1, Ordering::Relaxed);
    }
}
