//! [`ListState`]: the list of the current key.
//!
//! Owns: the handle.
//! Does not own: the items (see [`ListTable`](crate::hashmap::ListTable)).
//! Runs on: the slot's thread.

use std::any::Any;

use super::BoundKey;
use crate::error::StateError;

/// What a table of lists does for a handle.
pub(crate) trait ListAccess<T> {
    /// The id and length of the key's list, if it has one.
    fn head(&self, key: &dyn Any, hash: u64) -> Option<(u64, u64)>;
    fn item(&self, id: u64, position: u64) -> &T;
    fn push(&mut self, key: &dyn Any, hash: u64, item: T);
    fn clear(&mut self, key: &dyn Any, hash: u64);
}

/// The list of the current key.
pub struct ListState<'a, T> {
    table: &'a mut dyn ListAccess<T>,
    bound: BoundKey<'a>,
}

impl<'a, T> ListState<'a, T> {
    #[inline]
    pub(crate) fn new(table: &'a mut dyn ListAccess<T>, bound: BoundKey<'a>) -> Self {
        Self { table, bound }
    }

    /// Appends an item.
    ///
    /// # Errors
    /// When the backend cannot write it.
    #[inline]
    pub fn push(&mut self, item: T) -> Result<(), StateError> {
        self.table.push(self.bound.key, self.bound.hash, item);
        Ok(())
    }

    /// Replaces the whole list.
    ///
    /// # Errors
    /// When the backend cannot write it.
    pub fn replace(&mut self, items: impl IntoIterator<Item = T>) -> Result<(), StateError> {
        self.clear()?;
        items.into_iter().try_for_each(|item| self.push(item))
    }

    /// The items, in the order in which they were appended.
    ///
    /// # Errors
    /// When the backend cannot read them.
    pub fn iter(&mut self) -> Result<impl Iterator<Item = &T>, StateError> {
        let (id, length) = self.table.head(self.bound.key, self.bound.hash).unwrap_or_default();
        let table = &*self.table;
        Ok((0..length).map(move |position| table.item(id, position)))
    }

    /// How many items there are.
    ///
    /// # Errors
    /// When the backend cannot read it.
    pub fn len(&mut self) -> Result<usize, StateError> {
        let head = self.table.head(self.bound.key, self.bound.hash);
        Ok(head.map_or(0, |(_, length)| length as usize))
    }

    /// Whether there is no item.
    ///
    /// # Errors
    /// When the backend cannot read it.
    pub fn is_empty(&mut self) -> Result<bool, StateError> {
        Ok(self.len()? == 0)
    }

    /// Removes all items.
    ///
    /// # Errors
    /// When the backend cannot write it.
    pub fn clear(&mut self) -> Result<(), StateError> {
        self.table.clear(self.bound.key, self.bound.hash);
        Ok(())
    }
}
