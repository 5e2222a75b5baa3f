//! A completed checkpoint: its entry exists.
//!
//! Owns: the pair of entry number and manifest. Does not own: how it came to be complete (see [`super::commit_log`]).
//! Runs on: plain data, shared.

use std::sync::Arc;

use crate::checkpoint::manifest::Manifest;
use crate::ids::{CheckpointId, EntryNumber};

/// A checkpoint whose entry stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompletedCheckpoint {
    /// Where its entry stands.
    pub number: EntryNumber,
    /// What it consists of.
    pub manifest: Arc<Manifest>,
}

impl CompletedCheckpoint {
    /// Its id.
    pub fn id(&self) -> CheckpointId {
        self.manifest.checkpoint
    }

    /// The folder of its own files.
    pub fn folder(&self) -> String {
        Manifest::folder(self.manifest.checkpoint, self.manifest.attempt)
    }
}
