//! What lies in a checkpoint folder, whatever it is.
//!
//! Owns: the walk over a local disk and the listing of other stores. Does not own: what a file means. Runs on: the I/O side; the walk
//! is blocking work.

use std::fs;
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use futures::TryStreamExt;
use tidegate_state::{CheckpointStorage, StorageError};

use super::FsckError;

/// A file or object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundFile {
    /// Its path below the folder.
    pub path: String,
    /// Its size.
    pub size_bytes: u64,
    /// When it was last written, in milliseconds since 1970; 0 if the system does not say.
    pub modified_ms: i64,
}

/// Everything below a local folder that is a regular file, sorted. Sockets, links and what vanishes meanwhile are passed over.
pub(super) fn walk(root: &Path) -> Result<Vec<FoundFile>, FsckError> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |source| FsckError::Walk { path: folder.clone(), source };
        let listed = match fs::read_dir(&folder) {
            Err(gone) if gone.kind() == io::ErrorKind::NotFound && folder != root => continue,
            other => other.map_err(failed)?,
        };
        for entry in listed {
            let entry = entry.map_err(failed)?;
            // Not followed: a link leads out of the folder.
            let metadata = match entry.metadata() {
                Err(gone) if gone.kind() == io::ErrorKind::NotFound => continue,
                other => other.map_err(failed)?,
            };
            let path = entry.path();
            if metadata.is_dir() {
                folders.push(path);
            } else if metadata.is_file() {
                let below = path.strip_prefix(root).unwrap_or(&path);
                let since = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                found.push(FoundFile {
                    path: below.to_string_lossy().into_owned(),
                    size_bytes: metadata.len(),
                    modified_ms: since.and_then(|d| i64::try_from(d.as_millis()).ok()).unwrap_or(0),
                });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Every object of a store, sorted.
pub(super) async fn list(storage: &CheckpointStorage) -> Result<Vec<FoundFile>, FsckError> {
    let listed: Result<Vec<_>, _> = storage.object_store().list(None).try_collect().await;
    let listed = listed.map_err(|source| StorageError::Operation {
        operation: "list",
        path: String::new(),
        url: storage.url().to_owned(),
        source: Box::new(source),
    })?;
    let found = listed.into_iter().map(|object| FoundFile {
        path: object.location.to_string(),
        size_bytes: object.size,
        modified_ms: object.last_modified.timestamp_millis(),
    });
    let mut found: Vec<_> = found.collect();
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}
