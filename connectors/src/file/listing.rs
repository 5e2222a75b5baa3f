//! Which files a directory has.
//!
//! Owns: which names count as partitions, and their order. Does not own: what was handed out already. Runs on: the I/O side.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use super::FileError;

/// A file of the directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FoundFile {
    /// Its name in the folder.
    pub name: String,
    /// Its length now.
    pub length_bytes: u64,
}

/// The partition files of `folder`, ordered by name.
pub(crate) fn list_files(folder: &Path) -> Result<Vec<FoundFile>, FileError> {
    let listing = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => FileError::FolderMissing { folder: folder.to_owned() },
        io::ErrorKind::PermissionDenied => FileError::NotReadable { path: folder.to_owned(), source },
        io::ErrorKind::NotADirectory => FileError::NotAFolder { folder: folder.to_owned() },
        _ => FileError::Io { doing: "the listing", file: folder.to_owned(), source },
    };
    let mut files = Vec::new();
    for entry in folder.read_dir().map_err(listing)? {
        let entry = entry.map_err(listing)?;
        if !is_partition(&entry.file_name()) {
            continue;
        }
        let file = entry.path();
        let Some(metadata) = metadata_of(&file)? else { continue };
        if metadata.is_file() {
            files.push(FoundFile { name: text_of(&file)?, length_bytes: metadata.len() });
        }
    }
    files.sort();
    Ok(files)
}

/// Not hidden, not marked as private or temporary.
fn is_partition(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    !name.starts_with(['.', '_']) && !name.ends_with(".tmp")
}

/// Follows links; `None` if the file went away since it was listed.
fn metadata_of(file: &Path) -> Result<Option<std::fs::Metadata>, FileError> {
    match file.metadata() {
        Ok(metadata) => Ok(Some(metadata)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::Io { doing: "looking at the size", file: file.to_owned(), source }),
    }
}

fn text_of(file: &Path) -> Result<String, FileError> {
    file.file_name()
        .and_then(OsStr::to_str)
        .map(str::to_owned)
        .ok_or_else(|| FileError::NameNotText { file: PathBuf::from(file) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_by_name_and_hidden_temporary_and_folders_do_not_count() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b.jsonl", "a.jsonl", ".hidden", "_SUCCESS", "c.jsonl.tmp"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        std::fs::create_dir(folder.path().join("d.jsonl")).unwrap();
        let names: Vec<String> = list_files(folder.path()).unwrap().into_iter().map(|f| f.name).collect();
        assert_eq!(names, ["a.jsonl", "b.jsonl"]);
    }
}
