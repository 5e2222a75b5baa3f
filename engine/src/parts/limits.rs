//! When a part is closed before the barrier closes it.
//!
//! Owns: the limits and the decision. Does not own: closing (see [`super::PartWriter`]). Runs on: plain data. Pure.

use std::time::Duration;

use crate::clock::Moment;

/// Limits of the parts of one subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartLimits {
    /// A part is closed with the record that brings it to this length. At least 1.
    pub part_bytes_max: u64,
    /// A part that is as old as this is closed before the next batch. More than 0.
    pub part_age_max: Duration,
    /// So many parts, of different buckets, are open at once; before another one is opened, the one that was written to longest ago
    /// is closed. At least 1.
    pub open_parts_max: usize,
    /// So many bytes of a part are held back before they are written. At least 1.
    pub held_bytes_max: usize,
}

impl Default for PartLimits {
    fn default() -> Self {
        Self {
            part_bytes_max: 128 * 1024 * 1024,
            part_age_max: Duration::from_secs(60),
            open_parts_max: 64,
            held_bytes_max: 64 * 1024,
        }
    }
}

impl PartLimits {
    /// Whether a part of this length is full.
    pub fn is_full(&self, bytes: u64) -> bool {
        bytes >= self.part_bytes_max
    }

    /// Whether a part that was opened then is too old now.
    pub fn is_too_old(&self, opened_at: Moment, now: Moment) -> bool {
        now.saturating_sub(opened_at) >= self.part_age_max
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_closed_at_its_size_and_at_its_age_and_not_before() {
        let limits = PartLimits { part_bytes_max: 10, ..PartLimits::default() };
        assert!(!limits.is_full(9) && limits.is_full(10));
        let opened = Duration::from_secs(5);
        assert!(!limits.is_too_old(opened, Duration::from_millis(64_999)));
        assert!(limits.is_too_old(opened, Duration::from_secs(65)));
        assert!(!limits.is_too_old(opened, Duration::ZERO), "a clock that stands behind");
    }
}
