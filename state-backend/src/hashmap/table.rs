//! [`Table`]: a flat hash table in pages, by extendible hashing over one interval of the hash space.
//!
//! The directory maps the top bits of `hash - first` to a page. A full page splits into two halves of its interval;
//! when it has no finer place in the directory, the directory doubles. No operation touches more than two pages.
//!
//! Owns: the directory, the pages, the count of copied entries.
//! Does not own: equality of keys (the caller gives it), hashing (see [`Placing`]), freezing as a protocol.
//! Runs on: the slot's thread.

use std::marker::PhantomData;
use std::sync::Arc;

use hashbrown::hash_table::Entry::{Occupied, Vacant};

use super::page::{Entries, Entry, Page, page_capacity, probe};
use super::placing::Placing;

/// The directory never has more places than this; beyond it, pages grow over their capacity. Hashes would have to
/// agree in far more bits than chance allows.
const DIRECTORY_PLACES: usize = 1 << 26;

/// Which page a hash falls into.
#[derive(Clone)]
struct Directory {
    /// The smallest hash of the interval.
    first: u64,
    /// How far the largest hash lies above the smallest.
    span: u64,
    /// `(hash - first) >> shift` is the place; 64 stands for a single place.
    shift: u32,
    /// The page of each place.
    places: Vec<u32>,
}

impl Directory {
    fn new(first: u64, span: u64) -> Self {
        Self { first, span, shift: 64 - span.leading_zeros(), places: vec![0] }
    }

    #[inline]
    fn page(&self, hash: u64) -> usize {
        let offset = hash.wrapping_sub(self.first);
        debug_assert!(offset <= self.span, "the key's hash lies outside the table's key groups");
        let place = offset.checked_shr(self.shift).unwrap_or(0) as usize;
        self.places[place] as usize
    }

    /// The places of the page that holds `hash` and is `page_shift` coarse.
    fn places_of(&self, hash: u64, page_shift: u32) -> std::ops::Range<usize> {
        let offset = hash.wrapping_sub(self.first);
        let coarse = offset.checked_shr(page_shift).unwrap_or(0);
        let finer = page_shift - self.shift;
        let start = (coarse << finer) as usize;
        start..(start + (1usize << finer)).min(self.places.len())
    }

