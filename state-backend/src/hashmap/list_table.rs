//! [`ListTable`]: a list per key, its items flat in one table under (key's id, position).
//!
//! Owns: the tables of a list state, their freeze and restore.
//! Does not own: the handle bound to a key (see [`ListState`](crate::ListState)).
//! Runs on: the slot's thread; its frozen form anywhere.

use std::any::Any;
use std::sync::Arc;

use super::{ByKey, ByPosition, FrozenPages, Head, Owners, Table, spread};
use crate::backend::HeapBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, RestoreDecoder, StateFileReader, StateFileWriter};
use crate::state::{ListAccess, key_of};

/// A list per key.
pub struct ListTable<K, T> {
    heads: Table<K, Head, ByKey>,
    items: Table<(u64, u64), T, ByPosition>,
    next_id: u64,
    descriptor: Arc<StateDescriptor>,
    backend: HeapBackend,
}

impl<K: StateType + Eq, T: StateType> ListTable<K, T> {
    /// An empty table for the backend's key groups.
    pub fn new(name: &str, backend: &HeapBackend) -> Self {
        let (first, span) = backend.hash_interval();
        Self {
            heads: Table::new(first, span),
            items: Table::unbounded(),
            next_id: 0,
            descriptor: Arc::new(StateDescriptor::list::<K, T>(name)),
            backend: *backend,
        }
    }

    /// How many items there are, over all keys.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether no key has an item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries were copied because a snapshot held their page, since the table was made.
    pub fn copied_entries(&self) -> u64 {
        self.heads.copied_entries() + self.items.copied_entries()
    }

    /// Brings the heads of these keys near; see [`StateDeclaration::touch`](crate::StateDeclaration::touch).
    #[inline]
    pub(crate) fn touch<'k>(&self, keys: impl Iterator<Item = (&'k K, u64)>) {
        self.heads.touch(keys);
    }

    /// Shares the content with a snapshot.
    pub fn freeze(&mut self) -> Box<dyn FrozenTable> {
        let (heads, items) = (self.heads.freeze(), self.items.freeze());
        Box::new(FrozenLists { heads, items, descriptor: self.descriptor.clone() })
    }

    /// Takes over the entries of `file` whose key group lies in `range`.
    ///
    /// # Errors
    /// When the file holds the state as another type, or is broken.
    pub fn restore(&mut self, file: &StateFileReader<'_>, range: KeyGroupRange) -> Result<(), StateError> {
        let descriptor = self.descriptor.clone();
        let Some(decoder) = RestoreDecoder::<K, u64, T>::new(file, &descriptor, self.backend)? else {
            return Ok(());
        };
        self.items.make_room_for(decoder.entries(range));
        decoder.each(range, |key, hash, _position, item| self.append(key, hash, item))
    }

    fn append(&mut self, key: &K, hash: u64, item: T) {
        let next_id = &mut self.next_id;
        let head = self.heads.get_or_insert_with(
            hash,
            |own| own == key,
            || {
                let head = Head { id: *next_id, length: 0 };
                *next_id += 1;
                (key.clone(), head)
            },
        );
        let place = (head.id, head.length);
        head.length += 1;
        self.items.insert_new(spread(place.0, place.1), place, item);
    }
}

impl<K: StateType + Eq, T: StateType> ListAccess<T> for ListTable<K, T> {
    fn head(&self, key: &dyn Any, hash: u64) -> Option<(u64, u64)> {
        let key = key_of::<K>(key);
        self.heads.get(hash, |own| own == key).map(|head| (head.id, head.length))
    }

    fn item(&self, id: u64, position: u64) -> &T {
        self.items
            .get(spread(id, position), |own| *own == (id, position))
            .expect("a list has an item at each position below its length")
    }

    fn push(&mut self, key: &dyn Any, hash: u64, item: T) {
        self.append(key_of::<K>(key), hash, item);
    }

    fn clear(&mut self, key: &dyn Any, hash: u64) {
        let key = key_of::<K>(key);
        if let Some((_, head)) = self.heads.remove(hash, |own| own == key) {
            for position in 0..head.length {
                self.items.remove(spread(head.id, position), |own| *own == (head.id, position));
            }
        }
    }
}

struct FrozenLists<K, T> {
    heads: FrozenPages<K, Head>,
    items: FrozenPages<(u64, u64), T>,
    descriptor: Arc<StateDescriptor>,
}

impl<K: StateType, T: StateType> FrozenTable for FrozenLists<K, T> {
    fn descriptor(&self) -> &StateDescriptor {
        &self.descriptor
    }

    fn write(self: Box<Self>, file: &mut StateFileWriter) {
        let mut section = file.section(&self.descriptor);
        let owners = Owners::new(self.heads.iter().map(|(_, head)| head));
        let items = self.items.iter().map(|(&(id, position), item)| (id, Some(position), item));
        let mut items = owners.in_order(items).into_iter();
        for (key, head) in self.heads.iter() {
            let hash = key.key_hash();
            for (position, item) in (0..head.length).zip(&mut items) {
                section.entry(
                    hash,
                    |out| key.encode(out),
                    |out| position.encode(out),
                    |out| item.encode(out),
                );
            }
        }
        section.finish();
    }
}
