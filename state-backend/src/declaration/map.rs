//! `map`: declares a map per key.
//!
//! Owns: the declaration.
//! Does not own: its table (see [`MapTable`]).
//! Runs on: declared on the author's side, opened on the slot's thread.

use std::marker::PhantomData;

use super::{StateDeclaration, stored_as};
use crate::backend::KeyedBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::hashmap::MapTable;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, StateFileReader, check_stored};
use crate::state::{BoundKey, MapState};

/// Declares a map per key.
pub struct MapDeclaration<M, V> {
    name: String,
    of: PhantomData<fn() -> (M, V)>,
}

/// Declares a map per key under `name`, which is unique within the operator.
pub fn map<M: StateType + Eq, V: StateType>(name: impl Into<String>) -> MapDeclaration<M, V> {
    MapDeclaration { name: name.into(), of: PhantomData }
}

impl<M, V> Clone for MapDeclaration<M, V> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), of: PhantomData }
    }
}

impl<K: StateType + Eq, M: StateType + Eq, V: StateType> StateDeclaration<K> for MapDeclaration<M, V> {
    type Tables = MapTable<K, M, V>;
    type Handles<'a> = MapState<'a, M, V>;

    fn descriptors(&self) -> Vec<StateDescriptor> {
        vec![StateDescriptor::map::<K, M, V>(&self.name)]
    }

    fn open(&self, backend: &KeyedBackend) -> Self::Tables {
        match backend {
            KeyedBackend::Heap(heap) => MapTable::new(&self.name, heap),
        }
    }

    #[inline]
    fn bind<'a>(tables: &'a mut Self::Tables, key: &'a K, hash: u64) -> Self::Handles<'a> {
        MapState::new(tables, BoundKey { key, hash })
    }

    fn freeze(tables: &mut Self::Tables, into: &mut Vec<Box<dyn FrozenTable>>) {
        into.push(tables.freeze());
    }

    fn restore(
        &self,
        tables: &mut Self::Tables,
        file: &StateFileReader<'_>,
        range: KeyGroupRange,
    ) -> Result<(), StateError> {
        tables.restore(file, range)
    }

    fn check(&self, operator: &str, stored: &[StateDescriptor]) -> Result<(), StateError> {
        let declared = StateDescriptor::map::<K, M, V>(&self.name);
        match stored_as(stored, &self.name) {
            Some(stored) => check_stored::<K, M, V>(operator, stored, &declared),
            None => Ok(()),
        }
    }

    fn copied_entries(tables: &Self::Tables) -> u64 {
        tables.copied_entries()
    }
}
