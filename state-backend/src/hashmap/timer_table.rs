//! [`TimerTable`]: timers, as keyed state.
//!
//! The truth is a flat table of (key, time), which is frozen and restored as any state. The heap beside it only
//! knows the order; it may name timers that are deleted, which are passed over, and is rebuilt at a restore.
//!
//! Owns: registering, deleting and taking due timers, in time order and in one fixed order among equals.
//! Does not own: which clock or watermark makes a timer due.
//! Runs on: the slot's thread; its frozen form anywhere.

use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::sync::Arc;

use super::{ByTimer, FrozenPages, Table, spread};
use crate::backend::{HeapBackend, KeyedBackend};
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::key_group::{KeyGroupRange, MaxParallelism};
use crate::snapshot::{FrozenTable, RestoreDecoder, StateFileReader, StateFileWriter};

/// The name under which timers are stored, unless they are given another.
pub const TIMERS_STATE: &str = "_timers";

/// The heap is rebuilt when it has this many more places than twice the timers there are.
const STALE_PLACES: usize = 1_024;

/// A timer in the heap. Equal times fire in the order of their keys' hashes, which no restore changes.
struct Due<K> {
    time: i64,
    key_hash: u64,
    sequence: u64,
    key: K,
}

impl<K> Due<K> {
    fn order(&self) -> (i64, u64, u64) {
        (self.time, self.key_hash, self.sequence)
    }
}

impl<K> PartialEq for Due<K> {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl<K> Eq for Due<K> {}

impl<K> PartialOrd for Due<K> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<K> Ord for Due<K> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order().cmp(&other.order())
    }
}

/// Timers by key and time (milliseconds); one of each.
pub struct TimerTable<K> {
    timers: Table<(K, i64), (), ByTimer>,
    heap: BinaryHeap<Reverse<Due<K>>>,
    sequence: u64,
    descriptor: Arc<StateDescriptor>,
    backend: HeapBackend,
}

impl<K: StateType + Eq> TimerTable<K> {
    /// No timers, for the key groups of `range`, stored as [`TIMERS_STATE`].
    pub fn new(range: KeyGroupRange, max_parallelism: MaxParallelism) -> Self {
        Self::named(TIMERS_STATE, range, max_parallelism)
    }

    /// No timers, for the key groups of `backend`, stored as [`TIMERS_STATE`].
    pub fn open(backend: &KeyedBackend) -> Self {
        Self::new(backend.range(), backend.max_parallelism())
    }

    /// No timers, stored under `name`: for an operator that has several kinds.
    pub fn named(name: &str, range: KeyGroupRange, max_parallelism: MaxParallelism) -> Self {
        Self {
            timers: Table::unbounded(),
            heap: BinaryHeap::new(),
            sequence: 0,
            descriptor: Arc::new(StateDescriptor::timers::<K>(name)),
            backend: HeapBackend { range, max_parallelism },
        }
    }

    /// How many timers there are.
    pub fn len(&self) -> usize {
        self.timers.len()
    }

    /// Whether there is no timer.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is stored.
    pub fn descriptor(&self) -> &StateDescriptor {
        &self.descriptor
    }

    /// How many entries were copied because a snapshot held their page, since the table was made.
    pub fn copied_entries(&self) -> u64 {
        self.timers.copied_entries()
    }

    /// Registers a timer; `false` if there is one for this key and time.
    pub fn register(&mut self, key: &K, hash: u64, time: i64) -> bool {
        let at = spread(hash, time as u64);
        if self.timers.get(at, |own| own.1 == time && own.0 == *key).is_some() {
            return false;
        }
        self.timers.insert_new(at, (key.clone(), time), ());
        self.schedule(key.clone(), hash, time);
        true
    }

    /// Deletes a timer; `false` if there is none for this key and time.
    pub fn delete(&mut self, key: &K, hash: u64, time: i64) -> bool {
        let removed = self.timers.remove(spread(hash, time as u64), |own| own.1 == time && own.0 == *key);
        if self.heap.len() > 2 * self.timers.len() + STALE_PLACES {
            let heap = std::mem::take(&mut self.heap);
            let mut places = heap.into_vec();
            places.retain(|Reverse(due)| self.is_registered(due));
            self.heap = places.into();
        }
        removed.is_some()
    }

    /// The earliest time of a timer.
    pub fn next_time(&mut self) -> Option<i64> {
        while let Some(Reverse(due)) = self.heap.peek() {
            if self.is_registered(due) {
                return Some(due.time);
            }
            self.heap.pop();
        }
        None
    }

    /// Takes the earliest timer if its time is at most `up_to`.
    pub fn pop_due(&mut self, up_to: i64) -> Option<(i64, K)> {
        while self.heap.peek().is_some_and(|Reverse(due)| due.time <= up_to) {
            let Reverse(Due { time, key_hash, key, .. }) = self.heap.pop()?;
            let at = spread(key_hash, time as u64);
            // A place in the heap whose timer was deleted, or registered again and taken, is passed over.
            if self.timers.remove(at, |own| own.1 == time && own.0 == key).is_some() {
                return Some((time, key));
            }
        }
        None
    }

    /// Shares the content with a snapshot.
    pub fn freeze(&mut self) -> Box<dyn FrozenTable> {
        Box::new(FrozenTimers { pages: self.timers.freeze(), descriptor: self.descriptor.clone() })
    }

    /// Takes over the timers of `file` whose key group lies in `range`.
    ///
    /// # Errors
    /// When the file holds the timers of another type of key, or is broken.
    pub fn restore(&mut self, file: &StateFileReader<'_>, range: KeyGroupRange) -> Result<(), StateError> {
        let descriptor = self.descriptor.clone();
        let Some(decoder) = RestoreDecoder::<K, i64, ()>::new(file, &descriptor, self.backend)? else {
            return Ok(());
        };
        self.timers.make_room_for(decoder.entries(range));
        decoder.each(range, |key, hash, time, ()| {
            self.register(key, hash, time);
        })
    }

    fn schedule(&mut self, key: K, key_hash: u64, time: i64) {
        let sequence = self.sequence;
        self.sequence += 1;
        self.heap.push(Reverse(Due { time, key_hash, sequence, key }));
    }

    fn is_registered(&self, due: &Due<K>) -> bool {
        let at = spread(due.key_hash, due.time as u64);
        self.timers.get(at, |own| own.1 == due.time && own.0 == due.key).is_some()
    }
}

struct FrozenTimers<K> {
    pages: FrozenPages<(K, i64), ()>,
    descriptor: Arc<StateDescriptor>,
}

impl<K: StateType> FrozenTable for FrozenTimers<K> {
    fn descriptor(&self) -> &StateDescriptor {
        &self.descriptor
    }

    fn write(self: Box<Self>, file: &mut StateFileWriter) {
        let mut section = file.section(&self.descriptor);
        for page in self.pages.into_pages() {
            for ((key, time), ()) in page.iter() {
                section.entry(key.key_hash(), |out| key.encode(out), |out| time.encode(out), |_| {});
            }
        }
        section.finish();
    }
}
