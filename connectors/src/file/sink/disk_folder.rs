//! An output folder on disk: the steps of the protocol as system calls, each made durable before it counts.
//!
//! Owns: files, links, fsync of files and folders. Does not own: the order of steps (see [`tidegate_engine::parts`]).
//! Runs on: the I/O side; every system call in blocking work.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;

use tidegate_engine::api::ConnectorError;
use tidegate_engine::io::{SharedIo, blocking};
use tidegate_engine::parts::{PartFolder, Published};

use super::FileSinkError;
use super::error::is_full;

/// See the module.
#[derive(Clone)]
pub struct DiskFolder {
    root: Arc<Path>,
    io: SharedIo,
}

impl std::fmt::Debug for DiskFolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DiskFolder").field("root", &self.root).finish_non_exhaustive()
    }
}

impl DiskFolder {
    /// The folder at `root`, which is made with its first file.
    pub(crate) fn new(root: &Path, io: SharedIo) -> Self {
        Self { root: Arc::from(root), io }
    }

    /// Runs system calls on one path away from slots and futures.
    async fn on<T: Send + 'static>(
        &self,
        doing: &'static str,
        path: &str,
        work: impl FnOnce(&Path, &Path) -> io::Result<T> + Send + 'static,
    ) -> Result<T, FileSinkError> {
        let (root, path) = (Arc::clone(&self.root), self.root.join(path));
        let place = path.clone();
        let result = blocking(&self.io, move || work(&root, &place)).await;
        let result =
            result.map_err(|source| FileSinkError::CutShort { doing, path: path.clone(), source })?;
        result.map_err(|source| FileSinkError::of(&self.root, doing, &path, source))
    }
}

/// Makes what is in this folder durable: names, not contents.
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// The folder that a path is in.
fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// Makes a folder and those above it, durably.
fn make_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let above = parent(folder);
    if above != folder {
        make_folder(above)?;
    }
    match fs::create_dir(folder) {
        Ok(()) => sync_folder(above),
        // Another subtask was quicker, and may not have made it durable yet.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && folder.is_dir() => sync_folder(above),
        Err(error) => Err(error),
    }
}

/// `None` for what is not there.
fn found<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn have_same_bytes(one: File, other: File) -> io::Result<bool> {
    let (one, other) = (BufReader::new(one), BufReader::new(other));
    let mut pairs = one.bytes().zip(other.bytes());
    pairs.try_fold(true, |same, (one, other)| Ok(same && one? == other?))
}

fn is_same(one: &Path, other: &Path) -> io::Result<Option<bool>> {
    let (Some(a), Some(b)) = (found(one.symlink_metadata())?, found(other.symlink_metadata())?) else {
        return Ok(None);
    };
    if (a.dev(), a.ino()) == (b.dev(), b.ino()) {
        return Ok(Some(true));
    }
    if !a.is_file() || !b.is_file() || a.len() != b.len() {
        return Ok(Some(false));
    }
    match (found(File::open(one))?, found(File::open(other))?) {
        (Some(one), Some(other)) => have_same_bytes(one, other).map(Some),
        _ => Ok(None),
    }
}

fn publish(pending: &Path, finished: &Path) -> io::Result<Published> {
    let folder = parent(finished);
    let linked = make_folder(folder).and_then(|()| fs::hard_link(pending, finished));
    match linked {
        Ok(()) => sync_folder(folder).map(|()| Published::Done),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(Published::Taken),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Published::Gone),
        Err(error) if is_full(&error) => Ok(Published::NoRoom { reason: error.to_string() }),
        Err(error) => Err(error),
    }
}

impl PartFolder for DiskFolder {
    type File = Arc<File>;

    async fn create(&self, path: &str) -> Result<Arc<File>, ConnectorError> {
        let made = self.on("making", path, |_, path| {
            make_folder(parent(path))?;
            File::create_new(path).map(Arc::new)
        });
        Ok(made.await?)
    }

    async fn append(&self, file: &mut Arc<File>, bytes: Vec<u8>) -> Result<(), ConnectorError> {
        let file = Arc::clone(file);
        Ok(self.on("writing a part in", "", move |_, _| (&*file).write_all(&bytes)).await?)
    }

    async fn sync(&self, file: Arc<File>) -> Result<(), ConnectorError> {
        Ok(self.on("making a part durable in", "", move |_, _| file.sync_all()).await?)
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), ConnectorError> {
        let to = to.to_owned();
        let renamed = self.on("closing the part", from, move |root, from| {
            fs::rename(from, root.join(to))?;
            sync_folder(parent(from))
        });
        Ok(renamed.await?)
    }

    async fn length(&self, path: &str) -> Result<Option<u64>, ConnectorError> {
        let looked = self.on("looking at", path, |_, path| found(path.symlink_metadata()));
        Ok(looked.await?.filter(fs::Metadata::is_file).map(|metadata| metadata.len()))
    }

    async fn is_same(&self, one: &str, other: &str) -> Result<Option<bool>, ConnectorError> {
        let other = other.to_owned();
        Ok(self.on("comparing", one, move |root, one| is_same(one, &root.join(other))).await?)
    }

    async fn publish(&self, pending: &str, finished: &str) -> Result<Published, ConnectorError> {
        let pending = pending.to_owned();
        let linked =
            self.on("publishing", finished, move |root, finished| publish(&root.join(pending), finished));
        Ok(linked.await?)
    }

    async fn settle(&self, finished: &str) -> Result<(), ConnectorError> {
        Ok(self.on("making durable", finished, |_, finished| sync_folder(parent(finished))).await?)
    }

    async fn remove(&self, path: &str) -> Result<(), ConnectorError> {
        self.on("removing", path, |_, path| found(fs::remove_file(path))).await?;
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, ConnectorError> {
        let listed = self.on("listing", folder, |_, folder| {
            let Some(entries) = found(folder.read_dir())? else { return Ok(Vec::new()) };
            // A name that is no text is none of ours.
            let text = |entry: io::Result<fs::DirEntry>| entry.map(|e| e.file_name().into_string().ok());
            entries.filter_map(|entry| text(entry).transpose()).collect()
        });
        Ok(listed.await?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};

    #[test]
    fn a_link_keeps_the_pending_name_and_never_replaces_what_is_there() {
        testing::run(async {
            let place = tempfile::tempdir().unwrap();
            let folder = DiskFolder::new(place.path(), Bench::new().io);
            fs::write(place.path().join("pending"), "new").unwrap();
            assert_eq!(folder.publish("pending", "b/finished").await.unwrap(), Published::Done);
            assert_eq!(folder.is_same("pending", "b/finished").await.unwrap(), Some(true));
            assert_eq!(folder.publish("pending", "b/finished").await.unwrap(), Published::Taken);
            fs::write(place.path().join("foreign"), "old").unwrap();
            assert_eq!(folder.publish("pending", "foreign").await.unwrap(), Published::Taken);
            assert_eq!(fs::read(place.path().join("foreign")).unwrap(), b"old");
            assert_eq!(folder.is_same("pending", "foreign").await.unwrap(), Some(false));
            folder.remove("pending").await.unwrap();
            folder.remove("pending").await.unwrap();
            assert_eq!(folder.publish("pending", "other").await.unwrap(), Published::Gone);
            assert_eq!(folder.is_same("pending", "foreign").await.unwrap(), None);
            assert_eq!(
                (folder.length("b/finished").await.unwrap(), folder.length("b").await.unwrap()),
                (Some(3), None)
            );
        });
    }
}
