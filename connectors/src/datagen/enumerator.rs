//! Deals the indices out, once.
//!
//! Owns: whether that was done. Does not own: the positions (the readers' state). Runs on: the job manager. Pure.

use std::time::Duration;

use tidegate_engine::api::{Assignment, ConnectorError, SplitEnumerator};
use tidegate_engine::io::{BoxFuture, SharedIo};
use tidegate_state::StateType;

use super::DatagenSplit;

/// Hands out one split per subtask at the first start, and none ever after.
#[derive(Debug)]
pub struct DatagenEnumerator {
    count: Option<u64>,
    parallelism: u32,
    progress: DatagenProgress,
}

/// What the enumerator remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, StateType)]
pub struct DatagenProgress {
    /// Whether the splits were handed out.
    pub handed_out: bool,
}

impl DatagenEnumerator {
    pub(crate) fn new(count: Option<u64>, parallelism: u32) -> Self {
        Self { count, parallelism: parallelism.max(1), progress: DatagenProgress { handed_out: false } }
    }
}

impl SplitEnumerator for DatagenEnumerator {
    type Split = DatagenSplit;
    type Found = ();
    type State = DatagenProgress;

    fn restore(&mut self, state: DatagenProgress, parallelism: u32) -> Result<(), ConnectorError> {
        self.progress = state;
        self.parallelism = parallelism.max(1);
        Ok(())
    }

    fn discover(&mut self, _io: &SharedIo) -> Option<BoxFuture<Result<(), ConnectorError>>> {
        if self.progress.handed_out {
            return None;
        }
        Some(Box::pin(std::future::ready(Ok(()))))
    }

    fn on_found(&mut self, (): ()) -> Result<Vec<Assignment<DatagenSplit>>, ConnectorError> {
        if self.progress.handed_out {
            return Ok(Vec::new());
        }
        self.progress.handed_out = true;
        let stride = u64::from(self.parallelism);
        let split = |first| DatagenSplit { first, stride, next: first, end: self.count };
        Ok((0..self.parallelism)
            .map(|subtask| Assignment { subtask, splits: vec![split(u64::from(subtask))] })
            .collect())
    }

    fn interval(&self) -> Option<Duration> {
        None
    }

    fn is_complete(&self) -> bool {
        self.progress.handed_out
    }

    fn snapshot(&self) -> DatagenProgress {
        self.progress
    }
}
