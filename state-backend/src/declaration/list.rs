//! `list`: declares a list per key.
//!
//! Owns: the declaration.
//! Does not own: its table (see [`ListTable`]).
//! Runs on: declared on the author's side, opened on the slot's thread.

use std::marker::PhantomData;

use super::{StateDeclaration, stored_as};
use crate::backend::KeyedBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::hashmap::ListTable;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, StateFileReader, check_stored};
use crate::state::{BoundKey, ListState};

/// Declares a list per key.
pub struct ListDeclaration<T> {
    name: String,
    of: PhantomData<fn() -> T>,
}

/// Declares a list per key under `name`, which is unique within the operator.
pub fn list<T: StateType>(name: impl Into<String>) -> ListDeclaration<T> {
    ListDeclaration { name: name.into(), of: PhantomData }
}

impl<T> Clone for ListDeclaration<T> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), of: PhantomData }
    }
}

impl<K: StateType + Eq, T: StateType> StateDeclaration<K> for ListDeclaration<T> {
    type Tables = ListTable<K, T>;
    type Handles<'a> = ListState<'a, T>;

    fn descriptors(&self) -> Vec<StateDescriptor> {
        vec![StateDescriptor::list::<K, T>(&self.name)]
    }

    fn open(&self, backend: &KeyedBackend) -> Self::Tables {
        match backend {
            KeyedBackend::Heap(heap) => ListTable::new(&self.name, heap),
        }
    }

    #[inline]
    fn bind<'a>(tables: &'a mut Self::Tables, key: &'a K, hash: u64) -> Self::Handles<'a> {
        ListState::new(tables, BoundKey { key, hash })
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
        let declared = StateDescriptor::list::<K, T>(&self.name);
        match stored_as(stored, &self.name) {
            Some(stored) => check_stored::<K, u64, T>(operator, stored, &declared),
            None => Ok(()),
        }
    }

    fn copied_entries(tables: &Self::Tables) -> u64 {
        tables.copied_entries()
    }
}
