//! One part while it is written.
//!
//! Owns: the bytes held back, and the counts. Does not own: when it is closed. Runs on: the I/O side.

use super::name::{PartName, PartStage};
use super::{PartFolder, WrittenPart};
use crate::api::ConnectorError;
use crate::clock::Moment;
use tidegate_state::fault_point;

/// See the module.
pub(super) struct OpenPart<F: PartFolder> {
    name: PartName,
    finished: String,
    /// Not made before the first bytes are written: there is never an empty part.
    file: Option<F::File>,
    held: Vec<u8>,
    pub(super) bytes: u64,
    records: u64,
    pub(super) opened_at: Moment,
    /// Number of the record it took last.
    pub(super) last_record: u64,
}

impl<F: PartFolder> OpenPart<F> {
    pub(super) fn new(name: PartName, finished: String, opened_at: Moment) -> Self {
        Self { name, finished, file: None, held: Vec::new(), bytes: 0, records: 0, opened_at, last_record: 0 }
    }

    /// Takes a line, without its end.
    pub(super) fn push(&mut self, line: &[u8], record: u64) {
        self.held.extend_from_slice(line);
        self.held.push(b'\n');
        self.bytes += line.len() as u64 + 1;
        self.records += 1;
        self.last_record = record;
    }

    pub(super) fn held_bytes(&self) -> usize {
        self.held.len()
    }

    /// Writes what is held back.
    pub(super) async fn flush(&mut self, folder: &F) -> Result<(), ConnectorError> {
        if self.held.is_empty() {
            return Ok(());
        }
        fault_point!("file_sink.flush.before");
        let mut file = match self.file.take() {
            Some(file) => file,
            None => folder.create(&self.name.staged(PartStage::Open)).await?,
        };
        folder.append(&mut file, std::mem::take(&mut self.held)).await?;
        self.file = Some(file);
        fault_point!("file_sink.flush.after");
        Ok(())
    }

    /// Makes it durable and pending.
    pub(super) async fn close(mut self, folder: &F) -> Result<WrittenPart, ConnectorError> {
        self.flush(folder).await?;
        if let Some(file) = self.file.take() {
            folder.sync(file).await?;
        }
        let (open, pending) = (self.name.staged(PartStage::Open), self.name.staged(PartStage::Pending));
        fault_point!("file_sink.prepare.before");
        folder.rename(&open, &pending).await?;
        fault_point!("file_sink.prepare.after");
        Ok(WrittenPart { pending, finished: self.finished, bytes: self.bytes, records: self.records })
    }

    /// Throws it away.
    pub(super) async fn discard(self, folder: &F) -> Result<(), ConnectorError> {
        drop(self.file);
        folder.remove(&self.name.staged(PartStage::Open)).await
    }
}
