//! The file sink of a simulation: the protocol of [`crate::parts`] over a file system model.
//!
//! Owns: settings of a seed, lines and buckets of rows. Does not own: a single step of the protocol. Runs on: the simulation's thread.

use std::future::Future;
use std::time::Duration;

use super::coverage::Area;
use super::database::Row;
use super::file_folder::SimFolder;
use super::file_system::{FileSystem, line_of};
use super::line::Line;
use super::rng::Rng;
use super::sink::count_outcome;
use crate::api::{Committer, ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter};
use crate::element::Batch;
use crate::operator::{CommitOutcome, TransactionName};
use crate::parts::{PartCommitter, PartLimits, PartWriter, WrittenParts};

/// How the parts of a seed are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileSinkSettings {
    limits: PartLimits,
    /// 0: no buckets.
    buckets: u64,
}

impl FileSinkSettings {
    /// Draws them.
    pub fn draw(rng: &mut Rng) -> Self {
        let limits = PartLimits {
            part_bytes_max: if rng.one_in(3) { rng.between(200, 3_000) } else { u64::MAX },
            part_age_max: Duration::from_millis(if rng.one_in(3) { rng.between(4, 20) } else { 60_000 }),
            open_parts_max: usize::try_from(rng.between(1, 3)).unwrap_or(1),
            held_bytes_max: usize::try_from(rng.between(40, 400)).unwrap_or(1),
        };
        Self { limits, buckets: if rng.one_in(3) { rng.between(1, 4) } else { 0 } }
    }

    fn bucket(self, row: &Row) -> String {
        let of = match row {
            Row::Event { id } => *id,
            Row::Total { key, .. } | Row::Timer { key, .. } | Row::Add { key, .. } => *key,
            Row::Tally { .. } => 0,
        };
        // Most records go into one of them, so that not every second one closes a part.
        match self.buckets {
            0 => String::new(),
            buckets => format!("bucket={}", (of % 16).min(buckets - 1)),
        }
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct FileSink {
    files: FileSystem,
    line: Line,
    settings: FileSinkSettings,
}

impl FileSink {
    /// A sink into a file system.
    pub fn new(files: FileSystem, line: Line, settings: FileSinkSettings) -> Self {
        Self { files, line, settings }
    }

    fn folder(&self) -> SimFolder {
        SimFolder::new(self.files.clone(), self.line.clone())
    }
}

/// Writer of [`FileSink`].
#[derive(Debug)]
pub struct FileWriter {
    sink: FileSink,
    parts: PartWriter<SimFolder>,
}

/// Committer of [`FileSink`].
#[derive(Debug)]
pub struct FileCommitter {
    sink: FileSink,
    parts: PartCommitter<SimFolder>,
}

impl TwoPhaseSink for FileSink {
    type Record = Row;
    type Committable = WrittenParts;
    type Writer = FileWriter;
    type Committer = FileCommitter;

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<FileCommitter, ConnectorError>> + Send + use<> {
        let parts = PartCommitter::new(self.folder(), context.name.scope);
        std::future::ready(Ok(FileCommitter { sink: self.clone(), parts }))
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<FileWriter, ConnectorError>> + Send + use<> {
        let parts = PartWriter::new(self.folder(), self.settings.limits, "txt", context.connector.clock);
        std::future::ready(Ok(FileWriter { sink: self.clone(), parts }))
    }
}

impl TwoPhaseWriter for FileWriter {
    type Record = Row;
    type Committable = WrittenParts;

    async fn write(&mut self, name: &TransactionName, batch: Batch<Row>) -> Result<(), ConnectorError> {
        self.parts.begin_batch(name).await?;
        for row in &batch.values {
            self.parts.write_line(&self.sink.settings.bucket(row), line_of(row).as_bytes()).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<WrittenParts>, ConnectorError> {
        let prepared = self.parts.prepare().await?;
        if prepared.as_ref().is_some_and(|written| written.parts.len() > 1) {
            self.sink.line.coverage().count(Area::Event, "a transaction of several part files");
        }
        Ok(prepared)
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.parts.discard().await
    }
}

impl Committer for FileCommitter {
    type Committable = WrittenParts;

    async fn commit(&mut self, item: &Prepared<WrittenParts>) -> Result<CommitOutcome, ConnectorError> {
        self.sink.files.note_closed_by(&item.name, item.closed_by);
        let outcome = self.parts.commit(item).await?;
        count_outcome(&self.sink.line, &outcome);
        Ok(outcome)
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        self.parts.list().await
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        self.parts.roll_back(name).await
    }
}
