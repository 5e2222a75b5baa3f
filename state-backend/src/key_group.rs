//! Key groups: the unit in which keyed state is assigned to subtasks and moved at a rescale.
//!
//! A key's group is the multiplicative range partition of the top 32 bits of its hash, so a contiguous range of
//! groups is a contiguous range of hashes, and a subtask's state is one interval of the hash space.
//!
//! Owns: the map hash → group → subtask, and the ranges.
//! Does not own: the hash itself (see [`StateType::key_hash`](crate::StateType::key_hash)).
//! Runs on: everywhere. Pure arithmetic.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The number of one key group, `0..max_parallelism`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct KeyGroup(pub u16);

/// A contiguous range of key groups, `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyGroupRange {
    /// The first group of the range.
    pub start: u16,
    /// The first group after the range.
    pub end: u16,
}

impl KeyGroupRange {
    /// All groups of a job with this maximum parallelism.
    pub fn all(max: MaxParallelism) -> Self {
        Self { start: 0, end: max.get() }
    }

    /// Whether `group` lies in the range.
    pub fn contains(&self, group: KeyGroup) -> bool {
        (self.start..self.end).contains(&group.0)
    }

    /// How many groups the range has.
    pub fn len(&self) -> usize {
        usize::from(self.end.saturating_sub(self.start))
    }

    /// Whether the range has no group: a subtask beyond the maximum parallelism.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The groups that both ranges have.
    pub fn intersect(&self, other: &Self) -> Self {
        let start = self.start.max(other.start);
        Self { start, end: self.end.min(other.end).max(start) }
    }

    /// The groups of the range, in order.
    pub fn groups(&self) -> impl Iterator<Item = KeyGroup> {
        (self.start..self.end).map(KeyGroup)
    }

    /// The smallest hash whose group lies in the range, and how far the largest one lies above it.
    pub fn hash_interval(&self, max: MaxParallelism) -> (u64, u64) {
        if self.is_empty() {
            return (0, 0);
        }
        let first = first_hash_of(self.start, max);
        let last = if self.end >= max.get() { u64::MAX } else { first_hash_of(self.end, max) - 1 };
        (first, last - first)
    }
}

impl fmt::Display for KeyGroupRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}

/// The number of key groups of a job, `1..=32768`: no operator can have more subtasks. Fixed for the life of its
/// state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct MaxParallelism(u16);

/// A maximum parallelism outside `1..=32768`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the maximum parallelism must lie in 1..=32768, but is {given}; choose a number in that range")]
pub struct MaxParallelismError {
    /// What was asked for.
    pub given: u32,
}

impl MaxParallelism {
    /// The largest possible one.
    pub const LIMIT: u16 = 32_768;

    /// Checks the bounds.
    ///
    /// # Errors
    /// When `groups` is 0 or over [`Self::LIMIT`].
    pub fn new(groups: u32) -> Result<Self, MaxParallelismError> {
        match u16::try_from(groups) {
            Ok(number @ 1..=Self::LIMIT) => Ok(Self(number)),
            _ => Err(MaxParallelismError { given: groups }),
        }
    }

    /// The number of key groups.
    pub fn get(self) -> u16 {
        self.0
    }
}

impl Default for MaxParallelism {
    fn default() -> Self {
        Self(128)
    }
}

impl fmt::Display for MaxParallelism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<u16> for MaxParallelism {
    type Error = MaxParallelismError;

    fn try_from(groups: u16) -> Result<Self, Self::Error> {
        Self::new(u32::from(groups))
    }
}

impl From<MaxParallelism> for u16 {
    fn from(max: MaxParallelism) -> Self {
        max.0
    }
}

/// The group of a key with this hash.
#[inline]
pub fn key_group_of(hash: u64, max: MaxParallelism) -> KeyGroup {
    // 32 bits times at most 2^15, shifted down by 32: below 2^15.
    KeyGroup((((hash >> 32) * u64::from(max.0)) >> 32) as u16)
}

