//! [`ValueState`]: the value of the current key.
//!
//! Owns: the handle.
//! Does not own: the values (see [`ValueTable`](crate::hashmap::ValueTable)).
//! Runs on: the slot's thread.

use std::any::Any;

use super::BoundKey;
use crate::error::StateError;

/// What a table of values does for a handle.
pub(crate) trait ValueAccess<V> {
    fn get(&self, key: &dyn Any, hash: u64) -> Option<&V>;
    fn get_or_insert(&mut self, key: &dyn Any, hash: u64, initial: fn() -> V) -> &mut V;
    fn set(&mut self, key: &dyn Any, hash: u64, value: V) -> Option<V>;
    fn clear(&mut self, key: &dyn Any, hash: u64) -> Option<V>;
}

/// The value of the current key.
pub struct ValueState<'a, V> {
    table: &'a mut dyn ValueAccess<V>,
    bound: BoundKey<'a>,
}

impl<'a, V> ValueState<'a, V> {
    #[inline]
    pub(crate) fn new(table: &'a mut dyn ValueAccess<V>, bound: BoundKey<'a>) -> Self {
        Self { table, bound }
    }

    /// The value, if there is one.
    ///
    /// # Errors
    /// When the backend cannot read it.
    #[inline]
    pub fn get(&mut self) -> Result<Option<&V>, StateError> {
        Ok(self.table.get(self.bound.key, self.bound.hash))
    }

    /// Replaces the value, and returns the one before.
    ///
    /// # Errors
    /// When the backend cannot write it.
    #[inline]
    pub fn set(&mut self, value: V) -> Result<Option<V>, StateError> {
        Ok(self.table.set(self.bound.key, self.bound.hash, value))
    }

    /// Changes the value in place, beginning with the default if there is none, and shows the result.
    ///
    /// # Errors
    /// When the backend cannot read or write it.
    #[inline]
    pub fn update(&mut self, change: impl FnOnce(&mut V)) -> Result<&V, StateError>
    where
        V: Default,
    {
        let value = self.table.get_or_insert(self.bound.key, self.bound.hash, V::default);
        change(value);
        Ok(value)
    }

    /// Removes the value, and returns it.
    ///
    /// # Errors
    /// When the backend cannot write it.
    #[inline]
    pub fn clear(&mut self) -> Result<Option<V>, StateError> {
        Ok(self.table.clear(self.bound.key, self.bound.hash))
    }
}
