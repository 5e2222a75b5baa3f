//! What waits to be written, reduced to one change per key: the last one wins.
//!
//! `+I` and `+U` leave a row to write, `-U` and `-D` a key to delete. A `-U` is half of an update: when its `+U` has the same key, that
//! row takes its place and nothing is deleted; when the key changed, the old row goes. As long as a `-U` is the last thing that came, it
//! is held back from writes that nobody waits for, so that a reader does not see a row vanish in the middle of its update. With a version
//! column a change that is older than what waits is dropped.
//!
//! Owns: the changes that wait, their number and size. Does not own: limits, nor when they are written (see [`super::upsert_writer`]).
//! Runs on: the I/O side; pure.

use std::collections::BTreeMap;

use mysql_async::Value;
use tidegate_engine::element::RowKind;

use super::upsert_key::{is_older, key_of};
use super::value::wire_bytes;
use super::{ColumnKind, TableSpec};

/// What a change costs beside its values and key: the nodes of map and vector, roughly.
const ENTRY_BYTES: usize = 96;

/// Where in a row its key and version stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RowLayout {
    pub(crate) kinds: Vec<ColumnKind>,
    /// Positions of the key columns, in the order of the key.
    pub(crate) key: Vec<usize>,
    /// Position of the version column.
    pub(crate) version: Option<usize>,
}

impl RowLayout {
    /// Of a table that was checked.
    pub(crate) fn of(spec: &TableSpec, version: Option<&str>) -> Self {
        let at = |name: &str| spec.columns.iter().position(|column| column.name == name);
        Self {
            kinds: spec.columns.iter().map(|column| column.kind).collect(),
            key: spec.key().iter().filter_map(|name| at(name)).collect(),
            version: version.and_then(at),
        }
    }

    fn key_of(&self, row: &[Value]) -> Vec<u8> {
        key_of(self.key.iter().map(|column| (&row[*column], self.kinds[*column])))
    }
}

/// Changes to write: rows and keys, each once, in the order of the keys.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Reduced {
    /// Rows to write.
    pub(crate) upserts: Vec<Vec<Value>>,
    /// Rows whose key is to be deleted.
    pub(crate) deletes: Vec<Vec<Value>>,
}

impl Reduced {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        self.upserts.is_empty() && self.deletes.is_empty()
    }
}

struct Waiting {
    row: Vec<Value>,
    is_delete: bool,
    bytes: usize,
}

/// The changes that wait.
pub(crate) struct UpsertBuffer {
    layout: RowLayout,
    waiting: BTreeMap<Vec<u8>, Waiting>,
    bytes: usize,
    /// The key of a `-U` that nothing has followed yet.
    half: Option<Vec<u8>>,
}

impl UpsertBuffer {
    pub(crate) fn new(layout: RowLayout) -> Self {
        Self { layout, waiting: BTreeMap::new(), bytes: 0, half: None }
    }

    /// Changes that wait.
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Memory that they take, roughly.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a change.
    pub(crate) fn put(&mut self, kind: RowKind, row: Vec<Value>) {
        let key = self.layout.key_of(&row);
        self.half = (kind == RowKind::UpdateBefore).then(|| key.clone());
        if let (Some(version), Some(there)) = (self.layout.version, self.waiting.get(&key))
            && is_older(&row[version], &there.row[version], self.layout.kinds[version])
        {
            return;
        }
        let bytes = ENTRY_BYTES + key.len() + row.iter().map(wire_bytes).sum::<usize>();
        self.bytes += bytes;
        let change = Waiting { row, is_delete: !kind.is_addition(), bytes };
        if let Some(replaced) = self.waiting.insert(key, change) {
            self.bytes -= replaced.bytes;
        }
    }

    /// Takes out what waits; where `all` is not asked for, a `-U` that nothing has followed stays, once.
    pub(crate) fn take(&mut self, all: bool) -> Reduced {
        let is_held = |key: &Vec<u8>| !all && self.waiting.get(key).is_some_and(|change| change.is_delete);
        let half = self.half.take().filter(is_held);
        let kept = half.and_then(|key| self.waiting.remove_entry(&key));
        let mut reduced = Reduced::default();
        for change in std::mem::take(&mut self.waiting).into_values() {
            let rows = if change.is_delete { &mut reduced.deletes } else { &mut reduced.upserts };
            rows.push(change.row);
        }
        self.bytes = kept.as_ref().map_or(0, |(_, kept)| kept.bytes);
        self.waiting.extend(kept);
        reduced
    }
}

#[cfg(test)]
mod tests;
