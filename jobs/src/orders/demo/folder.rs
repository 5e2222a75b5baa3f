//! The folder of the demo: fresh each time, and never somebody else's.
//!
//! Owns: the names in the folder, and the mark that says that a demo made it.
//! Does not own: what stands in the files.
//! Runs on: the main thread.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::error::DemoError;

/// Stands in every folder that a demo has made; only such a folder is emptied.
const MARK: &str = ".tidegate-demo";

/// A folder that holds nothing but the mark.
#[derive(Debug)]
pub(crate) struct DemoFolder {
    path: PathBuf,
}

impl DemoFolder {
    /// Makes `path`, or empties it when an earlier demo has made it.
    ///
    /// # Errors
    /// [`DemoError::ForeignFolder`], [`DemoError::Folder`].
    pub(crate) fn fresh(path: &Path) -> Result<Self, DemoError> {
        let mark = path.join(MARK);
        match fs::read_dir(path) {
            Ok(_) if mark.exists() => fs::remove_dir_all(path).map_err(failed(path))?,
            Ok(mut entries) => {
                if entries.next().is_some() {
                    return Err(DemoError::ForeignFolder { folder: path.into() });
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(path)(error)),
        }
        fs::create_dir_all(path).map_err(failed(path))?;
        fs::write(&mark, "Everything here was made by `orders demo`; the next one removes it.\n")
            .map_err(failed(&mark))?;
        Ok(Self { path: path.into() })
    }

    /// The partition files.
    pub(crate) fn input(&self) -> PathBuf {
        self.path.join("input")
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

fn failed(path: &Path) -> impl FnOnce(io::Error) -> DemoError {
    let path = path.to_path_buf();
    move |source| DemoError::Folder { path, source }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_earlier_demo_left_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("orders");
        let folder = DemoFolder::fresh(&path).unwrap();
        fs::create_dir(folder.input()).unwrap();
        fs::write(folder.database(), "old").unwrap();
        let folder = DemoFolder::fresh(&path).unwrap();
        assert!(!folder.input().exists() && !folder.database().exists());
    }

    #[test]
    fn what_no_demo_has_made_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        DemoFolder::fresh(folder.path()).unwrap();
        fs::remove_file(folder.path().join(MARK)).unwrap();
        fs::write(folder.path().join("thesis.txt"), "mine").unwrap();
        assert!(matches!(DemoFolder::fresh(folder.path()), Err(DemoError::ForeignFolder { .. })));
        assert!(folder.path().join("thesis.txt").exists());
    }
}
