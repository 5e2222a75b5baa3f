//! [`MapTable`]: a map per key, its entries flat in one table under (key's id, map key), never a nested map.
//!
//! A second flat table, the index, has the map keys of each key under (key's id, position), so that one key's
//! entries can be walked and cleared; a removal moves the last position into the gap. A snapshot needs no index: it walks the entries. A write to the map of a key
//! with a million entries therefore touches as little as one to any other.
//!
//! Owns: the tables of a map state, their freeze and restore.
//! Does not own: the handle bound to a key (see [`MapState`](crate::MapState)).
//! Runs on: the slot's thread; its frozen form anywhere.

use std::any::Any;
use std::sync::Arc;

use super::{ByKey, ByMapKey, ByPosition, FrozenPages, Head, Owners, Table, spread};
use crate::backend::HeapBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, RestoreDecoder, StateFileReader, StateFileWriter};
use crate::state::{MapAccess, key_of};

/// A map's value, with its position in the index.
#[derive(Clone)]
struct Indexed<V> {
    value: V,
    position: u64,
}

/// A map per key.
pub struct MapTable<K, M, V> {
    heads: Table<K, Head, ByKey>,
    entries: Table<(u64, M), Indexed<V>, ByMapKey>,
    index: Table<(u64, u64), M, ByPosition>,
    next_id: u64,
    descriptor: Arc<StateDescriptor>,
    backend: HeapBackend,
}

/// Where the entry of `map_key` lies.
#[inline]
fn place<M: StateType>(id: u64, map_key: &M) -> u64 {
    spread(id, map_key.key_hash())
}

impl<K: StateType + Eq, M: StateType + Eq, V: StateType> MapTable<K, M, V> {
    /// An empty table for the backend's key groups.
    pub fn new(name: &str, backend: &HeapBackend) -> Self {
        let (first, span) = backend.hash_interval();
        Self {
            heads: Table::new(first, span),
            entries: Table::unbounded(),
            index: Table::unbounded(),
            next_id: 0,
            descriptor: Arc::new(StateDescriptor::map::<K, M, V>(name)),
            backend: *backend,
        }
    }

    /// How many entries there are, over all keys.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no key has an entry.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries were copied because a snapshot held their page, since the table was made.
    pub fn copied_entries(&self) -> u64 {
        self.heads.copied_entries() + self.entries.copied_entries() + self.index.copied_entries()
    }

    /// Brings the heads of these keys near; see [`StateDeclaration::touch`](crate::StateDeclaration::touch).
    #[inline]
    pub(crate) fn touch<'k>(&self, keys: impl Iterator<Item = (&'k K, u64)>) {
        self.heads.touch(keys);
    }

    /// Shares the content with a snapshot.
    pub fn freeze(&mut self) -> Box<dyn FrozenTable> {
        Box::new(FrozenMaps {
            heads: self.heads.freeze(),
            entries: self.entries.freeze(),
            descriptor: self.descriptor.clone(),
        })
    }

    /// Takes over the entries of `file` whose key group lies in `range`.
    ///
    /// # Errors
    /// When the file holds the state as another type, or is broken.
    pub fn restore(&mut self, file: &StateFileReader<'_>, range: KeyGroupRange) -> Result<(), StateError> {
        let descriptor = self.descriptor.clone();
        let Some(decoder) = RestoreDecoder::<K, M, V>::new(file, &descriptor, self.backend)? else {
            return Ok(());
        };
        self.entries.make_room_for(decoder.entries(range));
        self.index.make_room_for(decoder.entries(range));
        decoder.each(range, |key, hash, map_key, value| {
            self.put(key, hash, map_key, value);
        })
    }

    fn put(&mut self, key: &K, hash: u64, map_key: M, value: V) -> Option<V> {
        let head = self.heads.get(hash, |own| own == key).copied();
        if let Some(Head { id, .. }) = head {
            let found = self.entries.get_mut(place(id, &map_key), |own| own.0 == id && own.1 == map_key);
            if let Some(found) = found {
                return Some(std::mem::replace(&mut found.value, value));
            }
        }
        let Head { id, length: position } = match head {
            Some(head) => head,
            None => self.new_head(key, hash),
        };
        let grown = self.heads.get_mut(hash, |own| own == key).expect("the key has a head now");
        grown.length += 1;
        self.index.insert_new(spread(id, position), (id, position), map_key.clone());
        let at = place(id, &map_key);
        self.entries.insert_new(at, (id, map_key), Indexed { value, position });
        None
    }

    fn new_head(&mut self, key: &K, hash: u64) -> Head {
        let head = Head { id: self.next_id, length: 0 };
        self.next_id += 1;
        self.heads.insert_new(hash, key.clone(), head);
        head
    }

    /// Closes the gap at `position` with the last position of the key, which goes away.
    fn close_gap(&mut self, id: u64, position: u64, last: u64) {
        let (_, moved) = self
            .index
            .remove(spread(id, last), |own| *own == (id, last))
            .expect("the index has every position below the length");
        if position == last {
            return;
        }
        let entry = self.entries.get_mut(place(id, &moved), |own| own.0 == id && own.1 == moved);
        entry.expect("each indexed map key has an entry").position = position;
        let slot = self.index.get_mut(spread(id, position), |own| *own == (id, position));
        *slot.expect("the index has every position below the length") = moved;
    }
}

