//! No state, and tuples of up to four declarations: tables and handles are tuples too.
//!
//! Owns: the composition.
//! Does not own: the single declarations.
//! Runs on: as they do.

use super::StateDeclaration;
use crate::backend::KeyedBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, StateFileReader};

macro_rules! declaration {
    ($($part:ident $index:tt),*) => {
        #[allow(unused_variables, clippy::unused_unit)]
        impl<K: StateType + Eq, $($part: StateDeclaration<K>),*> StateDeclaration<K> for ($($part,)*) {
            type Tables = ($($part::Tables,)*);
            type Handles<'a> = ($($part::Handles<'a>,)*);

            fn descriptors(&self) -> Vec<StateDescriptor> {
                let parts: [Vec<StateDescriptor>; _] = [$(self.$index.descriptors()),*];
                parts.into_iter().flatten().collect()
            }

            fn open(&self, backend: &KeyedBackend) -> Self::Tables {
                ($(self.$index.open(backend),)*)
            }

            #[inline]
            fn bind<'a>(tables: &'a mut Self::Tables, key: &'a K, hash: u64) -> Self::Handles<'a> {
                ($($part::bind(&mut tables.$index, key, hash),)*)
            }

            #[inline]
            fn touch<'k>(tables: &Self::Tables, keys: impl Iterator<Item = (&'k K, u64)> + Clone) {
                $($part::touch(&tables.$index, keys.clone());)*
            }

            fn freeze(tables: &mut Self::Tables, into: &mut Vec<Box<dyn FrozenTable>>) {
                $($part::freeze(&mut tables.$index, into);)*
            }

            fn restore(
                &self,
                tables: &mut Self::Tables,
                file: &StateFileReader<'_>,
                range: KeyGroupRange,
            ) -> Result<(), StateError> {
                $(self.$index.restore(&mut tables.$index, file, range)?;)*
                Ok(())
            }

            fn check(&self, operator: &str, stored: &[StateDescriptor]) -> Result<(), StateError> {
                $(self.$index.check(operator, stored)?;)*
                Ok(())
            }

            fn copied_entries(tables: &Self::Tables) -> u64 {
                let copied: [u64; _] = [$($part::copied_entries(&tables.$index)),*];
                copied.iter().sum()
            }
        }
    };
}

declaration!();
declaration!(A 0);
declaration!(A 0, B 1);
declaration!(A 0, B 1, C 2);
declaration!(A 0, B 1, C 2, D 3);
