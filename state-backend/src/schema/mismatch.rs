//! [`SchemaMismatch`]: why bytes of one schema cannot be read as another type.
//!
//! Owns: the path to the place, what was, what is.
//! Does not own: which state and operator it concerns (see [`crate::error::StateError`]).
//! Runs on: anywhere.

use super::Schema;

/// The first place at which a written schema does not fit the type that is to read it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: was {was}, is {is}")]
pub struct SchemaMismatch {
    /// The path to the place, such as `lines[].amount_cents`; `(value)` when it is the value itself.
    pub field: String,
    /// What the writer had there.
    pub was: String,
    /// What the reader has there.
    pub is: String,
}

const ROOT: &str = "(value)";

impl SchemaMismatch {
    /// A mismatch of the whole value.
    pub fn between(was: &Schema, is: &Schema) -> Self {
        Self::texts(was.to_string(), is.to_string())
    }

    /// A mismatch of the whole value, in words.
    pub fn texts(was: impl Into<String>, is: impl Into<String>) -> Self {
        Self { field: ROOT.into(), was: was.into(), is: is.into() }
    }

    /// The same mismatch, seen from the value that holds it under `place` (a field name, `[]`, `{key}`, …).
    #[must_use]
    pub fn within(mut self, place: &str) -> Self {
        self.field = if self.field == ROOT {
            place.to_owned()
        } else if self.field.starts_with(['[', '{']) {
            format!("{place}{}", self.field)
        } else {
            format!("{place}.{}", self.field)
        };
        self
    }
}
