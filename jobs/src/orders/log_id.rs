//! The random id of a checkpoint folder's log: a part of the names of all transactions of its job.
//!
//! Owns: asking for it. Does not own: the folder. Runs on: the main thread.

use std::path::Path;

use tidegate::engine::checkpoint::fsck::CheckpointFolder;
use tidegate::state::CheckpointStorage;

/// The id; none where there is no log yet, or it cannot be read.
pub(crate) fn log_id(folder: &Path) -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let storage = CheckpointStorage::open(&folder.display().to_string()).ok()?;
    let found = runtime.block_on(CheckpointFolder::look(storage, Some(folder))).ok()?;
    found.owner.map(|(_, log_id)| log_id.to_string())
}
