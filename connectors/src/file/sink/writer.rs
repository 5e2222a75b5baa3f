//! Encodes records, chooses their buckets, and hands lines to the parts.
//!
//! Owns: encoding and its refusals. Does not own: files (see [`PartWriter`]). Runs on: the I/O side.

use std::path::PathBuf;

use tidegate_engine::api::{ConnectorError, TwoPhaseWriter};
use tidegate_engine::element::Batch;
use tidegate_engine::operator::TransactionName;
use tidegate_engine::parts::{PartFolder, PartWriter, WrittenParts};

use super::bucket::check_bucket;
use super::settings::BucketOf;
use super::{DiskFolder, FileSinkError, LineEncoder};

/// Writer of a [`super::FileSink`].
pub struct FileSinkWriter<T, E, F: PartFolder = DiskFolder> {
    parts: PartWriter<F>,
    encoder: E,
    bucket: Option<BucketOf<T>>,
    folder: PathBuf,
    /// Records so far, for messages.
    records: u64,
    line: Vec<u8>,
}

impl<T, E: LineEncoder<T>, F: PartFolder> FileSinkWriter<T, E, F> {
    pub(crate) fn new(
        parts: PartWriter<F>,
        encoder: E,
        bucket: Option<BucketOf<T>>,
        folder: PathBuf,
    ) -> Self {
        Self { parts, encoder, bucket, folder, records: 0, line: Vec::new() }
    }

    /// Encodes into `self.line`, and says which bucket it is for.
    fn encode(&mut self, record: &T) -> Result<String, FileSinkError> {
        self.records += 1;
        let (number, folder) = (self.records, &self.folder);
        self.line.clear();
        self.encoder.encode(record, &mut self.line).map_err(|source| FileSinkError::Encode {
            folder: folder.clone(),
            record: number,
            source: Box::new(source),
        })?;
        if self.line.contains(&b'\n') {
            return Err(FileSinkError::LineBreak { folder: folder.clone(), record: number });
        }
        let Some(bucket_of) = &self.bucket else { return Ok(String::new()) };
        let bucket = bucket_of(record);
        match check_bucket(&bucket) {
            Ok(()) => Ok(bucket),
            Err(refusal) => {
                Err(FileSinkError::Bucket { folder: folder.clone(), record: number, bucket, refusal })
            }
        }
    }
}

impl<T: Clone + Send + 'static, E: LineEncoder<T>, F: PartFolder> TwoPhaseWriter for FileSinkWriter<T, E, F> {
    type Record = T;
    type Committable = WrittenParts;

    async fn write(&mut self, name: &TransactionName, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.parts.begin_batch(name).await?;
        // Taken out one by one: a record need not be shareable between threads.
        for record in batch.values {
            let bucket = self.encode(&record)?;
            drop(record);
            self.parts.write_line(&bucket, &self.line).await?;
        }
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<WrittenParts>, ConnectorError> {
        self.parts.prepare().await
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        self.parts.discard().await
    }
}
