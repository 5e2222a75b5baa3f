//! The folder of a simulated file sink: every call is late before and after, may fail without saying whether it was done, and may be
//! carried out after its process has died, as blocking work of a dead attempt is.
//!
//! Owns: the way between the protocol and the file system model. Does not own: either. Runs on: the simulation's thread.

use super::coverage::Area;
use super::file_system::{FileId, FileSystem};
use super::line::Line;
use crate::api::ConnectorError;
use crate::parts::{PartFolder, Published};

/// See the module.
#[derive(Clone, Debug)]
pub struct SimFolder {
    files: FileSystem,
    line: Line,
}

/// A step on its way. If its caller goes away meanwhile it may be done all the same; the step says whether it had an effect.
struct OnTheWay<'a, F: FnOnce(&FileSystem) -> bool + Send + 'static> {
    folder: &'a SimFolder,
    step: Option<F>,
}

impl<F: FnOnce(&FileSystem) -> bool + Send + 'static> Drop for OnTheWay<'_, F> {
    fn drop(&mut self) {
        if let Some(step) = self.step.take() {
            let files = self.folder.files.clone();
            self.folder.line.outlive(move || step(&files));
        }
    }
}

impl SimFolder {
    /// A folder that is a whole file system.
    pub fn new(files: FileSystem, line: Line) -> Self {
        Self { files, line }
    }

    /// A step that changes something and says whether it could.
    async fn change(
        &self,
        step: impl FnOnce(&FileSystem) -> bool + Send + 'static,
    ) -> Result<bool, ConnectorError> {
        let mut way = OnTheWay { folder: self, step: Some(step) };
        self.line.way_or_drop().await?;
        let done = way.step.take().is_some_and(|step| step(&self.files));
        self.line.way_or_drop().await?;
        Ok(done)
    }

    /// A look.
    async fn look<T>(&self, look: impl FnOnce(&FileSystem) -> T) -> Result<T, ConnectorError> {
        self.line.way_or_drop().await?;
        let seen = look(&self.files);
        self.line.way().await;
        Ok(seen)
    }
}

impl PartFolder for SimFolder {
    type File = FileId;

    /// Made, or not: a name that came later than the last sweep would be left over, on a real disk too.
    async fn create(&self, path: &str) -> Result<FileId, ConnectorError> {
        self.line.way_or_drop().await?;
        let file = self.files.create(path);
        self.line.way().await;
        file.ok_or_else(|| ConnectorError::fatal(format!("{path} is there already")))
    }

    async fn append(&self, file: &mut FileId, bytes: Vec<u8>) -> Result<(), ConnectorError> {
        if self.line.is_out_of_room() {
            let half = bytes.len() / 2;
            self.files.append(*file, &bytes[..half]);
            self.line.coverage().count(Area::Injected, "disk full");
            return Err(ConnectorError::transient("no space left on device"));
        }
        let file = *file;
        self.change(move |files| {
            files.append(file, &bytes);
            true
        })
        .await?;
        Ok(())
    }

    async fn sync(&self, _file: FileId) -> Result<(), ConnectorError> {
        self.look(|_| ()).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), ConnectorError> {
        let (old, new) = (from.to_owned(), to.to_owned());
        match self.change(move |files| files.rename(&old, &new)).await? {
            true => Ok(()),
            false => Err(ConnectorError::transient(format!("{from} is gone"))),
        }
    }

    async fn length(&self, path: &str) -> Result<Option<u64>, ConnectorError> {
        self.look(|files| files.length(path)).await
    }

    async fn is_same(&self, one: &str, other: &str) -> Result<Option<bool>, ConnectorError> {
        self.look(|files| files.is_same(one, other)).await
    }

    async fn publish(&self, pending: &str, finished: &str) -> Result<Published, ConnectorError> {
        if self.line.is_busy() {
            return Ok(Published::NoRoom { reason: "no space left on device".to_owned() });
        }
        let (from, to) = (pending.to_owned(), finished.to_owned());
        let (tx, mut rx) = tokio::sync::oneshot::channel();
        self.change(move |files| {
            let published = files.link(&from, &to);
            let done = published == Published::Done;
            let _ = tx.send(published);
            done
        })
        .await?;
        Ok(rx.try_recv().unwrap_or(Published::Gone))
    }

    async fn settle(&self, _finished: &str) -> Result<(), ConnectorError> {
        self.look(|_| ()).await
    }

    async fn remove(&self, path: &str) -> Result<(), ConnectorError> {
        let path = path.to_owned();
        self.change(move |files| files.remove(&path)).await?;
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, ConnectorError> {
        self.look(|files| files.list(folder)).await
    }
}
