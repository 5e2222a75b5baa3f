//! [`ValueTable`]: one value per key.
//!
//! Owns: the table of a value state, its freeze and restore.
//! Does not own: the handle bound to a key (see [`ValueState`](crate::ValueState)).
//! Runs on: the slot's thread; its frozen form anywhere.

use std::any::Any;
use std::sync::Arc;

use super::{ByKey, FrozenPages, Table};
use crate::backend::HeapBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, RestoreDecoder, StateFileReader, StateFileWriter};
use crate::state::{ValueAccess, key_of};

/// One value per key.
pub struct ValueTable<K, V> {
    table: Table<K, V, ByKey>,
    descriptor: Arc<StateDescriptor>,
    backend: HeapBackend,
}

impl<K: StateType + Eq, V: StateType> ValueTable<K, V> {
    /// An empty table for the backend's key groups.
    pub fn new(name: &str, backend: &HeapBackend) -> Self {
        let (first, span) = backend.hash_interval();
        let descriptor = Arc::new(StateDescriptor::value::<K, V>(name));
        Self { table: Table::new(first, span), descriptor, backend: *backend }
    }

    /// How many keys have a value.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    /// Whether no key has a value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many entries were copied because a snapshot held their page, since the table was made.
    pub fn copied_entries(&self) -> u64 {
        self.table.copied_entries()
    }

    /// Shares the content with a snapshot.
    pub fn freeze(&mut self) -> Box<dyn FrozenTable> {
        Box::new(FrozenValues { pages: self.table.freeze(), descriptor: self.descriptor.clone() })
    }

    /// Takes over the entries of `file` whose key group lies in `range`.
    ///
    /// # Errors
    /// When the file holds the state as another type, or is broken.
    pub fn restore(&mut self, file: &StateFileReader<'_>, range: KeyGroupRange) -> Result<(), StateError> {
        let descriptor = self.descriptor.clone();
        let Some(decoder) = RestoreDecoder::<K, (), V>::new(file, &descriptor, self.backend)? else {
            return Ok(());
        };
        self.table.make_room_for(decoder.entries(range));
        decoder.each(range, |key, hash, (), value| {
            self.put(key, hash, value);
        })
    }

    /// Brings the values of these keys near; see [`StateDeclaration::touch`](crate::StateDeclaration::touch).
    #[inline]
    pub(crate) fn touch<'k>(&self, keys: impl Iterator<Item = (&'k K, u64)>) {
        self.table.touch(keys);
    }

    fn put(&mut self, key: &K, hash: u64, value: V) -> Option<V> {
        match self.table.get_mut(hash, |own| own == key) {
            Some(place) => Some(std::mem::replace(place, value)),
            None => {
                self.table.insert_new(hash, key.clone(), value);
                None
            }
        }
    }
}

impl<K: StateType + Eq, V: StateType> ValueAccess<V> for ValueTable<K, V> {
    #[inline]
    fn get(&self, key: &dyn Any, hash: u64) -> Option<&V> {
        let key = key_of::<K>(key);
        self.table.get(hash, |own| own == key)
    }

    #[inline]
    fn get_or_insert(&mut self, key: &dyn Any, hash: u64, initial: fn() -> V) -> &mut V {
        let key = key_of::<K>(key);
        self.table.get_or_insert_with(hash, |own| own == key, || (key.clone(), initial()))
    }

    #[inline]
    fn set(&mut self, key: &dyn Any, hash: u64, value: V) -> Option<V> {
        self.put(key_of::<K>(key), hash, value)
    }

    #[inline]
    fn clear(&mut self, key: &dyn Any, hash: u64) -> Option<V> {
        let key = key_of::<K>(key);
        self.table.remove(hash, |own| own == key).map(|(_, value)| value)
    }
}

struct FrozenValues<K, V> {
    pages: FrozenPages<K, V>,
    descriptor: Arc<StateDescriptor>,
}

impl<K: StateType, V: StateType> FrozenTable for FrozenValues<K, V> {
    fn descriptor(&self) -> &StateDescriptor {
        &self.descriptor
    }

    fn write(self: Box<Self>, file: &mut StateFileWriter) {
        let mut section = file.section(&self.descriptor);
        for page in self.pages.into_pages() {
            for (key, value) in page.iter() {
                section.entry(key.key_hash(), |out| key.encode(out), |_| {}, |out| value.encode(out));
            }
        }
        section.finish();
    }
}
