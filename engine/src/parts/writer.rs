//! Writes lines into part files: one open part for each bucket, closed by size, by age, and by every barrier.
//!
//! Owns: the open transaction. Does not own: encoding and buckets of records (the connector), what becomes of pending parts (see
//! [`super::PartCommitter`]). Runs on: the I/O side.

use std::collections::BTreeMap;

use super::name::PartName;
use super::open_part::OpenPart;
use super::{PartError, PartFolder, PartLimits, WrittenPart, WrittenParts};
use crate::api::ConnectorError;
use crate::clock::{Moment, SharedClock};
use crate::operator::TransactionName;

/// See the module.
pub struct PartWriter<F: PartFolder> {
    folder: F,
    limits: PartLimits,
    extension: String,
    clock: SharedClock,
    open: Option<OpenTransaction<F>>,
    /// A step failed or was cut short: its records are no longer held.
    broken: bool,
}

struct OpenTransaction<F: PartFolder> {
    name: TransactionName,
    next_part: u32,
    records: u64,
    /// By bucket.
    open: BTreeMap<String, OpenPart<F>>,
    closed: Vec<WrittenPart>,
}

impl<F: PartFolder> OpenTransaction<F> {
    fn new(name: TransactionName) -> Self {
        Self { name, next_part: 0, records: 0, open: BTreeMap::new(), closed: Vec::new() }
    }

    fn open_part(&mut self, bucket: &str, extension: &str, now: Moment) {
        let name = PartName { transaction: self.name.clone(), part: self.next_part };
        self.next_part += 1;
        let finished = name.finished(bucket, extension);
        self.open.insert(bucket.to_owned(), OpenPart::new(name, finished, now));
    }

    /// The bucket whose part was written to longest ago.
    fn least_recent(&self) -> Option<String> {
        self.open.iter().min_by_key(|(_, part)| part.last_record).map(|(bucket, _)| bucket.clone())
    }
}

impl<F: PartFolder> PartWriter<F> {
    /// A writer whose finished files end in `.extension`.
    pub fn new(folder: F, limits: PartLimits, extension: &str, clock: SharedClock) -> Self {
        Self { folder, limits, extension: extension.to_owned(), clock, open: None, broken: false }
    }

    fn refuse_broken(&self, name: &TransactionName) -> Result<(), PartError> {
        match self.broken {
            true => Err(PartError::WriterBroken { name: Box::new(name.clone()) }),
            false => Ok(()),
        }
    }

    /// Before each batch: opens the transaction, under this name, if none is open, and closes parts that are too old.
    ///
    /// # Errors
    /// A part could not be closed, or the writer failed before.
    pub async fn begin_batch(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        self.refuse_broken(name)?;
        let now = self.clock.now();
        let open = self.open.get_or_insert_with(|| OpenTransaction::new(name.clone()));
        let too_old = open.open.iter().filter(|(_, part)| self.limits.is_too_old(part.opened_at, now));
        let buckets: Vec<String> = too_old.map(|(bucket, _)| bucket.clone()).collect();
        for bucket in buckets {
            self.close(&bucket).await?;
        }
        Ok(())
    }

    /// Takes one line, without its end, into a bucket; the empty bucket is the output folder itself. A batch has begun.
    ///
    /// # Errors
    /// It could not be written; nothing can be prepared afterwards.
    pub async fn write_line(&mut self, bucket: &str, line: &[u8]) -> Result<(), ConnectorError> {
        let open = self.open.as_mut().expect("a batch has begun");
        open.records += 1;
        if !open.open.contains_key(bucket) {
            let full = open.open.len() >= self.limits.open_parts_max.max(1);
            if let Some(other) = open.least_recent().filter(|_| full) {
                self.close(&other).await?;
            }
        }
        let open = self.open.as_mut().expect("a batch has begun");
        if !open.open.contains_key(bucket) {
            open.open_part(bucket, &self.extension, self.clock.now());
        }
        let part = open.open.get_mut(bucket).expect("it was opened above");
        part.push(line, open.records);
        if self.limits.is_full(part.bytes) {
            return self.close(bucket).await;
        }
        if part.held_bytes() >= self.limits.held_bytes_max {
            // Until the answer is in: a future dropped here leaves a writer that prepares nothing.
            self.broken = true;
            part.flush(&self.folder).await?;
            self.broken = false;
        }
        Ok(())
    }

    async fn close(&mut self, bucket: &str) -> Result<(), ConnectorError> {
        let Some(open) = self.open.as_mut() else { return Ok(()) };
        let Some(part) = open.open.remove(bucket) else { return Ok(()) };
        self.broken = true;
        open.closed.push(part.close(&self.folder).await?);
        self.broken = false;
        Ok(())
    }

    /// Closes every part: afterwards they survive this process. `None`: there was no record.
    ///
    /// # Errors
    /// A part could not be closed, or the writer failed before.
    pub async fn prepare(&mut self) -> Result<Option<WrittenParts>, ConnectorError> {
        let Some(open) = self.open.as_ref() else { return Ok(None) };
        self.refuse_broken(&open.name)?;
        let buckets: Vec<String> = open.open.keys().cloned().collect();
        for bucket in buckets {
            self.close(&bucket).await?;
        }
        let parts = self.open.take().map(|open| open.closed).unwrap_or_default();
        Ok((!parts.is_empty()).then_some(WrittenParts { parts }))
    }

    /// Throws the open transaction away, with the parts of it that are closed.
    ///
    /// # Errors
    /// A file could not be removed.
    pub async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.broken = false;
        let Some(open) = self.open.take() else { return Ok(()) };
        for part in open.open.into_values() {
            part.discard(&self.folder).await?;
        }
        for part in open.closed {
            self.folder.remove(&part.pending).await?;
        }
        Ok(())
    }
}

impl<F: PartFolder> std::fmt::Debug for PartWriter<F> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.open.as_ref().map(|open| &open.name);
        f.debug_struct("PartWriter").field("open", &name).finish_non_exhaustive()
    }
}
