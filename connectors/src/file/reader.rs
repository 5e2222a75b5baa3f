//! Hands out the records of its files.
//!
//! Owns: the position of each split, behind the last record handed out. Does not own: reading (a fetcher per split does). Runs on: its
//! slot's thread; it never waits.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use tidegate_engine::api::{ConnectorContext, ConnectorError, ReadStatus, SourceOutput, SplitReader};
use tidegate_engine::clock::Moment;
use tidegate_engine::io::{IoGone, SpawnedIo};
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::mpsc::{self, Receiver};

use super::chunk::{ChunkInHand, Fetched};
use super::fetcher::Fetcher;
use super::source::FileSettings;
use super::{FileError, FileSplit};
use crate::rate::{Grant, SharedRate};

/// Chunks of one split that may wait for the slot.
const CHUNKS_WAITING: usize = 4;

/// Reader of a [`super::FileSource`].
pub struct FileReader<T> {
    settings: Arc<FileSettings>,
    rate: Option<SharedRate>,
    context: ConnectorContext,
    /// In the order of their turn.
    splits: VecDeque<OpenSplit<T>>,
    restored_records: u64,
}

struct OpenSplit<T> {
    position: FileSplit,
    in_hand: Option<ChunkInHand<T>>,
    fetched: Receiver<Fetched<T>>,
    fetcher: Box<dyn SpawnedIo>,
    state: SplitState,
}

enum SplitState {
    Reading,
    Finished,
    /// Fails as soon as what was read before is handed out.
    Failing(Option<FileError>),
}

impl<T: DeserializeOwned + Send + 'static> FileReader<T> {
    pub(crate) fn new(
        settings: Arc<FileSettings>,
        rate: Option<SharedRate>,
        context: ConnectorContext,
    ) -> Self {
        Self { settings, rate, context, splits: VecDeque::new(), restored_records: 0 }
    }

    fn open(&self, split: FileSplit) -> OpenSplit<T> {
        let (chunks, fetched) = mpsc::channel(CHUNKS_WAITING);
        let fetcher = Fetcher::new(Arc::clone(&self.settings), &split);
        let run = fetcher.run(Arc::clone(&self.context.io), chunks, Arc::clone(&self.context.waker));
        let fetcher = self.context.io.spawn("file-fetcher", Box::pin(run));
        OpenSplit { position: split, in_hand: None, fetched, fetcher, state: SplitState::Reading }
    }

    /// How many of `want` records the rate allows, or when it will allow some.
    fn grant(&self, want: usize) -> Grant {
        match &self.rate {
            Some(rate) => rate.grant(self.context.clock.now(), want),
            None => Grant::Records(want),
        }
    }

    /// Hands out what the split in turn has in hand. `Some` if the rate says to wait.
    fn hand_out(&mut self, output: &mut SourceOutput<T>) -> Option<Moment> {
        let want = self.splits.front().map_or(0, OpenSplit::len).min(output.room());
        if want == 0 {
            return None;
        }
        match self.grant(want) {
            Grant::Wait(moment) => Some(moment),
            Grant::Records(records) => {
                if let Some(split) = self.splits.front_mut() {
                    split.hand_out(records, output);
                }
                None
            }
        }
    }
}

impl<T> OpenSplit<T> {
    fn len(&self) -> usize {
        self.in_hand.as_ref().map_or(0, ChunkInHand::len)
    }

    /// Takes the next chunk if none is in hand.
    fn refill(&mut self) {
        while self.in_hand.is_none() && matches!(self.state, SplitState::Reading) {
            match self.fetched.try_recv() {
                Ok(Fetched::Lines(chunk)) => {
                    let chunk = ChunkInHand::of(chunk);
                    if chunk.len() == 0 {
                        chunk.write_position(&mut self.position);
                    } else {
                        self.in_hand = Some(chunk);
                    }
                }
                Ok(Fetched::End) => self.state = SplitState::Finished,
                Ok(Fetched::Failed(error)) => self.state = SplitState::Failing(Some(error)),
                Err(TryRecvError::Empty) => return,
                Err(TryRecvError::Disconnected) => {
                    let file = PathBuf::from(&self.position.path);
                    self.state = SplitState::Failing(Some(FileError::CutShort { file, source: IoGone }));
                }
            }
        }
    }

    /// The failure, once everything before it is handed out.
    fn failure(&mut self) -> Option<FileError> {
        match &mut self.state {
            SplitState::Failing(error) if self.in_hand.is_none() => error.take(),
            _ => None,
        }
    }

    fn hand_out(&mut self, records: usize, output: &mut SourceOutput<T>) {
        let Some(chunk) = &mut self.in_hand else { return };
        for record in chunk.take(records) {
            output.emit(record);
        }
        if chunk.len() == 0 {
            chunk.write_position(&mut self.position);
            self.in_hand = None;
        }
    }

    fn position(&self) -> FileSplit {
        let mut position = self.position.clone();
        if let Some(chunk) = &self.in_hand {
            chunk.write_position(&mut position);
        }
        position
    }
}

impl<T> Drop for OpenSplit<T> {
    fn drop(&mut self) {
        self.fetcher.abort();
    }
}

impl<T: DeserializeOwned + Send + 'static> SplitReader for FileReader<T> {
    type Record = T;
    type Split = FileSplit;

    fn add_splits(&mut self, splits: Vec<FileSplit>) -> Result<(), ConnectorError> {
        for split in splits {
            self.restored_records += split.line;
            let open = self.open(split);
            self.splits.push_back(open);
        }
        Ok(())
    }

    fn poll(&mut self, output: &mut SourceOutput<T>) -> Result<ReadStatus, ConnectorError> {
        let room = output.room();
        let mut wait = None;
        for _ in 0..self.splits.len() {
            if output.room() == 0 || wait.is_some() {
                break;
            }
            if let Some(split) = self.splits.front_mut() {
                split.refill();
                // What other splits have put into this output goes out first; a failure waits for the next poll.
                if output.room() == room
                    && let Some(error) = split.failure()
                {
                    return Err(error.into());
                }
            }
            wait = self.hand_out(output);
            self.splits.rotate_left(1);
        }
        if output.room() < room {
            return Ok(ReadStatus::More);
        }
        let finished = |split: &OpenSplit<T>| matches!(split.state, SplitState::Finished);
        if wait.is_none() && self.splits.iter().all(|split| split.len() == 0 && finished(split)) {
            return Ok(ReadStatus::Idle);
        }
        Ok(ReadStatus::Pending(wait))
    }

    fn snapshot(&self) -> Vec<FileSplit> {
        let mut splits: Vec<FileSplit> = self.splits.iter().map(OpenSplit::position).collect();
        splits.sort_by(|a, b| a.path.cmp(&b.path));
        splits
    }

    /// Lines; those that were skipped count too.
    fn restored_records(&self) -> u64 {
        self.restored_records
    }
}
