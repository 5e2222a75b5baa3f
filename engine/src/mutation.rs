//! Switches that soften one law each, so that the simulation can show that it would notice.
//!
//! Owns: which law is soft now, per thread. Does not own: the laws; each switch is asked in the file that owns its law.
//! Runs on: the simulation's thread. Without the cargo feature `mutations`, [`on`] is a constant `false`.

/// A law that a test may soften.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mutation {
    /// A subtask acknowledges before its state is uploaded.
    AckBeforeUpload,
    /// Completion is told when every subtask has acknowledged, before the log entry exists.
    CommitBeforeCompletion,
    /// A channel whose barrier has come does not wait for the others.
    AlignmentSkipped,
    /// An aborted checkpoint rolls its transactions back.
    RollbackOnAbort,
    /// A sink's state lists only the transaction of its own checkpoint.
    ListsOnlyOwnCheckpoint,
}

impl Mutation {
    /// Every one of them.
    pub const ALL: [Self; 5] = [
        Self::AckBeforeUpload,
        Self::CommitBeforeCompletion,
        Self::AlignmentSkipped,
        Self::RollbackOnAbort,
        Self::ListsOnlyOwnCheckpoint,
    ];
}

#[cfg(feature = "mutations")]
mod switch {
    use std::cell::Cell;

    use super::Mutation;

    thread_local! {
        static SOFT: Cell<Option<Mutation>> = const { Cell::new(None) };
    }

    /// Softens one law on this thread, or none.
    pub fn set(mutation: Option<Mutation>) {
        SOFT.set(mutation);
    }

    /// Whether this law is soft on this thread.
    pub fn on(mutation: Mutation) -> bool {
        SOFT.get() == Some(mutation)
    }
}

#[cfg(feature = "mutations")]
pub use switch::{on, set};

/// Whether this law is soft: never, in a build without the feature `mutations`.
#[cfg(not(feature = "mutations"))]
#[inline(always)]
pub const fn on(_mutation: Mutation) -> bool {
    false
}
