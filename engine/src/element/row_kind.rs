//! What a record of a changelog does to its row.
//!
//! Owns: the four kinds and their short names, which are those of Flink's `RowKind`. Does not own: the row (see [`super::Change`]).
//! Runs on: plain data.

use std::fmt;

use serde::{Deserialize, Serialize};
use tidegate_state::StateType;

/// What a change does to its row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, StateType)]
pub enum RowKind {
    /// `+I`: the row is new.
    Insert,
    /// `-U`: what the row was before an update; the update's `+U` follows.
    UpdateBefore,
    /// `+U`: what the row is after an update. A stream of upserts has no `-U` in front of it.
    UpdateAfter,
    /// `-D`: the row is gone; the change carries what it was.
    Delete,
}

impl RowKind {
    /// `+I`, `-U`, `+U` or `-D`.
    pub fn short(self) -> &'static str {
        match self {
            Self::Insert => "+I",
            Self::UpdateBefore => "-U",
            Self::UpdateAfter => "+U",
            Self::Delete => "-D",
        }
    }

    /// Whether the row is there after the change (`+I`, `+U`).
    pub fn is_addition(self) -> bool {
        matches!(self, Self::Insert | Self::UpdateAfter)
    }
}

impl fmt::Display for RowKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short())
    }
}