/// The groups that `subtask` of `parallelism` owns. The ranges of all subtasks are disjoint and complete; their
/// sizes differ by at most one. A subtask number or parallelism beyond `max` gives an empty range.
pub fn range_of(subtask: u32, parallelism: u32, max: MaxParallelism) -> KeyGroupRange {
    let (subtask, groups) = (u64::from(subtask), u64::from(max.0));
    let parallelism = u64::from(parallelism.max(1));
    let bound = |index: u64| (index * groups).div_ceil(parallelism).min(groups) as u16;
    KeyGroupRange { start: bound(subtask), end: bound(subtask + 1) }
}

/// The subtask of `parallelism` that owns `group`.
#[inline]
pub fn subtask_of(group: KeyGroup, parallelism: u32, max: MaxParallelism) -> u32 {
    (u64::from(group.0) * u64::from(parallelism) / u64::from(max.0)) as u32
}

fn first_hash_of(group: u16, max: MaxParallelism) -> u64 {
    (u64::from(group) << 32).div_ceil(u64::from(max.0)) << 32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn max(groups: u16) -> MaxParallelism {
        MaxParallelism::new(u32::from(groups)).unwrap()
    }

    #[test]
    fn bounds_of_the_maximum_parallelism_are_checked() {
        assert_eq!(MaxParallelism::new(0), Err(MaxParallelismError { given: 0 }));
        assert_eq!(MaxParallelism::new(32_769), Err(MaxParallelismError { given: 32_769 }));
        assert_eq!(MaxParallelism::new(32_768).unwrap().get(), 32_768);
        assert_eq!(MaxParallelism::default().get(), 128);
    }

    #[test]
    fn the_ends_of_the_hash_space_fall_into_the_first_and_the_last_group() {
        assert_eq!(key_group_of(0, max(128)), KeyGroup(0));
        assert_eq!(key_group_of(u64::MAX, max(128)), KeyGroup(127));
        assert_eq!(key_group_of(u64::MAX, max(32_768)), KeyGroup(32_767));
        assert_eq!(KeyGroupRange::all(max(7)).hash_interval(max(7)), (0, u64::MAX));
    }

    proptest! {
        #[test]
        fn ranges_are_complete_and_disjoint(groups in 1u16..=32_768, parallelism in 1u32..600) {
            let mut next = 0;
            for subtask in 0..parallelism {
                let range = range_of(subtask, parallelism, max(groups));
                prop_assert_eq!(range.start, next);
                prop_assert!(range.end >= range.start);
                next = range.end;
            }
            prop_assert_eq!(next, groups);
        }

        #[test]
        fn the_owner_of_a_group_has_it_in_its_range(
            groups in 1u16..=32_768, share in 0.0f64..1.0, group in 0u16..32_768
        ) {
            let parallelism = 1 + (f64::from(groups - 1) * share) as u32;
            let group = KeyGroup(group % groups);
            let subtask = subtask_of(group, parallelism, max(groups));
            prop_assert!(subtask < parallelism);
            prop_assert!(range_of(subtask, parallelism, max(groups)).contains(group));
        }

        #[test]
        fn a_range_of_groups_is_an_interval_of_hashes(
            hash: u64, groups in 1u16..=32_768, cut in (0u16..32_768, 0u16..32_768)
        ) {
            let start = cut.0 % groups;
            let range = KeyGroupRange { start, end: start + 1 + cut.1 % (groups - start) };
            let (first, span) = range.hash_interval(max(groups));
            let inside = hash >= first && hash - first <= span;
            prop_assert_eq!(inside, range.contains(key_group_of(hash, max(groups))));
            prop_assert_eq!(key_group_of(first, max(groups)), KeyGroup(range.start));
            prop_assert_eq!(key_group_of(first + span, max(groups)), KeyGroup(range.end - 1));
        }
    }
}
