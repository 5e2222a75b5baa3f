//! [`MapState`]: the map of the current key.
//!
//! Owns: the handle.
//! Does not own: the entries (see [`MapTable`](crate::hashmap::MapTable)).
//! Runs on: the slot's thread.

use std::any::Any;

use super::BoundKey;
use crate::error::StateError;

/// What a table of maps does for a handle.
pub(crate) trait MapAccess<M, V> {
    /// The id and length of the key's map, if it has one.
    fn head(&self, key: &dyn Any, hash: u64) -> Option<(u64, u64)>;
    fn get(&self, key: &dyn Any, hash: u64, map_key: &M) -> Option<&V>;
    fn get_mut(&mut self, key: &dyn Any, hash: u64, map_key: &M) -> Option<&mut V>;
    fn at(&self, id: u64, position: u64) -> (&M, &V);
    fn insert(&mut self, key: &dyn Any, hash: u64, map_key: M, value: V) -> Option<V>;
    fn remove(&mut self, key: &dyn Any, hash: u64, map_key: &M) -> Option<V>;
    fn clear(&mut self, key: &dyn Any, hash: u64);
}

/// The map of the current key, however large.
pub struct MapState<'a, M, V> {
    table: &'a mut dyn MapAccess<M, V>,
    bound: BoundKey<'a>,
}

impl<'a, M, V> MapState<'a, M, V> {
    #[inline]
    pub(crate) fn new(table: &'a mut dyn MapAccess<M, V>, bound: BoundKey<'a>) -> Self {
        Self { table, bound }
    }

    /// The value under `map_key`.
    ///
    /// # Errors
    /// When the backend cannot read it.
    #[inline]
    pub fn get(&mut self, map_key: &M) -> Result<Option<&V>, StateError> {
        Ok(self.table.get(self.bound.key, self.bound.hash, map_key))
    }

    /// Whether there is a value under `map_key`.
    ///
    /// # Errors
    /// When the backend cannot read it.
    #[inline]
    pub fn contains(&mut self, map_key: &M) -> Result<bool, StateError> {
        Ok(self.get(map_key)?.is_some())
    }

    /// Puts a value under `map_key`, and returns the one before.
    ///
    /// # Errors
    /// When the backend cannot write it.
    #[inline]
    pub fn insert(&mut self, map_key: M, value: V) -> Result<Option<V>, StateError> {
        Ok(self.table.insert(self.bound.key, self.bound.hash, map_key, value))
    }

    /// Changes the value under `map_key` in place, beginning with the default if there is none, and shows the
    /// result.
    ///
    /// # Errors
    /// When the backend cannot read or write it.
    pub fn update(&mut self, map_key: M, change: impl FnOnce(&mut V)) -> Result<&V, StateError>
    where
        M: Clone,
        V: Default,
    {
        let BoundKey { key, hash } = self.bound;
        if self.table.get(key, hash, &map_key).is_none() {
            self.table.insert(key, hash, map_key.clone(), V::default());
        }
        let value = self.table.get_mut(key, hash, &map_key).expect("the entry is there now");
        change(value);
        Ok(value)
    }

    /// Removes the value under `map_key`, and returns it.
    ///
    /// # Errors
    /// When the backend cannot write it.
    #[inline]
    pub fn remove(&mut self, map_key: &M) -> Result<Option<V>, StateError> {
        Ok(self.table.remove(self.bound.key, self.bound.hash, map_key))
    }

    /// The entries: in the order of insertion, except that a removal moves the last one into the gap.
    ///
    /// # Errors
    /// When the backend cannot read them.
    pub fn iter(&mut self) -> Result<impl Iterator<Item = (&M, &V)>, StateError> {
        let (id, length) = self.table.head(self.bound.key, self.bound.hash).unwrap_or_default();
        let table = &*self.table;
        Ok((0..length).map(move |position| table.at(id, position)))
    }

    /// How many entries there are.
    ///
    /// # Errors
    /// When the backend cannot read it.
    pub fn len(&mut self) -> Result<usize, StateError> {
        let head = self.table.head(self.bound.key, self.bound.hash);
        Ok(head.map_or(0, |(_, length)| length as usize))
    }

    /// Whether there is no entry.
    ///
    /// # Errors
    /// When the backend cannot read it.
    pub fn is_empty(&mut self) -> Result<bool, StateError> {
        Ok(self.len()? == 0)
    }

    /// Removes all entries.
    ///
    /// # Errors
    /// When the backend cannot write it.
    pub fn clear(&mut self) -> Result<(), StateError> {
        self.table.clear(self.bound.key, self.bound.hash);
        Ok(())
    }
}
