//! A record of a changelog: a row, and what happens to it.
//!
//! Owns: the pair. Does not own: what a sink makes of it. Runs on: plain data; on network edges and in state as a [`StateType`].

use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_state::StateType;

use super::RowKind;

/// A change of one row.
///
/// ```
/// use tidegate_engine::element::{Change, RowKind};
///
/// let gone = Change::delete(("apples", 3));
/// assert_eq!(gone.kind, RowKind::Delete);
/// assert_eq!(gone.map(|(name, _)| name).to_string(), "-D apples");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, StateType)]
pub struct Change<T> {
    /// What happens.
    pub kind: RowKind,
    /// The row: as it is now for `+I` and `+U`, as it was for `-U` and `-D`.
    pub row: T,
}

impl<T> Change<T> {
    /// `+I`.
    pub fn insert(row: T) -> Self {
        Self { kind: RowKind::Insert, row }
    }

    /// `-U`: what an update found.
    pub fn update_before(row: T) -> Self {
        Self { kind: RowKind::UpdateBefore, row }
    }

    /// `+U`: what an update left.
    pub fn update_after(row: T) -> Self {
        Self { kind: RowKind::UpdateAfter, row }
    }

    /// `-D`: what was deleted.
    pub fn delete(row: T) -> Self {
        Self { kind: RowKind::Delete, row }
    }

    /// The same change of another row.
    pub fn map<U>(self, of: impl FnOnce(T) -> U) -> Change<U> {
        Change { kind: self.kind, row: of(self.row) }
    }
}

impl<T: fmt::Display> fmt::Display for Change<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind, self.row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kinds_read_as_in_a_changelog() {
        let changes =
            [Change::insert(1), Change::update_before(1), Change::update_after(2), Change::delete(2)];
        let text: Vec<String> = changes.iter().map(ToString::to_string).collect();
        assert_eq!(text, ["+I 1", "-U 1", "+U 2", "-D 2"]);
        let there: Vec<bool> = changes.iter().map(|change| change.kind.is_addition()).collect();
        assert_eq!(there, [true, false, true, false]);
    }

    #[test]
    fn a_change_keeps_its_kind_on_its_way_through_state() {
        let change = Change::update_before((7_u64, "row".to_owned()));
        let mut bytes = Vec::new();
        change.encode(&mut bytes);
        let back = Change::<(u64, String)>::decode(&mut bytes.as_slice());
        assert_eq!(back.unwrap(), change);
    }
}
