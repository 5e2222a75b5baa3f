//! [`KeyedBackend`]: where keyed state lives.
//!
//! Owns: the choice of backend and the key groups it serves.
//! Does not own: the tables (see [`crate::hashmap`]).
//! Runs on: the slot's thread, when a subtask is built.

use crate::key_group::{KeyGroupRange, MaxParallelism};

/// Where the keyed state of one subtask lives.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum KeyedBackend {
    /// Typed tables in memory, written as one full file per snapshot.
    Heap(HeapBackend),
}

/// The file backend's part of the key groups.
#[derive(Clone, Copy, Debug)]
pub struct HeapBackend {
    /// The groups that the subtask owns.
    pub range: KeyGroupRange,
    /// The number of groups of the job.
    pub max_parallelism: MaxParallelism,
}

impl KeyedBackend {
    /// State in memory for the groups of `range`.
    pub fn heap(range: KeyGroupRange, max_parallelism: MaxParallelism) -> Self {
        Self::Heap(HeapBackend { range, max_parallelism })
    }

    /// The groups that the subtask owns.
    pub fn range(&self) -> KeyGroupRange {
        match self {
            Self::Heap(heap) => heap.range,
        }
    }

    /// The number of groups of the job.
    pub fn max_parallelism(&self) -> MaxParallelism {
        match self {
            Self::Heap(heap) => heap.max_parallelism,
        }
    }
}

impl HeapBackend {
    /// The smallest hash of the range, and how far the largest lies above it.
    pub(crate) fn hash_interval(&self) -> (u64, u64) {
        self.range.hash_interval(self.max_parallelism)
    }
}
