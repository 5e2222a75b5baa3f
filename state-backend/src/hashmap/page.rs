//! One page of a table: rows that lie densely, and an index that finds them by their hash.
//!
//! A snapshot shares the rows and not the index.
//!
//! Owns: the bound on a page's size, its rows and index. Does not own: which hashes fall into which page (see [`Table`](super::Table)).
//! Runs on: the slot's thread; frozen rows are read anywhere.

use super::row_index::{INDEXED_ROWS, RowIndex};
use super::rows::{FrozenRows, Rows};

/// At most this many rows a page: what fills 1,024 slots of the index at seven eighths.
const PAGE_ROWS: usize = 896;

/// At most this many bytes a page, as far as keys and values are stored inline.
const PAGE_BYTES: usize = 64 * 1024;

/// How many rows a page of these types may have.
#[inline]
pub(crate) fn page_capacity<K, V>() -> usize {
    (PAGE_BYTES / (size_of::<K>() + size_of::<V>()).max(1)).clamp(1, PAGE_ROWS)
}

/// The rows of one interval of the hash space.
#[derive(Debug)]
pub(crate) struct Page<K, V> {
    index: RowIndex,
    rows: Rows<K, V>,
}

/// Where a row is: its number, and its slot of the index unless the index does not name it.
pub(crate) struct RowPlace {
    row: usize,
    slot: Option<usize>,
}

impl<K, V> Page<K, V> {
    /// An empty page with room for `rows` rows.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let index = if rows == 0 { RowIndex::default() } else { RowIndex::with_room(rows) };
        Self { index, rows: Rows::with_capacity(rows) }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        self.find(hash, is).and_then(|place| self.rows.value(place.row))
    }

    /// The row of this hash for whose key `is` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<RowPlace> {
        match self.index.find(hash, |row| self.rows.key(row).is_some_and(&is)) {
            Some((row, slot)) => Some(RowPlace { row, slot: Some(slot) }),
            None if self.len() > INDEXED_ROWS => self.find_beyond(is),
            None => None,
        }
    }

    /// A row that the index cannot name.
    #[cold]
    fn find_beyond(&self, is: impl Fn(&K) -> bool) -> Option<RowPlace> {
        let row = (INDEXED_ROWS..self.len()).find(|row| self.rows.key(*row).is_some_and(&is))?;
        Some(RowPlace { row, slot: None })
    }

    /// Shares the rows with a snapshot: a reference count or two.
    pub(crate) fn share(&mut self) -> FrozenRows<K, V> {
        self.rows.share()
    }
}

/// `copied` counts what is copied because a snapshot has it (see [`Rows`]).
impl<K: Clone, V: Clone> Page<K, V> {
    #[inline]
    pub(crate) fn value_mut(&mut self, place: &RowPlace, copied: &mut u64) -> &mut V {
        self.rows.value_mut(place.row, copied)
    }

    /// Adds a row; `hash_of` makes hashes again when the index grows.
    #[inline]
    pub(crate) fn push(
        &mut self,
        (hash, key, value): (u64, K, V),
        hash_of: impl Fn(&K) -> u64,
        copied: &mut u64,
    ) -> &mut V {
        let row = self.len();
        if row < INDEXED_ROWS {
            if self.index.is_full() {
                self.index_again(row + row / 2, hash_of);
            }
            self.index.enter(hash, row);
        }
        self.rows.push(key, value, copied);
        self.rows.value_mut(row, copied)
    }

    /// Takes a row out; the last one moves into the gap.
    pub(crate) fn remove(
        &mut self,
        place: RowPlace,
        hash_of: impl Fn(&K) -> u64,
        copied: &mut u64,
    ) -> (K, V) {
        let (row, last) = (place.row, self.len() - 1);
        if let Some(slot) = place.slot {
            self.index.forget(slot);
        }
        let moved = if row == last { None } else { self.rows.key(last).map(&hash_of) };
        if let Some(hash) = moved
            && let Some((_, slot)) = self.index.find(hash, |found| found == last)
        {
            self.index.renumber(slot, row);
        }
        let removed = self.rows.swap_remove(row, copied);
        if let Some(hash) = moved
            && row < INDEXED_ROWS
            && last >= INDEXED_ROWS
        {
            // It had no slot where it was.
            if self.index.is_full() {
                self.index_again(INDEXED_ROWS, hash_of);
            } else {
                self.index.enter(hash, row);
            }
        }
        removed
    }

    /// A new index with room for so many rows, with those that there are.
    #[cold]
    fn index_again(&mut self, room: usize, hash_of: impl Fn(&K) -> u64) {
        self.index = RowIndex::with_room(room.max(self.len() + 1));
        for row in 0..self.len().min(INDEXED_ROWS) {
            if let Some(key) = self.rows.key(row) {
                self.index.enter(hash_of(key), row);
            }
        }
    }

    /// Takes all rows out and gives each to `take`.
    pub(crate) fn drain(&mut self, copied: &mut u64, take: impl FnMut(K, V)) {
        self.index = RowIndex::default();
        self.rows.drain(copied, take);
    }
}
