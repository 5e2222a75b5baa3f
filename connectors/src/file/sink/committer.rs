//! Publishes pending parts of a folder on disk.
//!
//! Owns: the type. Does not own: the steps (see [`PartCommitter`]). Runs on: the I/O side.

use tidegate_engine::api::{Committer, ConnectorError, Prepared};
use tidegate_engine::operator::{CommitOutcome, TransactionName};
use tidegate_engine::parts::{PartCommitter, PartFolder, WrittenParts};

use super::DiskFolder;

/// Committer of a [`super::FileSink`].
#[derive(Debug)]
pub struct FileSinkCommitter<F = DiskFolder> {
    parts: PartCommitter<F>,
}

impl<F> FileSinkCommitter<F> {
    pub(crate) fn new(parts: PartCommitter<F>) -> Self {
        Self { parts }
    }
}

impl<F: PartFolder> Committer for FileSinkCommitter<F> {
    type Committable = WrittenParts;

    async fn commit(&mut self, item: &Prepared<WrittenParts>) -> Result<CommitOutcome, ConnectorError> {
        self.parts.commit(item).await
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        self.parts.list().await
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        self.parts.roll_back(name).await
    }
}
