//! Which channel a record takes.
//!
//! Owns: the rule. Does not own: buffers. Runs on: the sending slot.

use std::sync::Arc;

use tidegate_state::{KeyGroup, MaxParallelism, key_group_of, subtask_of};

use crate::element::Batch;

/// With more channels than these, buffers grow with what comes: most batches then leave by age, and room for a whole one in each
/// would be most of a job's memory.
const CHANNELS_RESERVED_MAX: usize = 16;

/// The hash of a record's key.
pub type KeyHash<T> = Arc<dyn KeyHasher<T>>;

/// Hashes the keys of a whole batch: one `dyn` call per batch.
pub trait KeyHasher<T>: Send + Sync {
    /// What takes the key, for people: a panic in it is neither the sender's nor the receiver's.
    fn name(&self) -> &Arc<str>;

    /// Appends the hash of each record's key.
    fn hash_batch(&self, batch: &[T], hashes: &mut Vec<u64>);
}

/// The rule of an edge.
#[derive(Clone)]
pub enum Partitioner<T> {
    /// Subtask *i* to subtask *i*.
    Forward,
    /// Batches in turn.
    Rebalance,
    /// By key group.
    Hash {
        /// Takes the hash of a record's key.
        hasher: KeyHash<T>,
    },
}

impl<T> std::fmt::Debug for Partitioner<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Forward => "Forward",
            Self::Rebalance => "Rebalance",
            Self::Hash { .. } => "Hash",
        })
    }
}

/// Splits batches over `channels` channels.
#[derive(Debug)]
pub struct Router<T> {
    partitioner: Partitioner<T>,
    max_parallelism: MaxParallelism,
    /// Channel of each key group.
    by_group: Vec<u32>,
    next: usize,
    hashes: Vec<u64>,
}

impl<T> Router<T> {
    /// A router over `channels` channels; `start` spreads the first batches of different senders.
    pub fn new(
        partitioner: Partitioner<T>,
        max_parallelism: MaxParallelism,
        channels: u32,
        start: u32,
    ) -> Self {
        let by_group = match &partitioner {
            Partitioner::Hash { .. } => (0..max_parallelism.get())
                .map(|g| subtask_of(KeyGroup(g), channels, max_parallelism))
                .collect(),
            _ => Vec::new(),
        };
        let next = start as usize % channels.max(1) as usize;
        Self { partitioner, max_parallelism, by_group, next, hashes: Vec::new() }
    }

    /// What takes the keys, if anything does.
    pub fn key_name(&self) -> Option<&Arc<str>> {
        match &self.partitioner {
            Partitioner::Hash { hasher } => Some(hasher.name()),
            Partitioner::Forward | Partitioner::Rebalance => None,
        }
    }

    /// Moves each record into the buffer of its channel. A buffer that becomes full on the way goes to `full`, with its channel.
    pub fn route(
        &mut self,
        batch: Batch<T>,
        buffers: &mut [Batch<T>],
        batch_records: usize,
        full: &mut Vec<(usize, Batch<T>)>,
    ) {
        match &self.partitioner {
            Partitioner::Hash { hasher } if buffers.len() > 1 => {
                self.hashes.clear();
                hasher.hash_batch(&batch.values, &mut self.hashes);
                let reserved = if buffers.len() <= CHANNELS_RESERVED_MAX { batch_records } else { 0 };
                for buffer in buffers.iter_mut().filter(|buffer| buffer.is_empty()) {
                    buffer.values.reserve(reserved);
                }
                let mut times = batch.timestamps.into_iter();
                for (value, hash) in batch.values.into_iter().zip(&self.hashes) {
                    let group = key_group_of(*hash, self.max_parallelism);
                    let channel = self.by_group[group.0 as usize] as usize;
                    let buffer = &mut buffers[channel];
                    buffer.push(value, times.next());
                    if buffer.len() >= batch_records {
                        let fresh = Batch::with_capacity(reserved);
                        full.push((channel, std::mem::replace(buffer, fresh)));
                    }
                }
            }
            _ => {
                let channel = self.next;
                let buffer = &mut buffers[channel];
                if buffer.is_empty() {
                    *buffer = batch;
                } else {
                    buffer.values.extend(batch.values);
                    buffer.timestamps.extend(batch.timestamps);
                }
                while buffer.len() >= batch_records {
                    let rest = buffer.split_off(batch_records);
                    full.push((channel, std::mem::replace(buffer, rest)));
                }
                if matches!(self.partitioner, Partitioner::Rebalance) {
                    self.next = (self.next + 1) % buffers.len();
                }
            }
        }
    }
}