    fn double(&mut self) {
        self.shift -= 1;
        let length = (self.span >> self.shift) as usize + 1;
        self.places = (0..length).map(|place| self.places[place >> 1]).collect();
    }
}

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
        let shifts = vec![directory.shift];
        Self { directory, pages: vec![Page::new()], shifts, length: 0, copied: 0, placing: PhantomData }
    }

    /// A table for all hashes.
    pub(crate) fn unbounded() -> Self {
        Self::new(0, u64::MAX)
    }

    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// How many entries have been copied because a snapshot held their page, since the table was made.
    pub(crate) fn copied_entries(&self) -> u64 {
        self.copied
    }

    #[inline]
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        find(self.pages[self.directory.page(hash)].entries(), hash, is)
    }

    /// Reads the entries of these keys and forgets them: what waits for memory here waits for many at once, and
    /// who comes back for them soon after finds them near.
    #[inline]
    pub(crate) fn touch<'k>(&self, keys: impl Iterator<Item = (&'k K, u64)>)
    where
        K: Eq + 'k,
    {
        let found = keys.fold(0usize, |found, (key, hash)| {
            found + usize::from(self.get(hash, |own| own == key).is_some())
        });
        std::hint::black_box(found);
    }

    /// The value for writing; an absent key copies nothing.
    #[inline]
    pub(crate) fn get_mut(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&mut V> {
        let page = &mut self.pages[self.directory.page(hash)];
        if let Page::Shared(entries) = page
            && find(entries, hash, &is).is_none()
        {
            return None;
        }
        let entries = page.entries_mut(&mut self.copied);
        let found = entries.find_mut(probe(hash), |entry| is(&entry.key));
        found.map(|entry| &mut entry.value)
    }

    /// The value for writing; an absent key is inserted first, as `make` says.
    #[inline]
    pub(crate) fn get_or_insert_with(
        &mut self,
        hash: u64,
        is: impl Fn(&K) -> bool,
        make: impl FnOnce() -> (K, V),
    ) -> &mut V {
        let mut index = self.directory.page(hash);
        if self.pages[index].entries().len() >= page_capacity::<K, V>() {
            index = self.make_room(hash, &is);
        }
        let entries = self.pages[index].entries_mut(&mut self.copied);
        let same = |entry: &Entry<K, V>| is(&entry.key);
        match entries.entry(probe(hash), same, Self::probe_of) {
            Occupied(found) => &mut found.into_mut().value,
            Vacant(place) => {
                self.length += 1;
                let (key, value) = make();
                debug_assert_eq!(hash, P::hash(&key), "an entry is placed by the hash of its key");
                &mut place.insert(Entry { key, value }).into_mut().value
            }
        }
    }

    #[inline]
    fn probe_of(entry: &Entry<K, V>) -> u64 {
        probe(P::hash(&entry.key))
    }

    /// The page of `hash`, split until it has room if the key is absent.
    #[cold]
    fn make_room(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> usize {
        let absent = self.get(hash, is).is_none();
        let mut index = self.directory.page(hash);
        while absent && self.pages[index].entries().len() >= page_capacity::<K, V>() {
            if !self.split(index, hash) {
                break;
            }
            index = self.directory.page(hash);
        }
        index
    }

    /// Inserts a key that is known to be absent.
    #[inline]
    pub(crate) fn insert_new(&mut self, hash: u64, key: K, value: V) -> &mut V {
        debug_assert_eq!(hash, P::hash(&key), "an entry is placed by the hash of its key");
        let mut index = self.directory.page(hash);
        if self.pages[index].entries().len() >= page_capacity::<K, V>() {
            index = self.make_room(hash, |_| false);
        }
        self.length += 1;
        let entries = self.pages[index].entries_mut(&mut self.copied);
        let entry = Entry { key, value };
        &mut entries.insert_unique(probe(hash), entry, Self::probe_of).into_mut().value
    }

    pub(crate) fn remove(&mut self, hash: u64, is: impl Fn(&K) -> bool) -> Option<(K, V)> {
        let page = &mut self.pages[self.directory.page(hash)];
        find(page.entries(), hash, &is)?;
        let entries = page.entries_mut(&mut self.copied);
        let found = entries.find_entry(probe(hash), |entry| is(&entry.key)).ok()?;
        self.length -= 1;
        let (entry, _) = found.remove();
        Some((entry.key, entry.value))
    }

    /// Shares all pages with a snapshot: one reference count a page, no entry is touched.
    pub(crate) fn freeze(&mut self) -> FrozenPages<K, V> {
        let pages = self.pages.iter_mut().map(Page::share).collect();
        FrozenPages { directory: self.directory.clone(), pages }
    }

    /// Splits the page of `hash` into the two halves of its interval; `false` if it cannot be split.
    #[cold]
    fn split(&mut self, index: usize, hash: u64) -> bool {
        let shift = self.shifts[index];
        if shift == self.directory.shift {
            if shift == 0 || self.directory.places.len() >= DIRECTORY_PLACES {
                return false;
            }
            self.directory.double();
        }
        let places = self.directory.places_of(hash, shift);
        let (finer, first) = (shift - 1, self.directory.first);
        let entries = self.pages[index].entries_mut(&mut self.copied);
        // Room for a whole page at once: halves that grow again would be hashed again.
        let room = entries.capacity().min(page_capacity::<K, V>());
        let (mut lower_half, mut upper_half) = (Entries::with_capacity(room), Entries::with_capacity(room));
        for entry in entries.drain() {
            let hash = P::hash(&entry.key);
            let half = if ((hash - first) >> finer) & 1 == 1 { &mut upper_half } else { &mut lower_half };
            half.insert_unique(probe(hash), entry, Self::probe_of);
        }
        self.pages[index] = Page::Owned(lower_half);
        self.shifts[index] = finer;
        let new_page = self.pages.len() as u32;
        self.pages.push(Page::Owned(upper_half));
        self.shifts.push(finer);
        let middle = places.start + (1usize << (finer - self.directory.shift));
        for place in middle..places.end {
            self.directory.places[place] = new_page;
        }
        true
    }

    #[cfg(test)]
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    #[cfg(test)]
    pub(crate) fn places(&self) -> usize {
        self.directory.places.len()
    }
}

/// The pages of a table as they were at a freeze.
pub(crate) struct FrozenPages<K, V> {
    directory: Directory,
    pages: Vec<Arc<Entries<K, V>>>,
}

impl<K, V> FrozenPages<K, V> {
    pub(crate) fn get(&self, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
        find(&self.pages[self.directory.page(hash)], hash, is)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Entry<K, V>> {
        self.pages.iter().flat_map(|page| page.iter())
    }
}

#[inline]
fn find<K, V>(entries: &Entries<K, V>, hash: u64, is: impl Fn(&K) -> bool) -> Option<&V> {
    entries.find(probe(hash), |entry| is(&entry.key)).map(|entry| &entry.value)
}
