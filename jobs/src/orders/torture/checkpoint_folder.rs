//! Does a checkpoint folder hold exactly what its retained checkpoints refer to?
//!
//! The check of `tidegate checkpoint fsck`, and one thing more: after a job has ended no other checkpoint's entry stands.
//!
//! Owns: that one thing. Does not own: the check (`tidegate::engine::checkpoint::fsck`); it deletes nothing.
//! Runs on: the main thread, when no process runs on the folder.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use tidegate::engine::checkpoint::fsck::{CheckpointFolder, Finding, FsckError};
use tidegate::state::{CheckpointStorage, StorageError};

/// The folder cannot be checked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FolderError {
    /// The machine.
    #[error("cannot check the checkpoint folder: no thread for it can be had")]
    Runtime(#[source] io::Error),
    /// It cannot be opened.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// It cannot be read.
    #[error(transparent)]
    Fsck(#[from] FsckError),
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderVerdict {
    /// Retained checkpoints.
    pub(crate) checkpoints: u64,
    /// Files that were read for them.
    pub(crate) files: u64,
    /// What should not be there, or should, in words with its path.
    pub(crate) faults: Vec<String>,
}

impl FolderVerdict {
    /// True when nothing is missing and nothing is left over.
    pub(crate) fn ok(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Checks the folder.
///
/// # Errors
/// [`FolderError`].
pub(crate) fn check(folder: &Path) -> Result<FolderVerdict, FolderError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(FolderError::Runtime)?;
    let storage = CheckpointStorage::open(&folder.display().to_string())?;
    let (found, checked) = runtime.block_on(async {
        let found = CheckpointFolder::look(storage, Some(folder)).await?;
        let checked = found.check(false).await?;
        Ok::<_, FsckError>((found, checked))
    })?;
    let kept: BTreeSet<_> = found.listing.kept().into_iter().collect();
    let others = found.listing.checkpoints().filter(|checkpoint| !kept.contains(&checkpoint.number));
    let faults = checked.findings.iter().map(Finding::to_string).chain(
        others.map(|checkpoint| format!("entry {}: a checkpoint that is not retained", checkpoint.number)),
    );
    Ok(FolderVerdict { checkpoints: kept.len() as u64, files: checked.files, faults: faults.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_refers_to_is_found_also_where_a_listing_hides_it() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in [
            ("7-3/total-0.state", "state"),
            ("7-3/total-1.state#2", "half"),
            ("log/id", "id"),
            ("log/00000000000000000001", ""),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let verdict = check(folder.path()).unwrap();
        for path in ["7-3/total-0.state:", "7-3/total-1.state#2:", "log/00000000000000000001:", "log/id:"] {
            assert!(verdict.faults.iter().any(|fault| fault.starts_with(path)), "{path} in {verdict:?}");
        }
        assert!(!verdict.ok());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let missing = folder.path().join("checkpoints");
        let error = check(&missing).unwrap_err();
        let text = tidegate::engine::error::chain_text(&error);
        assert!(text.contains(&missing.display().to_string()), "{text}");
    }
}
