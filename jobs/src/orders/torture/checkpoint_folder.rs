//! Does a checkpoint folder hold exactly what its retained checkpoints refer to?
//!
//! This is the seam for the folder check of a torture run: [`check`] is called in one place, and only its result is used.
//!
//! Owns: the walk over the disk itself (the store's own listing hides half-written files), and the comparison.
//! Does not own: the entries (`tidegate::engine::checkpoint::commit_log`); it deletes nothing.
//! Runs on: the main thread, when no process runs on the folder.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tidegate::engine::checkpoint::commit_log::{Listing, entry_in};

/// The log's own file.
const IDENTITY: &str = "log/id";
/// Where entries are.
const LOG: &str = "log/";

/// The folder cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("cannot read {path}\n  help: check that the checkpoint folder is there and readable")]
pub(crate) struct FolderError {
    /// Folder or file.
    path: PathBuf,
    /// Why not.
    #[source]
    source: io::Error,
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct FolderVerdict {
    /// Retained checkpoints.
    pub(crate) checkpoints: u64,
    /// Files that they refer to.
    pub(crate) files: u64,
    /// What should not be there, or should.
    pub(crate) faults: Vec<FolderFault>,
}

/// One thing that is not as it must be; each with its path below the folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FolderFault {
    /// A retained checkpoint names it, and it is not there.
    Missing(String),
    /// Nothing refers to it.
    NotReferred(String),
    /// A checkpoint entry that the newest one does not retain.
    NotRetained(String),
    /// A file that a dead process had not given its name yet.
    HalfWritten(String),
    /// An entry that cannot be read.
    Torn(String),
}

impl FolderFault {
    /// For people.
    pub(crate) fn to_text(&self) -> String {
        match self {
            Self::Missing(path) => format!("missing        {path}"),
            Self::NotReferred(path) => format!("not referred   {path}"),
            Self::NotRetained(path) => format!("not retained   {path}"),
            Self::HalfWritten(path) => format!("half-written   {path}"),
            Self::Torn(path) => format!("torn           {path}"),
        }
    }
}

impl FolderVerdict {
    /// True when nothing is missing and nothing is left over.
    pub(crate) fn ok(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Walks the folder and compares.
///
/// # Errors
/// [`FolderError`].
pub(crate) fn check(folder: &Path) -> Result<FolderVerdict, FolderError> {
    let mut files = BTreeSet::new();
    walk(folder, "", &mut files)?;
    let (half_written, files): (BTreeSet<_>, BTreeSet<_>) =
        files.into_iter().partition(|path| is_half_written(path));
    let mut entries = BTreeMap::new();
    let faults = half_written.into_iter().map(FolderFault::HalfWritten).collect();
    let mut verdict = FolderVerdict { faults, ..Default::default() };
    for path in files.iter().filter(|path| path.starts_with(LOG) && *path != IDENTITY) {
        let bytes = fs::read(folder.join(path)).map_err(failed(&folder.join(path)))?;
        match entry_in(path, &bytes) {
            Some((number, entry)) => drop(entries.insert(number, (path.clone(), entry))),
            None => verdict.faults.push(FolderFault::Torn(path.clone())),
        }
    }
    let listing: Listing = entries.iter().map(|(number, (_, entry))| (*number, entry.clone())).collect();
    let newest = listing.checkpoints().last();
    let mut retained = newest.as_ref().map(|newest| listing.retained_with(newest.number)).unwrap_or_default();
    retained.extend(newest);

    let referred: BTreeSet<&str> =
        retained.iter().flat_map(|checkpoint| checkpoint.manifest.files()).collect();
    let is_retained = |number| retained.iter().any(|checkpoint| checkpoint.number == number);
    for (number, (path, entry)) in &entries {
        if entry.manifest().is_some() && !is_retained(*number) {
            verdict.faults.push(FolderFault::NotRetained(path.clone()));
        }
    }
    let missing = referred.iter().filter(|path| !files.contains(**path));
    verdict.faults.extend(missing.map(|path| FolderFault::Missing((*path).to_owned())));
    let others = files.iter().filter(|path| !path.starts_with(LOG) && !referred.contains(path.as_str()));
    verdict.faults.extend(others.map(|path| FolderFault::NotReferred(path.clone())));
    (verdict.checkpoints, verdict.files) = (retained.len() as u64, referred.len() as u64);
    verdict.faults.sort();
    Ok(verdict)
}

/// A name as the local store gives it to a file that it is still writing: `name#1`.
fn is_half_written(path: &str) -> bool {
    path.rsplit_once('#')
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Paths of everything that is no folder, below `folder` and with `/` between the parts.
fn walk(folder: &Path, prefix: &str, files: &mut BTreeSet<String>) -> Result<(), FolderError> {
    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let entry = entry.map_err(failed(folder))?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        match entry.file_type().map_err(failed(&entry.path()))?.is_dir() {
            true => walk(&entry.path(), &format!("{path}/"), files)?,
            false => drop(files.insert(path)),
        }
    }
    Ok(())
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> FolderError {
    let path = path.to_path_buf();
    move |source| FolderError { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_refers_to_is_found_also_where_a_listing_hides_it() {
        let folder = tempfile::tempdir().unwrap();
        for (path, bytes) in [
            ("7-3/total/0", "state"),
            ("7-3/total/1#2", "half"),
            ("log/id", "id"),
            ("log/00000000000000000001", ""),
        ] {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let verdict = check(folder.path()).unwrap();
        let torn = FolderFault::Torn("log/00000000000000000001".into());
        let half_written = FolderFault::HalfWritten("7-3/total/1#2".into());
        assert_eq!(verdict.faults, [FolderFault::NotReferred("7-3/total/0".into()), half_written, torn]);
        assert!(!verdict.ok());
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = check(Path::new("/nowhere/checkpoints")).unwrap_err();
        assert!(error.to_string().contains("/nowhere/checkpoints"));
    }
}
