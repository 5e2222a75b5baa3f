//! Changelogs as a source, for tests, demos and trials of sinks that take changes.
//!
//! A script is a list of changes whose final table is known, so that what a sink has made of it can be compared.
//!
//! Owns: the list, its source, the table that it leaves. Does not own: its generator (see [`VersionedRow`]). Runs on: slot threads.

mod generator;

use std::collections::BTreeMap;
use std::sync::Arc;

pub use generator::VersionedRow;

use tidegate_engine::element::Change;

use crate::datagen::Datagen;

/// A list of changes, in order. Clones share it.
///
/// ```
/// use tidegate_connectors::changes::ChangeScript;
/// use tidegate_engine::element::Change;
///
/// let script = ChangeScript::of(vec![Change::insert(("apples", 3)), Change::delete(("apples", 3)), Change::insert(("apples", 5))]);
/// assert_eq!(script.final_table(|(name, _)| *name).into_values().collect::<Vec<_>>(), [("apples", 5)]);
/// let source = script.source(); // at parallelism 1: changes of one key have an order
/// ```
#[derive(Debug)]
pub struct ChangeScript<R> {
    changes: Arc<[Change<R>]>,
}

impl<R> Clone for ChangeScript<R> {
    fn clone(&self) -> Self {
        Self { changes: Arc::clone(&self.changes) }
    }
}

impl<R: Clone + Send + Sync + 'static> ChangeScript<R> {
    /// These changes.
    pub fn of(changes: Vec<Change<R>>) -> Self {
        Self { changes: changes.into() }
    }

    /// The changes.
    pub fn changes(&self) -> &[Change<R>] {
        &self.changes
    }

    /// A source that emits them once, in order, and the same ones again after a restore. It has to run at parallelism 1, since it deals
    /// its records out: `env.source("changes", script.source()).parallelism(1)`; a `key_by` behind it keeps the order of each key.
    pub fn source(&self) -> Datagen<Change<R>, impl Fn(u64) -> Change<R> + Clone + Send + 'static + use<R>> {
        let changes = Arc::clone(&self.changes);
        let count = changes.len() as u64;
        let at = move |index: u64| {
            let index = usize::try_from(index).unwrap_or(usize::MAX);
            changes.get(index).expect("the source is bounded by the list").clone()
        };
        Datagen::new(at).bounded(count)
    }

    /// What is there after the last change, by key.
    pub fn final_table<K: Ord>(&self, key_of: impl Fn(&R) -> K) -> BTreeMap<K, R> {
        let mut table = BTreeMap::new();
        for change in self.changes.iter() {
            if change.kind.is_addition() {
                table.insert(key_of(&change.row), change.row.clone());
            } else {
                table.remove(&key_of(&change.row));
            }
        }
        table
    }
}
