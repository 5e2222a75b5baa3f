//! [`Table`]: a flat hash table in pages, by extendible hashing over one interval of the hash space.
//!
//! The directory maps the top bits of `hash - first` to a page. A full page splits into two halves of its interval;
//! when it has no finer place in the directory, the directory doubles. No operation touches more than two pages.
//!
//! Owns: the directory, the pages, the count of copied entries.
//! Does not own: equality of keys (the caller gives it), hashing (see [`Placing`]), freezing as a protocol.
//! Runs on: the slot's thread.

use std::marker::PhantomData;

use super::directory::Directory;
use super::page::{Page, page_capacity};
use super::placing::Placing;
use super::rows::FrozenRows;

/// Values up to this size are read ahead as a whole.
const READ_AHEAD_BYTES: usize = 64;

/// A flat hash table in pages. The hash that callers give with a key is the one that `P` makes of it.
pub(crate) struct Table<K, V, P> {
    directory: Directory,
    pages: Vec<Page<K, V>>,
    /// How coarse each page is: it holds the hashes that agree in `(hash - first) >> shift`.
    shifts: Vec<u32>,
    length: usize,
    copied: u64,
    placing: PhantomData<fn() -> P>,
}

impl<K: Clone, V: Clone, P: Placing<K>> Table<K, V, P> {
    /// A table for the hashes `first..=first + span`.
    pub(crate) fn new(first: u64, span: u64) -> Self {
        let directory = Directory::new(first, span);
        let shifts = vec![directory.shift()];
        let pages = vec![Page::with_capacity(0)];
        Self { directory, pages, shifts, length: 0, copied: 0, placing: PhantomData }
    }

    /// A table for all hashes.
    pub(crate) fn unbounded() -> Self {
        Self::new(0, u64::MAX)
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Cuts an empty table into as many pages as this many entries will need, so that none has to split on the way there.
    pub(crate) fn make_room_for(&mut self, entries: usize) {
        let capacity = page_capacity::<K, V>();
        // Hashes are spread by chance: some pages get more than their share.
        let share = (capacity - capacity / 8).max(1);
        if self.length > 0 || self.pages.len() > 1 || entries <= capacity {
            return;
        }
        let pages = self.directory.cut_into(entries.div_ceil(share));
        let room = entries.div_ceil(pages as usize);
        self.pages = (0..pages).map(|_| Page::with_capacity((room + room / 8).min(capacity))).collect();
        self.shifts = vec![self.directory.shift(); pages as usize];
    }

    /// How many entries have been copied because a snapshot held their page, since the table was made.
    pub(crate) fn copied_entries(&self) -> u64 {
        self.copied
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        self.pages[self.directory.page(hash)].get(hash, is)
    }

    /// Reads the entries of these keys and forgets them: what waits for memory here waits for many at once, and
    /// who comes back for them soon after finds them near.
    #[inline]
    pub(crate) fn touch<'k>(&self, keys: impl Iterator<Item = (&'k K, u64)>)
    where
        K: Eq + 'k,
    {
        for (key, hash) in keys {
            let found = self.get(hash, |own| own == key);
            if std::mem::needs_drop::<K>()
                && !std::mem::needs_drop::<V>()
                && size_of::<V>() <= READ_AHEAD_BYTES
            {
                // The value lies apart from its key. A clone of plain data reads it: the place alone would not.
                std::hint::black_box(found.cloned());
            } else {
                std::hint::black_box(found);
            }
        }
    }

    /// The value for writing; an absent key copies nothing.
    #[inline]
    pub(crate) fn get_mut(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&mut V> {
        let page = &mut self.pages[self.directory.page(hash)];
        let place = page.find(hash, is)?;
        Some(page.value_mut(&place, &mut self.copied))
    }

    /// The value for writing; an absent key is inserted first, as `make` says.
    #[inline]
    pub(crate) fn get_or_insert_with(
        &mut self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        make: impl FnOnce() -> (K, V),
    ) -> &mut V {
        let index = self.directory.page(hash);
        match self.pages[index].find(hash, is) {
            Some(place) => self.pages[index].value_mut(&place, &mut self.copied),
            None => {
                let (key, value) = make();
                self.insert_new(hash, key, value)
            }
        }
    }

    /// Inserts a key that is known to be absent.
    #[inline]
    pub(crate) fn insert_new(&mut self, hash: u64, key: K, value: V) -> &mut V {
        debug_assert_eq!(hash, P::hash(&key), "an entry is placed by the hash of its key");
        let mut index = self.directory.page(hash);
        while self.pages[index].len() >= page_capacity::<K, V>() && self.split(index, hash) {
            index = self.directory.page(hash);
        }
        self.length += 1;
        self.pages[index].push((hash, key, value), P::hash, &mut self.copied)
    }

    pub(crate) fn remove(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<(K, V)> {
        let page = &mut self.pages[self.directory.page(hash)];
        let place = page.find(hash, is)?;
        self.length -= 1;
        Some(page.remove(place, P::hash, &mut self.copied))
    }

    /// Shares all pages with a snapshot: one reference count or two a page, no entry is touched.
    pub(crate) fn freeze(&mut self) -> FrozenPages<K, V> {
        FrozenPages { pages: self.pages.iter_mut().map(Page::share).collect() }
    }

    /// Splits the page of `hash` into the two halves of its interval; `false` if it cannot be split.
    #[cold]
    fn split(&mut self, index: usize, hash: u64) -> bool {
        let shift = self.shifts[index];
        if !self.directory.make_finer_than(shift) {
            return false;
        }
        let finer = shift - 1;
        // Room for a whole page at once: halves that grow again would be hashed again.
        let room = page_capacity::<K, V>();
        let (mut lower_half, mut upper_half) = (Page::with_capacity(room), Page::with_capacity(room));
        let (mut copied, mut copied_by_halves) = (self.copied, 0);
        let directory = &self.directory;
        self.pages[index].drain(&mut copied, |key, value| {
            let hash = P::hash(&key);
            let half = if directory.is_upper(hash, finer) { &mut upper_half } else { &mut lower_half };
            half.push((hash, key, value), P::hash, &mut copied_by_halves);
        });
        self.copied = copied;
        debug_assert_eq!(copied_by_halves, 0, "no snapshot has a new page");
        self.pages[index] = lower_half;
        self.shifts[index] = finer;
        self.directory.give_upper_half(hash, finer, self.pages.len() as u32);
        self.pages.push(upper_half);
        self.shifts.push(finer);
        true
    }

    #[cfg(test)]
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.directory.places()
    }
}

/// The pages of a table as they were at a freeze.
pub(crate) struct FrozenPages<K, V> {
    pages: Vec<FrozenRows<K, V>>,
}

impl<K, V> FrozenPages<K, V> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        self.pages.iter().flat_map(FrozenRows::iter)
    }

    /// Page by page: each that has been walked is let go, so that its owner may write to it without a copy.
    pub(crate) fn into_pages(self) -> impl Iterator<Item = FrozenRows<K, V>> {
        self.pages.into_iter()
    }
}
