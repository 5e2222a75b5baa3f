//! The declarations of one state each: `value`, `list` and `map`, told apart by their table and their handle.
//!
//! Owns: the declarations.
//! Does not own: tables (see [`crate::hashmap`]), handles (see [`crate::state`]).
//! Runs on: declared on the author's side, opened on the slot's thread.

use std::marker::PhantomData;

use super::StateDeclaration;
use crate::backend::KeyedBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::hashmap::{ListTable, MapTable, ValueTable};
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, StateFileReader, check_stored};
use crate::state::{BoundKey, ListState, MapState, ValueState};

/// One kind of state: what an author calls, what a subtask opens, what user code gets, and how an entry is stored
/// beside its key: the key inside the state (`()` for none), and the value.
macro_rules! named_state {
    (
        $what:literal: $declare:ident -> $declaration:ident<$($item:ident $(+ $bound:ident)?),+>,
        $table:ident, $handle:ident, stored as $inner:ty => $value:ty
    ) => {
        #[doc = concat!("Declares ", $what, " per key.")]
        pub struct $declaration<$($item),+> {
            name: String,
            of: PhantomData<fn() -> ($($item,)+)>,
        }

        #[doc = concat!("Declares ", $what, " per key under `name`, which is unique within the operator.")]
        pub fn $declare<$($item: StateType $(+ $bound)?),+>(name: impl Into<String>) -> $declaration<$($item),+> {
            $declaration { name: name.into(), of: PhantomData }
        }

        impl<$($item),+> Clone for $declaration<$($item),+> {
            fn clone(&self) -> Self {
                Self { name: self.name.clone(), of: PhantomData }
            }
        }

        impl<Key: StateType + Eq, $($item: StateType $(+ $bound)?),+> StateDeclaration<Key> for $declaration<$($item),+> {
            type Tables = $table<Key, $($item),+>;
            type Handles<'a> = $handle<'a, $($item),+>;

            fn descriptors(&self) -> Vec<StateDescriptor> {
                vec![StateDescriptor::$declare::<Key, $($item),+>(&self.name)]
            }

            fn open(&self, backend: &KeyedBackend) -> Self::Tables {
                match backend {
                    KeyedBackend::Heap(heap) => $table::new(&self.name, heap),
                }
            }

            #[inline]
            fn bind<'a>(table: &'a mut Self::Tables, key: &'a Key, hash: u64) -> Self::Handles<'a> {
                $handle::new(table, BoundKey { key, hash })
            }

            #[inline]
            fn touch<'k>(table: &Self::Tables, keys: impl Iterator<Item = (&'k Key, u64)> + Clone) {
                table.touch(keys);
            }

            fn freeze(table: &mut Self::Tables, into: &mut Vec<Box<dyn FrozenTable>>) {
                into.push(table.freeze());
            }

            fn restore(
                &self,
                table: &mut Self::Tables,
                file: &StateFileReader<'_>,
                range: KeyGroupRange,
            ) -> Result<(), StateError> {
                table.restore(file, range)
            }

            fn check(&self, operator: &str, stored: &[StateDescriptor]) -> Result<(), StateError> {
                let declared = StateDescriptor::$declare::<Key, $($item),+>(&self.name);
                match stored.iter().find(|descriptor| descriptor.name == self.name) {
                    Some(stored) => check_stored::<Key, $inner, $value>(operator, stored, &declared),
                    None => Ok(()),
                }
            }

            fn copied_entries(table: &Self::Tables) -> u64 {
                table.copied_entries()
            }
        }
    };
}

named_state!("one value": value -> ValueDeclaration<V>, ValueTable, ValueState, stored as () => V);
named_state!("a list": list -> ListDeclaration<T>, ListTable, ListState, stored as u64 => T);
named_state!("a map": map -> MapDeclaration<M + Eq, V>, MapTable, MapState, stored as M => V);
