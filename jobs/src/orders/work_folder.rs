//! The folder of a command that starts runs and watches them: fresh each time, and never somebody else's.
//!
//! Owns: the names in the folder, and the mark that says which command made it.
//! Does not own: what stands in the files.
//! Runs on: the main thread.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WorkFolderError {
    /// It holds something that no earlier call has made.
    #[error(
        "{folder} is not empty, and no earlier `orders {command}` has made it\n  help: give a new folder with --dir"
    )]
    Foreign {
        /// The folder.
        folder: PathBuf,
        /// Who asks for it.
        command: &'static str,
    },
    /// It cannot be prepared.
    #[error("cannot prepare {path}\n  help: check that the place is writable, or give another with --dir")]
    Prepare {
        /// What could not be made or removed.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// A folder that holds nothing but the mark.
#[derive(Debug, Clone)]
pub(crate) struct WorkFolder {
    path: PathBuf,
}

impl WorkFolder {
    /// Makes `path` for `orders <command>`, or empties it when an earlier call has made it.
    ///
    /// # Errors
    /// [`WorkFolderError`].
    pub(crate) fn fresh(path: &Path, command: &'static str) -> Result<Self, WorkFolderError> {
        let mark = path.join(format!(".tidegate-{command}"));
        match fs::read_dir(path) {
            Ok(_) if mark.exists() => fs::remove_dir_all(path).map_err(failed(path))?,
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(WorkFolderError::Foreign { folder: path.into(), command });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path)(error)),
        }
        fs::create_dir_all(path).map_err(failed(path))?;
        let text = format!("Everything here was made by `orders {command}`; the next one removes it.\n");
        fs::write(&mark, text).map_err(failed(&mark))?;
        Ok(Self { path: path.into() })
    }

    /// A folder of the same kind in it.
    ///
    /// # Errors
    /// [`WorkFolderError::Prepare`].
    pub(crate) fn part(&self, name: &str) -> Result<Self, WorkFolderError> {
        let path = self.path.join(name);
        fs::create_dir(&path).map_err(failed(&path))?;
        Ok(Self { path })
    }

    /// Where it is.
    #[cfg(all(feature = "mysql", feature = "rdkafka"))]
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The partition files.
    pub(crate) fn input(&self) -> PathBuf {
        self.path.join("input")
    }

    /// What is left of the input after the `cut`th cut.
    pub(crate) fn input_left(&self, cut: u32) -> PathBuf {
        self.path.join(format!("input-left-{cut}"))
    }

    /// The tables.
    pub(crate) fn database(&self) -> PathBuf {
        self.path.join("orders.sqlite")
    }

    /// The report.
    pub(crate) fn report(&self) -> PathBuf {
        self.path.join("report.html")
    }

    /// The checkpoints.
    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> WorkFolderError {
    let path = path.to_path_buf();
    move |source| WorkFolderError::Prepare { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_call_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("orders");
        let folder = WorkFolder::fresh(&path, "demo").unwrap();
        fs::create_dir(folder.input()).unwrap();
        fs::write(folder.database(), "old").unwrap();
        let folder = WorkFolder::fresh(&path, "demo").unwrap();
        assert!(!folder.input().exists() && !folder.database().exists());
    }

    #[test]
    fn what_no_call_of_this_command_has_made_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        WorkFolder::fresh(folder.path(), "demo").unwrap();
        fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
        let refused = WorkFolder::fresh(folder.path(), "torture");
        assert!(matches!(refused, Err(WorkFolderError::Foreign { .. })));
        assert!(folder.path().join("thesis.txt").exists());
    }
}
