//! What becomes of a row whose key is in its table already.
//!
//! Owns: the modes. Does not own: their SQL. Runs on: plain data.

/// What becomes of a row whose key is in the table already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeMode {
    /// Every row is a new one; a key that is there already is an error.
    Append,
    /// The row replaces the one with the same key; the last one wins.
    Overwrite {
        /// The key.
        by: Vec<String>,
    },
    /// The row's numbers are added to those with the same key. Deliberately not idempotent.
    Add {
        /// The key.
        by: Vec<String>,
    },
}

impl MergeMode {
    /// The key by which rows are merged; empty when appending.
    pub(crate) fn key(&self) -> &[String] {
        match self {
            Self::Append => &[],
            Self::Overwrite { by } | Self::Add { by } => by,
        }
    }
}
