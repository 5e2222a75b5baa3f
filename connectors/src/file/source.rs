//! Settings of the file source.
//!
//! Owns: the options, their defaults and what `validate` refuses. Does not own: listing, reading. Runs on: the author's thread.

use std::io::{BufRead, BufReader};
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tidegate_engine::api::{ConnectorContext, ConnectorError, Source};

use super::listing::list_files;
use super::{FileCounters, FileEnumerator, FileError, FileReader, FileSplit};
use crate::rate::SharedRate;

/// Up to this size the input's lines are counted for progress bars.
const COUNTED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What to do with a line that is no record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BrokenLine {
    /// Fail the job, naming file, line and column.
    #[default]
    Fail,
    /// Leave it out and count it ([`FileCounters::broken_lines`]).
    Skip,
}

/// A directory of partition files, one record a line.
///
/// ```
/// use serde::Deserialize;
/// use tidegate_connectors::file::{BrokenLine, FileSource};
///
/// #[derive(Clone, Deserialize)]
/// struct Order { order_id: u64 }
///
/// let source = FileSource::json_lines::<Order>("orders/").on_broken_line(BrokenLine::Skip).unbounded();
/// let counters = source.counters();
/// assert_eq!(counters.broken_lines(), 0);
/// ```
#[derive(Debug)]
pub struct FileSource<T> {
    pub(crate) settings: Arc<FileSettings>,
    rate: Option<SharedRate>,
    reads: PhantomData<fn() -> T>,
}

/// What all parts of one source share.
#[derive(Clone, Debug)]
pub(crate) struct FileSettings {
    pub(crate) folder: PathBuf,
    pub(crate) follow: bool,
    pub(crate) broken_line: BrokenLine,
    pub(crate) counters: FileCounters,
}

impl FileSource<()> {
    /// Reads the files of `folder`, a JSON object of type `T` on each line. Bounded: what is there at the start, up to the sizes
    /// found then.
    pub fn json_lines<T: DeserializeOwned>(folder: impl AsRef<Path>) -> FileSource<T> {
        let settings = FileSettings {
            folder: folder.as_ref().to_owned(),
            follow: false,
            broken_line: BrokenLine::Fail,
            counters: FileCounters::default(),
        };
        FileSource { settings: Arc::new(settings), rate: None, reads: PhantomData }
    }
}

impl<T> FileSource<T> {
    /// Never ends: looks for new lines and new files every 200 ms.
    #[must_use]
    pub fn unbounded(mut self) -> Self {
        Arc::make_mut(&mut self.settings).follow = true;
        self
    }

    /// What to do with a line that is no record; the default is to fail.
    #[must_use]
    pub fn on_broken_line(mut self, policy: BrokenLine) -> Self {
        Arc::make_mut(&mut self.settings).broken_line = policy;
        self
    }

    /// At most this many records per second, over all readers of a process together. A pause is made up for by one batch at most.
    #[must_use]
    pub fn rate_per_second(mut self, rate: u64) -> Self {
        self.rate = Some(SharedRate::per_second(rate));
        self
    }

    /// What was left out so far. Clones of the source share the counters, so ask before giving the source away.
    pub fn counters(&self) -> FileCounters {
        self.settings.counters.clone()
    }
}

impl<T> Clone for FileSource<T> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), rate: self.rate.clone(), reads: PhantomData }
    }
}

impl<T: DeserializeOwned + Clone + Send + 'static> Source for FileSource<T> {
    type Record = T;
    type Split = FileSplit;
    type Enumerator = FileEnumerator;
    type Reader = FileReader<T>;

    fn validate(&self) -> Result<(), ConnectorError> {
        if self.rate.as_ref().is_some_and(|rate| rate.records_per_second() == 0) {
            return Err(FileError::RateZero.into());
        }
        let files = list_files(&self.settings.folder)?;
        if files.is_empty() && !self.settings.follow {
            return Err(FileError::FolderEmpty { folder: self.settings.folder.clone() }.into());
        }
        Ok(())
    }

    fn enumerator(&self, parallelism: u32) -> FileEnumerator {
        FileEnumerator::new(Arc::clone(&self.settings), parallelism)
    }

    fn reader(&self, context: ConnectorContext, _subtask: u32) -> FileReader<T> {
        FileReader::new(Arc::clone(&self.settings), self.rate.clone(), context)
    }

    /// The number of whole lines, if bounded and small enough to count at once (64 MiB).
    fn total_records(&self) -> Option<u64> {
        if self.settings.follow {
            return None;
        }
        let files = list_files(&self.settings.folder).ok()?;
        if files.iter().map(|file| file.length_bytes).sum::<u64>() > COUNTED_BYTES_MAX {
            return None;
        }
        files.iter().map(|file| count_lines(&self.settings.folder.join(&file.name)).ok()).sum()
    }
}

fn count_lines(file: &Path) -> std::io::Result<u64> {
    let mut reader = BufReader::with_capacity(64 * 1024, std::fs::File::open(file)?);
    let mut lines = 0;
    loop {
        let block = reader.fill_buf()?;
        if block.is_empty() {
            return Ok(lines);
        }
        lines += block.iter().map(|byte| u64::from(*byte == b'\n')).sum::<u64>();
        let length = block.len();
        reader.consume(length);
    }
}