impl<K: StateType + Eq, M: StateType + Eq, V: StateType> MapAccess<M, V> for MapTable<K, M, V> {
    fn head(&self, key: &dyn Any, hash: u64) -> Option<(u64, u64)> {
        let key = key_of::<K>(key);
        self.heads.get(hash, |own| own == key).map(|head| (head.id, head.length))
    }

    fn get(&self, key: &dyn Any, hash: u64, map_key: &M) -> Option<&V> {
        let (id, _) = self.head(key, hash)?;
        let found = self.entries.get(place(id, map_key), |own| own.0 == id && own.1 == *map_key);
        found.map(|entry| &entry.value)
    }

    fn get_mut(&mut self, key: &dyn Any, hash: u64, map_key: &M) -> Option<&mut V> {
        let (id, _) = self.head(key, hash)?;
        let found = self.entries.get_mut(place(id, map_key), |own| own.0 == id && own.1 == *map_key);
        found.map(|entry| &mut entry.value)
    }

    fn at(&self, id: u64, position: u64) -> (&M, &V) {
        let map_key = self.index.get(spread(id, position), |own| *own == (id, position));
        let map_key = map_key.expect("the index has every position below the length");
        let entry = self.entries.get(place(id, map_key), |own| own.0 == id && own.1 == *map_key);
        (map_key, &entry.expect("each indexed map key has an entry").value)
    }

    fn insert(&mut self, key: &dyn Any, hash: u64, map_key: M, value: V) -> Option<V> {
        self.put(key_of::<K>(key), hash, map_key, value)
    }

    fn remove(&mut self, key: &dyn Any, hash: u64, map_key: &M) -> Option<V> {
        let (id, length) = self.head(key, hash)?;
        let at = place(id, map_key);
        let (_, removed) = self.entries.remove(at, |own| own.0 == id && own.1 == *map_key)?;
        self.close_gap(id, removed.position, length - 1);
        let key = key_of::<K>(key);
        if length == 1 {
            self.heads.remove(hash, |own| own == key);
        } else {
            let head = self.heads.get_mut(hash, |own| own == key).expect("the head has just been read");
            head.length -= 1;
        }
        Some(removed.value)
    }

    fn clear(&mut self, key: &dyn Any, hash: u64) {
        let key = key_of::<K>(key);
        let Some((_, Head { id, length })) = self.heads.remove(hash, |own| own == key) else {
            return;
        };
        for position in 0..length {
            let removed = self.index.remove(spread(id, position), |own| *own == (id, position));
            let ((_, _), map_key) = removed.expect("the index has every position below the length");
            self.entries.remove(place(id, &map_key), |own| own.0 == id && own.1 == map_key);
        }
    }
}

struct FrozenMaps<K, M, V> {
    heads: FrozenPages<K, Head>,
    entries: FrozenPages<(u64, M), Indexed<V>>,
    descriptor: Arc<StateDescriptor>,
}

impl<K: StateType, M: StateType, V: StateType> FrozenTable for FrozenMaps<K, M, V> {
    fn descriptor(&self) -> &StateDescriptor {
        &self.descriptor
    }

    fn write(self: Box<Self>, file: &mut StateFileWriter) {
        let mut section = file.section(&self.descriptor);
        let owners = Owners::new(self.heads.iter().map(|(_, head)| head));
        let entries = self.entries.iter().map(|((id, map_key), entry)| (*id, None, (map_key, &entry.value)));
        let mut entries = owners.in_order(entries).into_iter();
        for (key, head) in self.heads.iter() {
            let hash = key.key_hash();
            // The counter first: taking an entry too many would lose it.
            for (_, (map_key, value)) in (0..head.length).zip(&mut entries) {
                section.entry(
                    hash,
                    |out| key.encode(out),
                    |out| map_key.encode(out),
                    |out| value.encode(out),
                );
            }
        }
        section.finish();
    }
}
