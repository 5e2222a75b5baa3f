//! A folder of output files that appear whole or not at all, and never on top of something else.
//!
//! Owns: the refusal of a folder in use, the temporary names, and the renames at the end.
//! Does not own: what stands in the files.
//! Runs on: the main thread of a command line.
//!
//! A file is written as `.<name>.tmp` and gets its name when all files of the folder are written and synced. A reader
//! that takes only `*.jsonl` never sees half a file.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// What can go wrong with an output folder.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    /// The folder holds files already and nobody said that they may go.
    #[error(
        "the folder {folder} is not empty ({example} is there)\n  help: give a new folder, or --force to replace the \
         part files of an earlier call"
    )]
    NotEmpty {
        /// The folder.
        folder: PathBuf,
        /// One of the names found.
        example: String,
    },
    /// The folder holds something that no earlier call has written; not even `--force` removes that.
    #[error(
        "the folder {folder} holds {foreign}, which this command did not write\n  help: give a new folder"
    )]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// The name found.
        foreign: String,
    },
    /// The system refused.
    #[error("cannot {action} {path}\n  help: check that the place exists, is writable and has room")]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// The part files of one folder, open for writing. Dropped before [`Self::publish`], nothing appears.
#[derive(Debug)]
pub struct OutputFolder {
    folder: PathBuf,
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    name: String,
    writer: BufWriter<File>,
}

impl OutputFolder {
    /// Opens `parts` files named `part-0.jsonl`, `part-1.jsonl` and so on in `folder`, which is made when missing.
    ///
    /// # Errors
    /// [`OutputError::NotEmpty`] without `force`; [`OutputError::Foreign`] also with it; [`OutputError::Io`].
    pub fn create(folder: &Path, parts: u32, force: bool) -> Result<Self, OutputError> {
        fs::create_dir_all(folder).map_err(io_error("create the folder", folder))?;
        let old = names_in(folder)?;
        if let Some(foreign) = old.iter().find(|name| !is_part_name(name)) {
            return Err(if force {
                OutputError::Foreign { folder: folder.into(), foreign: foreign.clone() }
            } else {
                OutputError::NotEmpty { folder: folder.into(), example: foreign.clone() }
            });
        }
        if let Some(example) = old.iter().find(|name| !force && !name.starts_with('.')) {
            return Err(OutputError::NotEmpty { folder: folder.into(), example: example.clone() });
        }
        for name in old {
            let path = folder.join(name);
            fs::remove_file(&path).map_err(io_error("remove the old file", &path))?;
        }
        let parts = (0..parts).map(|index| Part::create(folder, index)).collect::<Result<_, _>>()?;
        Ok(Self { folder: folder.into(), parts })
    }

    /// Writes `bytes` to the end of part `index`, counted from 0.
    ///
    /// # Errors
    /// [`OutputError::Io`].
    pub fn append(&mut self, index: usize, bytes: &[u8]) -> Result<(), OutputError> {
        let part = &mut self.parts[index];
        part.writer.write_all(bytes).map_err(|source| OutputError::Io {
            action: "write to",
            path: temporary(&self.folder, &part.name),
            source,
        })
    }

    /// Syncs all parts, then gives them their names, then syncs the folder.
    ///
    /// # Errors
    /// [`OutputError::Io`]; the temporary files of what has no name yet stay for the next call to remove.
    pub fn publish(self) -> Result<(), OutputError> {
        let Self { folder, mut parts } = self;
        for part in &mut parts {
            let path = temporary(&folder, &part.name);
            part.writer.flush().map_err(io_error("write to", &path))?;
            part.writer.get_ref().sync_all().map_err(io_error("sync", &path))?;
        }
        for part in parts {
            let path = folder.join(&part.name);
            fs::rename(temporary(&folder, &part.name), &path).map_err(io_error("name the file", &path))?;
        }
        File::open(&folder).and_then(|opened| opened.sync_all()).map_err(io_error("sync the folder", &folder))
    }
}

impl Part {
    fn create(folder: &Path, index: u32) -> Result<Self, OutputError> {
        let name = format!("part-{index}.jsonl");
        let path = temporary(folder, &name);
        let file = File::create(&path).map_err(io_error("create the file", &path))?;
        Ok(Self { name, writer: BufWriter::with_capacity(1 << 16, file) })
    }
}

/// Writes one file whole: temporary name, sync, rename. A file of that name is replaced.
///
/// # Errors
/// [`OutputError::Io`].
pub fn write_file(path: &Path, content: &[u8]) -> Result<(), OutputError> {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let temporary = temporary(folder, &name);
    let mut file = File::create(&temporary).map_err(io_error("create the file", &temporary))?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(io_error("write to", &temporary))?;
    fs::rename(&temporary, path).map_err(io_error("name the file", path))
}

fn temporary(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!(".{name}.tmp"))
}

/// True for `part-<digits>.jsonl` and its temporary form.
fn is_part_name(name: &str) -> bool {
    let name = name.strip_prefix('.').and_then(|rest| rest.strip_suffix(".tmp")).unwrap_or(name);
    name.strip_prefix("part-")
        .and_then(|rest| rest.strip_suffix(".jsonl"))
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

fn names_in(folder: &Path) -> Result<Vec<String>, OutputError> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(io_error("list the folder", folder))? {
        let entry = entry.map_err(io_error("list the folder", folder))?;
        names.push(entry.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> OutputError {
    let path = path.to_path_buf();
    move |source| OutputError::Io { action, path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_appear_only_when_published() {
        let folder = tempfile::tempdir().unwrap();
        let mut output = OutputFolder::create(folder.path(), 2, false).unwrap();
        output.append(1, b"one\n").unwrap();
        assert!(names_in(folder.path()).unwrap().iter().all(|name| name.starts_with('.')));
        output.publish().unwrap();
        assert_eq!(names_in(folder.path()).unwrap(), ["part-0.jsonl", "part-1.jsonl"]);
        assert_eq!(fs::read(folder.path().join("part-1.jsonl")).unwrap(), b"one\n");
    }

    #[test]
    fn a_folder_in_use_is_refused_unless_forced() {
        let folder = tempfile::tempdir().unwrap();
        OutputFolder::create(folder.path(), 3, false).unwrap().publish().unwrap();
        let refused = OutputFolder::create(folder.path(), 1, false).unwrap_err();
        assert!(matches!(refused, OutputError::NotEmpty { ref example, .. } if example == "part-0.jsonl"));
        OutputFolder::create(folder.path(), 1, true).unwrap().publish().unwrap();
        assert_eq!(names_in(folder.path()).unwrap(), ["part-0.jsonl"], "no part of the earlier call stays");
    }

    #[test]
    fn what_others_wrote_is_never_removed() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
        let refused = OutputFolder::create(folder.path(), 1, true).unwrap_err();
        assert!(matches!(refused, OutputError::Foreign { ref foreign, .. } if foreign == "thesis.txt"));
        assert!(folder.path().join("thesis.txt").exists());
    }

    #[test]
    fn the_rest_of_a_call_that_died_is_no_obstacle() {
        let folder = tempfile::tempdir().unwrap();
        drop(OutputFolder::create(folder.path(), 2, false).unwrap());
        OutputFolder::create(folder.path(), 1, false).unwrap().publish().unwrap();
        assert_eq!(names_in(folder.path()).unwrap(), ["part-0.jsonl"]);
    }
}
