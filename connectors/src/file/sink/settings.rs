//! Settings of the file sink.
//!
//! Owns: the builder, what `validate` refuses, opening. Does not own: writing and committing (see [`FileSinkWriter`],
//! [`FileSinkCommitter`]). Runs on: built on the author's thread, opened on the I/O side.

use std::fmt::Display;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tidegate_engine::api::{ConnectorError, TwoPhaseContext, TwoPhaseSink};
use tidegate_engine::parts::{PartCommitter, PartLimits, PartWriter, WrittenParts};

use super::probe::probe;
use super::{
    DiskFolder, FileSinkCommitter, FileSinkError, FileSinkWriter, JsonLines, LineEncoder, TextLines,
};

/// The longest extension.
const EXTENSION_BYTES_MAX: usize = 16;

/// The bucket of a record.
pub(crate) type BucketOf<T> = Arc<dyn Fn(&T) -> String + Send + Sync>;

/// Lines into part files of a folder, exactly once. The folder is made if it is missing.
///
/// A part is finished with the checkpoint that follows its records, so a finished file never changes, and whoever reads only finished
/// files (those not below a hidden folder) sees each record once.
///
/// ```
/// use std::time::Duration;
/// use serde::Serialize;
/// use tidegate_connectors::file::FileSink;
///
/// #[derive(Clone, Serialize)]
/// struct Order { order_id: u64, day: String }
///
/// let orders = FileSink::json_lines::<Order>("out/orders")
///     .bucket_by(|order| format!("day={}", order.day))
///     .roll_at_bytes(64 * 1024 * 1024)
///     .roll_after(Duration::from_secs(300));
/// let totals = FileSink::text::<u64>("out/totals");
/// ```
pub struct FileSink<T, E> {
    folder: PathBuf,
    encoder: E,
    bucket: Option<BucketOf<T>>,
    limits: PartLimits,
    takes: PhantomData<fn(T)>,
}

impl FileSink<(), ()> {
    /// A JSON value of each record on a line of its own; files end in `.jsonl`.
    pub fn json_lines<T: Serialize>(folder: impl AsRef<Path>) -> FileSink<T, JsonLines> {
        FileSink::with_encoder(folder, JsonLines)
    }

    /// What [`Display`] says of each record on a line of its own; files end in `.txt`.
    pub fn text<T: Display>(folder: impl AsRef<Path>) -> FileSink<T, TextLines> {
        FileSink::with_encoder(folder, TextLines)
    }
}

impl<T, E: LineEncoder<T>> FileSink<T, E> {
    /// Lines by an encoder of your own.
    pub fn with_encoder(folder: impl AsRef<Path>, encoder: E) -> Self {
        let folder = folder.as_ref().to_owned();
        Self { folder, encoder, bucket: None, limits: PartLimits::default(), takes: PhantomData }
    }

    /// Puts each record into the folder that the function names, inside the output folder: one level, of ASCII letters, digits and
    /// `_ - . = + @`, with no dot in front. Another name fails the job.
    #[must_use]
    pub fn bucket_by(mut self, bucket: impl Fn(&T) -> String + Send + Sync + 'static) -> Self {
        self.bucket = Some(Arc::new(bucket));
        self
    }

    /// Closes a part with the record that brings it to this length; 128 MiB if not set. Each barrier closes parts too.
    #[must_use]
    pub fn roll_at_bytes(mut self, bytes: u64) -> Self {
        self.limits.part_bytes_max = bytes;
        self
    }

    /// Closes a part that is as old as this before the next records are written; 60 s if not set. Only a checkpoint interval longer
    /// than this lets a part become so old.
    #[must_use]
    pub fn roll_after(mut self, age: Duration) -> Self {
        self.limits.part_age_max = age;
        self
    }

    /// How many buckets of a subtask have an open file at once; 64 if not set. A further one closes the part that was written to
    /// longest ago.
    #[must_use]
    pub fn open_buckets_max(mut self, buckets: usize) -> Self {
        self.limits.open_parts_max = buckets;
        self
    }

    fn check(&self) -> Result<(), FileSinkError> {
        let folder = self.folder.clone();
        let zero = [
            ("a size", self.limits.part_bytes_max == 0),
            ("an age", self.limits.part_age_max.is_zero()),
            ("a number of open buckets", self.limits.open_parts_max == 0),
        ];
        if let Some((limit, _)) = zero.into_iter().find(|(_, is_zero)| *is_zero) {
            return Err(FileSinkError::LimitZero { folder, limit });
        }
        let extension = self.encoder.extension();
        let plain = extension.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
        let inside = !extension.starts_with('.') && !extension.ends_with('.');
        if extension.is_empty() || extension.len() > EXTENSION_BYTES_MAX || !plain || !inside {
            return Err(FileSinkError::BadExtension { folder, extension: extension.to_owned() });
        }
        probe(&self.folder)
    }

    pub(crate) fn folder(&self, context: &TwoPhaseContext) -> DiskFolder {
        DiskFolder::new(&self.folder, Arc::clone(&context.connector.io))
    }

    /// A writer over whatever folder.
    pub(crate) fn writer_over<F: tidegate_engine::parts::PartFolder>(
        &self,
        folder: F,
        context: TwoPhaseContext,
    ) -> FileSinkWriter<T, E, F> {
        let extension = self.encoder.extension();
        let parts = PartWriter::new(folder, self.limits, extension, context.connector.clock);
        FileSinkWriter::new(parts, self.encoder.clone(), self.bucket.clone(), self.folder.clone())
    }
}

impl<T, E: Clone> Clone for FileSink<T, E> {
    fn clone(&self) -> Self {
        Self {
            folder: self.folder.clone(),
            encoder: self.encoder.clone(),
            bucket: self.bucket.clone(),
            limits: self.limits,
            takes: PhantomData,
        }
    }
}

impl<T, E> std::fmt::Debug for FileSink<T, E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileSink")
            .field("folder", &self.folder)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static, E: LineEncoder<T>> TwoPhaseSink for FileSink<T, E> {
    type Record = T;
    type Committable = WrittenParts;
    type Writer = FileSinkWriter<T, E>;
    type Committer = FileSinkCommitter;

    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(self.check()?)
    }

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<FileSinkCommitter, ConnectorError>> + Send + use<T, E> {
        let folder = self.folder(&context);
        std::future::ready(Ok(FileSinkCommitter::new(PartCommitter::new(folder, context.name.scope))))
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<FileSinkWriter<T, E>, ConnectorError>> + Send + use<T, E> {
        std::future::ready(Ok(self.writer_over(self.folder(&context), context)))
    }
}
