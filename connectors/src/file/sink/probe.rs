//! Tries a folder out before anything runs: whether this user may write there, and whether links refuse to overwrite.
//!
//! Owns: the trial, and removing what it made. Does not own: the output folder, which is made when the sink opens. Runs on: the
//! author's thread; blocking.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use super::FileSinkError;

/// Tells the trials of one process apart.
static TRIALS: AtomicU64 = AtomicU64::new(0);

/// Refuses an output folder into which nothing could be published. One that is not there yet is tried out in the nearest folder
/// above it that is.
pub(crate) fn probe(folder: &Path) -> Result<(), FileSinkError> {
    let place = nearest(folder)?;
    let trial = TRIALS.fetch_add(1, Ordering::Relaxed);
    let file = |what: &str| place.join(format!(".tidegate-trial-{}-{trial}-{what}", std::process::id()));
    let (one, other) = (file("file"), file("link"));
    let result = try_out(folder, &one, &other);
    for path in [&one, &other] {
        // What could not be made cannot be removed.
        let _ = fs::remove_file(path);
    }
    result
}

fn try_out(folder: &Path, one: &Path, other: &Path) -> Result<(), FileSinkError> {
    File::create_new(one).map_err(|e| refused(folder, one, e))?;
    let no_links = |source| FileSinkError::NoHardLinks { folder: folder.to_owned(), source };
    fs::hard_link(one, other).map_err(|e| no_links(Some(e)))?;
    match fs::hard_link(one, other) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(no_links(Some(error))),
        Ok(()) => Err(no_links(None)),
    }
}

/// Whatever the system says: nothing can be written there.
fn refused(folder: &Path, path: &Path, error: io::Error) -> FileSinkError {
    match FileSinkError::of(folder, "making", path, error) {
        FileSinkError::Io { doing, path, source } => {
            FileSinkError::NotWritable { folder: folder.to_owned(), doing, path, source }
        }
        other => other,
    }
}

/// The folder itself, or the nearest one above it that is there.
fn nearest(folder: &Path) -> Result<PathBuf, FileSinkError> {
    let absolute =
        std::path::absolute(folder).map_err(|e| FileSinkError::of(folder, "finding", folder, e))?;
    for path in absolute.ancestors() {
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => return Ok(path.to_owned()),
            Ok(_) => {
                return Err(FileSinkError::NotAFolder { folder: folder.to_owned(), path: path.to_owned() });
            }
            // Below a file, the one above says what is wrong.
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
            Err(e) => return Err(FileSinkError::of(folder, "looking at", path, e)),
        }
    }
    Ok(PathBuf::from("/"))
}
