//! [`Rows`]: keys and values of one page, each row at its number.
//!
//! Keys that are plain data lie beside their values: a lookup then mostly waits for one cache line, and the copy of a frozen page is one
//! piece of memory. Keys that own memory, such as strings, lie apart: a write to a value then copies no key, each of which would be a
//! piece of memory of its own.
//!
//! Owns: which of the two it is, and what is copied at a write after a freeze.
//! Does not own: which row is whose (see [`Page`](super::page::Page)).
//! Runs on: the slot's thread; frozen rows anywhere.

use std::mem;
use std::sync::Arc;

use super::column::Column;

/// Keys and values of one page.
#[derive(Debug)]
pub(crate) enum Rows<K, V> {
    Together(Column<Row<K, V>>),
    Apart(Column<K>, Column<V>),
}

/// A key beside its value.
#[derive(Clone, Debug)]
pub(crate) struct Row<K, V> {
    key: K,
    value: V,
}

impl<K, V> Rows<K, V> {
    pub(crate) fn with_capacity(rows: usize) -> Self {
        if mem::needs_drop::<K>() {
            Self::Apart(Column::with_capacity(rows), Column::with_capacity(rows))
        } else {
            Self::Together(Column::with_capacity(rows))
        }
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Together(rows) => rows.rows().len(),
            Self::Apart(keys, _) => keys.rows().len(),
        }
    }

    #[inline]
    pub(crate) fn key(&self, row: usize) -> Option<&K> {
        match self {
            Self::Together(rows) => rows.rows().get(row).map(|row| &row.key),
            Self::Apart(keys, _) => keys.rows().get(row),
        }
    }

    #[inline]
    pub(crate) fn value(&self, row: usize) -> Option<&V> {
        match self {
            Self::Together(rows) => rows.rows().get(row).map(|row| &row.value),
            Self::Apart(_, values) => values.rows().get(row),
        }
    }

    pub(crate) fn share(&mut self) -> FrozenRows<K, V> {
        match self {
            Self::Together(rows) => FrozenRows::Together(rows.share()),
            Self::Apart(keys, values) => FrozenRows::Apart(keys.share(), values.share()),
        }
    }
}

/// `copied` counts keys that own memory, and values: whatever is copied because a snapshot has it.
impl<K: Clone, V: Clone> Rows<K, V> {
    /// The value of a row that there is.
    #[inline]
    pub(crate) fn value_mut(&mut self, row: usize, copied: &mut u64) -> &mut V {
        match self {
            Self::Together(rows) => &mut rows.rows_mut(copied)[row].value,
            Self::Apart(_, values) => &mut values.rows_mut(copied)[row],
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, key: K, value: V, copied: &mut u64) {
        match self {
            Self::Together(rows) => rows.rows_mut(copied).push(Row { key, value }),
            Self::Apart(keys, values) => {
                keys.rows_mut(copied).push(key);
                values.rows_mut(copied).push(value);
            }
        }
    }

    /// Takes a row out; the last one gets its number.
    pub(crate) fn swap_remove(&mut self, row: usize, copied: &mut u64) -> (K, V) {
        match self {
            Self::Together(rows) => {
                let Row { key, value } = rows.rows_mut(copied).swap_remove(row);
                (key, value)
            }
            Self::Apart(keys, values) => {
                (keys.rows_mut(copied).swap_remove(row), values.rows_mut(copied).swap_remove(row))
            }
        }
    }

    /// Takes all rows out and gives each to `take`.
    pub(crate) fn drain(&mut self, copied: &mut u64, mut take: impl FnMut(K, V)) {
        match self {
            Self::Together(rows) => {
                rows.rows_mut(copied).drain(..).for_each(|Row { key, value }| take(key, value));
            }
            Self::Apart(keys, values) => {
                let values = values.rows_mut(copied).drain(..);
                keys.rows_mut(copied).drain(..).zip(values).for_each(|(key, value)| take(key, value));
            }
        }
    }
}

/// Rows as they were at a freeze.
#[derive(Debug)]
pub(crate) enum FrozenRows<K, V> {
    Together(Arc<Vec<Row<K, V>>>),
    Apart(Arc<Vec<K>>, Arc<Vec<V>>),
}

impl<K, V> FrozenRows<K, V> {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> + Clone {
        let (together, apart) = match self {
            Self::Together(rows) => (rows.as_slice(), None),
            Self::Apart(keys, values) => ([].as_slice(), Some((keys, values))),
        };
        let apart = apart.into_iter().flat_map(|(keys, values)| keys.iter().zip(values.iter()));
        together.iter().map(|row| (&row.key, &row.value)).chain(apart)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_to_a_value_after_a_freeze_leaves_keys_that_own_memory_shared() {
        let mut rows = Rows::<String, i64>::with_capacity(0);
        let mut copied = 0;
        (0..100).for_each(|number| rows.push(number.to_string(), 1, &mut copied));
        let frozen = rows.share();
        *rows.value_mut(7, &mut copied) = 2;
        assert_eq!(copied, 100, "the values are copied");
        let FrozenRows::Apart(keys, values) = &frozen else { panic!("strings own memory") };
        assert_eq!((Arc::strong_count(keys), Arc::strong_count(values)), (2, 1));
        assert!(frozen.iter().all(|(_, value)| *value == 1));
        rows.push("more".to_owned(), 1, &mut copied);
        assert_eq!((copied, Arc::strong_count(keys)), (200, 1), "a key that comes copies the keys");
        assert_eq!((rows.len(), frozen.iter().count()), (101, 100));
    }

    #[test]
    fn plain_keys_lie_beside_their_values_and_are_copied_once_with_them() {
        let mut rows = Rows::<u64, i64>::with_capacity(0);
        let mut copied = 0;
        (0..100).for_each(|number| rows.push(number, 1, &mut copied));
        let frozen = rows.share();
        *rows.value_mut(7, &mut copied) = 2;
        rows.push(100, 1, &mut copied);
        assert_eq!(rows.swap_remove(0, &mut copied), (0, 1));
        assert_eq!((copied, rows.key(0), rows.value(7)), (100, Some(&100), Some(&2)));
        assert!(frozen.iter().zip(0..).all(|((key, value), number)| (*key, *value) == (number, 1)));
    }
}
