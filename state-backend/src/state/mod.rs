//! The handles that user code gets: state bound to the key of the record in hand.
//!
//! A handle is a table, a key and its hash; every access is one probe of the table. Handles do not name the key's
//! type, so that a function can take a `ValueState<'_, Totals>` whatever the stream is keyed by. The calls behind
//! them are dynamic in the type only: table and key type are known where a handle is bound, in the same loop.
//!
//! Owns: the handles and the seams to the tables.
//! Does not own: the tables (see [`crate::hashmap`]).
//! Runs on: the slot's thread.

mod list;
mod map;
mod value;

use std::any::Any;

pub use self::list::ListState;
pub use self::map::MapState;
pub use self::value::ValueState;

pub(crate) use self::list::ListAccess;
pub(crate) use self::map::MapAccess;
pub(crate) use self::value::ValueAccess;

/// The key behind a handle.
#[inline]
pub(crate) fn key_of<K: 'static>(key: &dyn Any) -> &K {
    key.downcast_ref().expect("a handle is bound to a key of its table's type")
}

/// The key of the record in hand.
#[derive(Clone, Copy)]
pub(crate) struct BoundKey<'a> {
    pub(crate) key: &'a dyn Any,
    pub(crate) hash: u64,
}
