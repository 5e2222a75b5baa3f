//! The two parts of an attempt.
//!
//! In one process they live and die together; in a cluster either can be gone while the other goes on. Nothing in the protocol
//! may rest on their common fate, so a simulation takes one away at a time.
//!
//! Owns: their names. Does not own: what they do. Runs on: plain data.

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Job master, commit log and cleaner.
    JobManager,
    /// Every subtask, with its uploads and connections.
    Worker,
}
