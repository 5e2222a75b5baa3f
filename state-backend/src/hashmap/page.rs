//! One page of a table: a small hash table that is either owned or shared with a snapshot.
//!
//! Owns: the bound on a page's size, and taking a shared page back by the cheapest means.
//! Does not own: which hashes fall into which page (see [`Table`](super::Table)).
//! Runs on: the slot's thread; shared pages are read anywhere.

use std::mem;
use std::sync::Arc;

use hashbrown::HashTable;

/// At most this many entries a page: what fills 1,024 buckets at seven eighths.
const PAGE_ENTRIES: usize = 896;

/// At most this many bytes a page, as far as entries are stored inline.
const PAGE_BYTES: usize = 64 * 1024;

/// One entry. Its hash is not kept: two scalars then share a cache line with no other entry's half, and what a split
/// needs is made again from the key.
#[derive(Clone)]
pub(crate) struct Entry<K, V> {
    pub(crate) key: K,
    pub(crate) value: V,
}

/// The entries of a page.
pub(crate) type Entries<K, V> = HashTable<Entry<K, V>>;

/// How many entries a page of this type may have.
pub(crate) fn page_capacity<K, V>() -> usize {
    (PAGE_BYTES / size_of::<Entry<K, V>>().max(1)).clamp(1, PAGE_ENTRIES)
}

/// The hash as a page's table uses it. In one page the top bits are all equal, and hashbrown takes its tag from the
/// top and its bucket from the bottom: both now come from the lower half.
#[inline]
pub(crate) fn probe(hash: u64) -> u64 {
    hash.rotate_right(8)
}

/// A page, owned by its table or shared with snapshots.
pub(crate) enum Page<K, V> {
    Owned(Entries<K, V>),
    Shared(Arc<Entries<K, V>>),
}

impl<K, V> Page<K, V> {
    pub(crate) fn new() -> Self {
        Self::Owned(HashTable::new())
    }

    #[inline]
    pub(crate) fn entries(&self) -> &Entries<K, V> {
        match self {
            Self::Owned(entries) => entries,
            Self::Shared(entries) => entries,
        }
    }

    /// Shares the page with a snapshot.
    pub(crate) fn share(&mut self) -> Arc<Entries<K, V>> {
        match mem::replace(self, Self::new()) {
            Self::Owned(entries) => {
                let shared = Arc::new(entries);
                *self = Self::Shared(shared.clone());
                shared
            }
            Self::Shared(shared) => {
                *self = Self::Shared(shared.clone());
                shared
            }
        }
    }
}

impl<K: Clone, V: Clone> Page<K, V> {
    /// The entries for writing: those of a shared page are taken back if no snapshot needs them any more, and
    /// copied otherwise; `copied` counts the copies.
    #[inline]
    pub(crate) fn entries_mut(&mut self, copied: &mut u64) -> &mut Entries<K, V> {
        if let Self::Shared(_) = self {
            self.thaw(copied);
        }
        match self {
            Self::Owned(entries) => entries,
            Self::Shared(_) => unreachable!("the page has just been thawed"),
        }
    }

    #[cold]
    fn thaw(&mut self, copied: &mut u64) {
        if let Self::Shared(shared) = mem::replace(self, Self::new()) {
            let entries = Arc::try_unwrap(shared).unwrap_or_else(|shared| {
                *copied += shared.len() as u64;
                Entries::clone(&shared)
            });
            *self = Self::Owned(entries);
        }
    }
}
