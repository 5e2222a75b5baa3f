//! `value`: declares one value per key.
//!
//! Owns: the declaration.
//! Does not own: its table (see [`ValueTable`]).
//! Runs on: declared on the author's side, opened on the slot's thread.

use std::marker::PhantomData;

use super::{StateDeclaration, stored_as};
use crate::backend::KeyedBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::hashmap::ValueTable;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, StateFileReader, check_stored};
use crate::state::{BoundKey, ValueState};

/// Declares one value per key.
pub struct ValueDeclaration<V> {
    name: String,
    of: PhantomData<fn() -> V>,
}

/// Declares one value per key under `name`, which is unique within the operator.
pub fn value<V: StateType>(name: impl Into<String>) -> ValueDeclaration<V> {
    ValueDeclaration { name: name.into(), of: PhantomData }
}

impl<V> Clone for ValueDeclaration<V> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), of: PhantomData }
    }
}

impl<K: StateType + Eq, V: StateType> StateDeclaration<K> for ValueDeclaration<V> {
    type Tables = ValueTable<K, V>;
    type Handles<'a> = ValueState<'a, V>;

    fn descriptors(&self) -> Vec<StateDescriptor> {
        vec![StateDescriptor::value::<K, V>(&self.name)]
    }

    fn open(&self, backend: &KeyedBackend) -> Self::Tables {
        match backend {
            KeyedBackend::Heap(heap) => ValueTable::new(&self.name, heap),
        }
    }

    #[inline]
    fn bind<'a>(tables: &'a mut Self::Tables, key: &'a K, hash: u64) -> Self::Handles<'a> {
        ValueState::new(tables, BoundKey { key, hash })
    }

    #[inline]
    fn touch(tables: &Self::Tables, hashes: impl Iterator<Item = u64> + Clone) {
        tables.touch(hashes);
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
        let declared = StateDescriptor::value::<K, V>(&self.name);
        match stored_as(stored, &self.name) {
            Some(stored) => check_stored::<K, (), V>(operator, stored, &declared),
            None => Ok(()),
        }
    }

    fn copied_entries(tables: &Self::Tables) -> u64 {
        tables.copied_entries()
    }
}
