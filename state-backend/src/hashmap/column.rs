//! [`Column`]: the keys or the values of one page, either owned or shared with a snapshot.
//!
//! Owns: taking a shared column back by the cheapest means, and counting what was copied.
//! Does not own: which row is whose (see [`Page`](super::page::Page)).
//! Runs on: the slot's thread; shared columns are read anywhere.

use std::mem;
use std::sync::Arc;

/// One value a row.
#[derive(Debug)]
pub(crate) enum Column<T> {
    Owned(Vec<T>),
    Shared(Arc<Vec<T>>),
}

impl<T> Column<T> {
    pub(crate) fn with_capacity(rows: usize) -> Self {
        Self::Owned(Vec::with_capacity(rows))
    }

    #[inline]
    pub(crate) fn rows(&self) -> &Vec<T> {
        match self {
            Self::Owned(rows) => rows,
            Self::Shared(rows) => rows,
        }
    }

    /// Shares the column with a snapshot; touches no row.
    pub(crate) fn share(&mut self) -> Arc<Vec<T>> {
        let shared = match mem::replace(self, Self::Owned(Vec::new())) {
            Self::Owned(rows) => Arc::new(rows),
            Self::Shared(shared) => shared,
        };
        *self = Self::Shared(shared.clone());
        shared
    }
}

impl<T: Clone> Column<T> {
    /// The rows for writing: a shared column is taken back if no snapshot needs it any more, and copied otherwise;
    /// `copied` counts the copied rows.
    #[inline]
    pub(crate) fn rows_mut(&mut self, copied: &mut u64) -> &mut Vec<T> {
        if let Self::Shared(_) = self {
            self.thaw(copied);
        }
        match self {
            Self::Owned(rows) => rows,
            Self::Shared(_) => unreachable!("the column has just been thawed"),
        }
    }

    #[cold]
    fn thaw(&mut self, copied: &mut u64) {
        if let Self::Shared(shared) = mem::replace(self, Self::Owned(Vec::new())) {
            let rows = Arc::try_unwrap(shared).unwrap_or_else(|shared| {
                *copied += shared.len() as u64;
                Vec::clone(&shared)
            });
            *self = Self::Owned(rows);
        }
    }
}
