//! One page of a table: rows that lie densely in two columns, and an index that finds them by their hash.
//!
//! A snapshot shares the columns and not the index. A write to a value of a frozen page copies its values only; its keys are copied
//! when one comes or goes. What is copied is one piece of memory as long as the type is plain data.
//!
//! Owns: the bound on a page's size, its rows and index. Does not own: which hashes fall into which page (see [`Table`](super::Table)).
//! Runs on: the slot's thread; shared columns are read anywhere.

use std::sync::Arc;

use super::column::Column;
use super::row_index::{INDEXED_ROWS, RowIndex};

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
    keys: Column<K>,
    values: Column<V>,
}

/// Where a row is: its number, and its slot of the index unless the index does not name it.
pub(crate) struct RowPlace {
    row: usize,
    slot: Option<usize>,
}

/// The rows of a page as they were at a freeze.
#[derive(Debug)]
pub(crate) struct FrozenPage<K, V> {
    keys: Arc<Vec<K>>,
    values: Arc<Vec<V>>,
}

impl<K, V> FrozenPage<K, V> {
    pub(crate) fn rows(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.keys.iter().zip(self.values.iter())
    }
}

impl<K, V> Page<K, V> {
    /// An empty page with room for `rows` rows.
    pub(crate) fn with_capacity(rows: usize) -> Self {
        let (keys, values) = (Column::with_capacity(rows), Column::with_capacity(rows));
        Self { index: if rows == 0 { RowIndex::default() } else { RowIndex::with_room(rows) }, keys, values }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.keys.rows().len()
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        self.find(hash, is).and_then(|place| self.values.rows().get(place.row))
    }

    /// The row of this hash for whose key `is` holds.
    #[inline]
    pub(crate) fn find(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<RowPlace> {
        let keys = self.keys.rows().as_slice();
        match self.index.find(hash, |row| keys.get(row).is_some_and(&is)) {
            Some((row, slot)) => Some(RowPlace { row, slot: Some(slot) }),
            None if keys.len() > INDEXED_ROWS => find_beyond(keys, is),
            None => None,
        }
    }

    /// Shares the rows with a snapshot: two reference counts.
    pub(crate) fn share(&mut self) -> FrozenPage<K, V> {
        FrozenPage { keys: self.keys.share(), values: self.values.share() }
    }
}

#[cold]
fn find_beyond<K>(keys: &[K], is: impl Fn(&K) -> bool) -> Option<RowPlace> {
    let beyond = keys[INDEXED_ROWS..].iter().position(is)?;
    Some(RowPlace { row: INDEXED_ROWS + beyond, slot: None })
}

/// `copied` counts the rows that are copied because a snapshot has them; keys that are plain data go with their values.
impl<K: Clone, V: Clone> Page<K, V> {
    #[inline]
    pub(crate) fn value_mut(&mut self, place: &RowPlace, copied: &mut u64) -> &mut V {
        &mut self.values.rows_mut(copied)[place.row]
    }

    fn keys_mut(&mut self, copied: &mut u64) -> &mut Vec<K> {
        let mut keys_copied = 0;
        let keys = self.keys.rows_mut(&mut keys_copied);
        if std::mem::needs_drop::<K>() {
            *copied += keys_copied;
        }
        keys
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
        self.keys_mut(copied).push(key);
        let values = self.values.rows_mut(copied);
        values.push(value);
        &mut values[row]
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
        let moved = (row != last).then(|| hash_of(&self.keys.rows()[last]));
        if let Some(hash) = moved
            && let Some((_, slot)) = self.index.find(hash, |found| found == last)
        {
            self.index.renumber(slot, row);
        }
        let removed = (self.keys_mut(copied).swap_remove(row), self.values.rows_mut(copied).swap_remove(row));
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
        let keys = self.keys.rows();
        self.index = RowIndex::with_room(room.max(keys.len() + 1));
        for (row, key) in keys.iter().take(INDEXED_ROWS).enumerate() {
            self.index.enter(hash_of(key), row);
        }
    }

    /// Takes all rows out.
    pub(crate) fn take_rows(&mut self, copied: &mut u64) -> impl Iterator<Item = (K, V)> + use<K, V> {
        let keys = std::mem::take(self.keys_mut(copied));
        let values = std::mem::take(self.values.rows_mut(copied));
        self.index = RowIndex::default();
        keys.into_iter().zip(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_value_after_a_freeze_leaves_the_keys_shared() {
        let hash = |key: &String| key.len() as u64;
        let mut page = Page::<String, i64>::with_capacity(0);
        let mut copied = 0;
        for length in 0..100 {
            page.push((length, "x".repeat(length as usize), 1), hash, &mut copied);
        }
        let frozen = page.share();
        let place = page.find(7, |key| key.len() == 7).unwrap();
        *page.value_mut(&place, &mut copied) = 2;
        assert_eq!(copied, 100, "the values are copied");
        assert_eq!((Arc::strong_count(&frozen.keys), Arc::strong_count(&frozen.values)), (2, 1));
        assert!(frozen.rows().all(|(_, value)| *value == 1));
        page.push((100, "x".repeat(100), 1), hash, &mut copied);
        assert_eq!((copied, Arc::strong_count(&frozen.keys)), (200, 1), "a key that comes copies the keys");
        assert_eq!((page.len(), frozen.rows().count()), (101, 100));
    }
}
