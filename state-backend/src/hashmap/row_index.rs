//! [`RowIndex`]: finds the rows of one page by their hash: open addressing over small slots.
//!
//! A slot is two bytes, ten bits of row number and six of the hash, so 32 of them share a cache line: a lookup mostly reads one line
//! here and then the row itself. No snapshot shares an index, since a frozen page is only walked.
//!
//! Owns: the slots. Does not own: the rows, and hashing them again when the index grows (see [`Page`](super::page::Page)).
//! Runs on: the slot's thread.

/// Rows that an index can name. A page that has more of them, because their hashes agree, searches the rest one by one.
pub(crate) const INDEXED_ROWS: usize = NUMBER_MASK as usize - 1;

const NUMBER_BITS: u32 = 10;
const NUMBER_MASK: u16 = (1 << NUMBER_BITS) - 1;

/// Nothing has been here: a search ends.
const EMPTY: u16 = 0;
/// Something has been here: a search goes on. Names a row beyond [`INDEXED_ROWS`].
const GONE: u16 = NUMBER_MASK;

/// Slots of the smallest index that has any.
const SLOTS_MIN: usize = 16;

/// Row numbers by hash.
#[derive(Debug, Default)]
pub(crate) struct RowIndex {
    /// A power of two of them, or none.
    slots: Vec<u16>,
    /// Slots that are not [`EMPTY`].
    used: usize,
}

/// The bits of the hash that a slot keeps; the home slot comes from others, and the page from the topmost.
#[inline]
fn tag(hash: u64) -> u16 {
    ((hash >> 32) as u16) << NUMBER_BITS
}

impl RowIndex {
    /// Room for this many rows.
    pub(crate) fn with_room(rows: usize) -> Self {
        let slots = (rows.min(INDEXED_ROWS) * 8).div_ceil(7).next_power_of_two().max(SLOTS_MIN);
        Self { slots: vec![EMPTY; slots], used: 0 }
    }

    /// The row of this hash for which `is` holds, and its slot.
    #[inline]
    pub(crate) fn find(&self, hash: u64, mut is: impl FnMut(usize) -> bool) -> Option<(usize, usize)> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash as usize & mask;
        loop {
            let slot = *self.slots.get(at)?;
            if slot == EMPTY {
                return None;
            }
            if slot & !NUMBER_MASK == tag(hash) {
                let row = usize::from(slot & NUMBER_MASK) - 1;
                if row < INDEXED_ROWS && is(row) {
                    return Some((row, at));
                }
            }
            at = (at + 1) & mask;
        }
    }

    /// Whether another row needs a new index first: one slot in eight stays empty, so that every search ends.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        (self.used + 1) * 8 > self.slots.len() * 7
    }

    /// Enters a row; the index is not full.
    #[inline]
    pub(crate) fn enter(&mut self, hash: u64, row: usize) {
        debug_assert!(row < INDEXED_ROWS && !self.is_full(), "an index has room for the row that is entered");
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while !matches!(self.slots[at], EMPTY) {
            at = (at + 1) & mask;
        }
        self.used += 1;
        self.slots[at] = tag(hash) | (row as u16 + 1);
    }

    /// Forgets the row in this slot.
    pub(crate) fn forget(&mut self, at: usize) {
        let mask = self.slots.len() - 1;
        if self.slots[(at + 1) & mask] != EMPTY {
            self.slots[at] = GONE;
            return;
        }
        // A search that comes here ends in the next slot anyway, and so does one that goes through slots that are gone before.
        let mut at = at;
        loop {
            self.slots[at] = EMPTY;
            self.used -= 1;
            at = at.wrapping_sub(1) & mask;
            if self.slots[at] != GONE {
                return;
            }
        }
    }

    /// The row in this slot has another number from now on.
    pub(crate) fn renumber(&mut self, at: usize, row: usize) {
        self.slots[at] = (self.slots[at] & !NUMBER_MASK) | (row as u16 + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_until_they_are_forgotten_whatever_came_and_went_between() {
        // 40 homes for up to 200 rows: long searches across slots that are gone, and around the end.
        let hash = |row: usize| ((row as u64 % 40) << 32) | (row as u64 % 40 * 5);
        let mut index = RowIndex::with_room(200);
        let mut present = std::collections::BTreeSet::new();
        let mut seed = 7u64;
        for step in 0..20_000 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let row = (seed >> 33) as usize % 200;
            match index.find(hash(row), |found| found == row) {
                Some((found, at)) => {
                    assert!(found == row && present.remove(&row), "step {step}: row {row} was forgotten");
                    index.forget(at);
                }
                None => {
                    assert!(present.insert(row), "step {step}: row {row} is not found");
                    if index.is_full() {
                        index = RowIndex::with_room(200);
                        present
                            .iter()
                            .filter(|other| **other != row)
                            .for_each(|other| index.enter(hash(*other), *other));
                    }
                    index.enter(hash(row), row);
                }
            }
            assert!(index.used < index.slots.len(), "a search always ends");
        }
        for row in 0..200 {
            assert_eq!(index.find(hash(row), |found| found == row).is_some(), present.contains(&row));
        }
    }

    #[test]
    fn an_index_without_slots_finds_nothing_and_is_full() {
        let index = RowIndex::default();
        assert!(index.is_full() && index.find(7, |_| true).is_none());
    }
}
