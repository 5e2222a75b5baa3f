//! Declarations: the states of an operator, as its author names them where the operator is built.
//!
//! `value::<Totals>("totals")` declares one state, a tuple several, `()` none. From the declaration come the
//! tables of a subtask, the handles bound to each record's key, the freeze at a barrier and the restore.
//!
//! Owns: the trait that ties these together, and the declarations.
//! Does not own: tables and handles themselves.
//! Runs on: declared on the author's side, sent to slots; opened, bound and frozen on the slot's thread.

mod named;
mod tuples;

pub use self::named::{ListDeclaration, MapDeclaration, ValueDeclaration, list, map, value};

use crate::backend::KeyedBackend;
use crate::codec::StateType;
use crate::descriptor::StateDescriptor;
use crate::error::StateError;
use crate::key_group::KeyGroupRange;
use crate::snapshot::{FrozenTable, StateFileReader};

/// The states that a keyed operator declares.
///
/// An operator that takes a closure over handles bounds it as
/// `for<'a> FnMut(T, S::Handles<'a>, …)`; the closure's arguments then need no types:
///
/// ```
/// use tidegate_state::{StateDeclaration, StateError, StateType, ValueState, value};
///
/// fn process<S, F>(states: S, f: F)
/// where
///     S: StateDeclaration<u64>,
///     F: for<'a> FnMut(i64, S::Handles<'a>) -> Result<(), StateError>,
/// {
///     let _ = (states, f);
/// }
///
/// process(value::<i64>("sum"), |amount, mut sum| {
///     sum.update(|sum| *sum += amount)?;
///     Ok(())
/// });
/// ```
pub trait StateDeclaration<K: StateType + Eq>: Clone + Send + 'static {
    /// The tables of one subtask.
    type Tables: 'static;

    /// What user code gets for one record: the state of its key.
    type Handles<'a>;

    /// What is declared.
    fn descriptors(&self) -> Vec<StateDescriptor>;

    /// Empty tables for the key groups of `backend`.
    fn open(&self, backend: &KeyedBackend) -> Self::Tables;

    /// The handles of `key`, whose hash is `hash`.
    fn bind<'a>(tables: &'a mut Self::Tables, key: &'a K, hash: u64) -> Self::Handles<'a>;

    /// Brings the state of these keys and their hashes near, if they have any: an operator says which keys it handles
    /// next, so that it waits for memory for many of them at once. Changes nothing.
    #[inline]
    fn touch<'k>(tables: &Self::Tables, keys: impl Iterator<Item = (&'k K, u64)> + Clone) {
        let _ = (tables, keys);
    }

    /// Shares the tables' content with a snapshot. Costs one step a page, whatever the entries.
    fn freeze(tables: &mut Self::Tables, into: &mut Vec<Box<dyn FrozenTable>>);

    /// Takes over the entries of `file` whose key group lies in `range`. A state that the file does not have stays
    /// empty. Call it once for each file that covers a part of the subtask's groups.
    ///
    /// # Errors
    /// When a stored state does not fit its declaration, or the file is damaged.
    fn restore(
        &self,
        tables: &mut Self::Tables,
        file: &StateFileReader<'_>,
        range: KeyGroupRange,
    ) -> Result<(), StateError>;

    /// May these stored states of `operator` be restored into this declaration? States that only one side has are
    /// not refused here.
    ///
    /// # Errors
    /// The first stored state that does not fit.
    fn check(&self, operator: &str, stored: &[StateDescriptor]) -> Result<(), StateError>;

    /// How many entries were copied because a snapshot held their page, since the tables were opened.
    fn copied_entries(tables: &Self::Tables) -> u64;
}
