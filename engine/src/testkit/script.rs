//! A source that is fed by hand, and a sink that can be looked into.
//!
//! Owns: their records. Does not own: when anything runs (see [`super::JobHarness`]). Runs on: the test's thread.

use std::any::{Any, type_name};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::api::{
    Assignment, ConnectorContext, ConnectorError, ReadStatus, Sink, Source, SourceOutput, SplitEnumerator,
    SplitReader, Writer,
};
use crate::element::{Batch, EventTime};
use crate::io::{BoxFuture, SharedIo};

/// What stands in a source's or sink's place.
pub struct Script {
    /// A [`ScriptedSource`] or [`CollectedSink`] of the node's type.
    pub(super) of: Box<dyn Any>,
    /// Type of the records, for people.
    pub(super) record: &'static str,
    /// No record follows; nothing for a sink.
    pub(super) end: Box<dyn Fn()>,
}

impl Script {
    /// Of a source.
    pub(crate) fn source<T: 'static>(source: ScriptedSource<T>) -> Self {
        let ending = source.clone();
        Self { of: Box::new(source), record: type_name::<T>(), end: Box::new(move || ending.end()) }
    }

    /// Of a sink.
    pub(crate) fn sink<T: 'static>(sink: CollectedSink<T>) -> Self {
        Self { of: Box::new(sink), record: type_name::<T>(), end: Box::new(|| ()) }
    }
}

/// Feeds a source of the job. Clones feed the same one.
#[derive(Debug)]
pub struct ScriptedSource<T> {
    /// Guards the records that wait. A mutex and no message: both sides are on one thread, and the source has to be `Send`.
    waiting: Arc<Mutex<Waiting<T>>>,
}

#[derive(Debug)]
struct Waiting<T> {
    records: VecDeque<(T, Option<EventTime>)>,
    ended: bool,
}

impl<T> Clone for ScriptedSource<T> {
    fn clone(&self) -> Self {
        Self { waiting: Arc::clone(&self.waiting) }
    }
}

impl<T> Default for ScriptedSource<T> {
    fn default() -> Self {
        let waiting = Waiting { records: VecDeque::new(), ended: false };
        Self { waiting: Arc::new(Mutex::new(waiting)) }
    }
}

impl<T> ScriptedSource<T> {
    fn lock(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a record.
    pub fn push(&self, record: T) {
        self.lock().records.push_back((record, None));
    }

    /// Adds a record that carries its event time, in milliseconds since 1970.
    pub fn push_at(&self, record: T, event_time_ms: i64) {
        self.lock().records.push_back((record, Some(EventTime(event_time_ms))));
    }

    /// Adds records.
    pub fn push_all(&self, records: impl IntoIterator<Item = T>) {
        self.lock().records.extend(records.into_iter().map(|record| (record, None)));
    }

    /// No record follows.
    pub fn end(&self) {
        self.lock().ended = true;
    }
}

impl<T: Clone + Send + 'static> Source for ScriptedSource<T> {
    type Record = T;
    type Split = u64;
    type Enumerator = OneSplit;
    type Reader = ScriptReader<T>;

    fn enumerator(&self, _parallelism: u32) -> OneSplit {
        OneSplit { handed_out: false }
    }

    fn reader(&self, _context: ConnectorContext, _subtask: u32) -> ScriptReader<T> {
        ScriptReader { source: self.clone(), splits: Vec::new() }
    }
}

/// Gives the only split to the first subtask.
#[derive(Debug)]
pub struct OneSplit {
    handed_out: bool,
}

impl SplitEnumerator for OneSplit {
    type Split = u64;
    type Found = ();
    type State = u64;

    fn restore(&mut self, _state: u64, _parallelism: u32) -> Result<(), ConnectorError> {
        Ok(())
    }

    fn discover(&mut self, _io: &SharedIo) -> Option<BoxFuture<Result<(), ConnectorError>>> {
        (!self.handed_out).then(|| Box::pin(std::future::ready(Ok(()))) as BoxFuture<_>)
    }

    fn on_found(&mut self, (): ()) -> Result<Vec<Assignment<u64>>, ConnectorError> {
        self.handed_out = true;
        Ok(vec![Assignment { subtask: 0, splits: vec![0] }])
    }

    fn interval(&self) -> Option<Duration> {
        None
    }

    fn is_complete(&self) -> bool {
        self.handed_out
    }

    fn snapshot(&self) -> u64 {
        0
    }
}

/// Reader of a [`ScriptedSource`].
#[derive(Debug)]
pub struct ScriptReader<T> {
    source: ScriptedSource<T>,
    splits: Vec<u64>,
}

impl<T: 'static> SplitReader for ScriptReader<T> {
    type Record = T;
    type Split = u64;

    fn add_splits(&mut self, splits: Vec<u64>) -> Result<(), ConnectorError> {
        self.splits.extend(splits);
        Ok(())
    }

    fn poll(&mut self, output: &mut SourceOutput<T>) -> Result<ReadStatus, ConnectorError> {
        if self.splits.is_empty() {
            return Ok(ReadStatus::Idle);
        }
        let mut waiting = self.source.lock();
        let mut emitted = false;
        // A batch has event times for all of its records or for none.
        let kind = waiting.records.front().map(|(_, time)| time.is_some());
        while output.room() > 0 && waiting.records.front().map(|(_, time)| time.is_some()) == kind {
            let Some((record, time)) = waiting.records.pop_front() else { break };
            emitted = true;
            match time {
                Some(time) => output.emit_at(record, time),
                None => output.emit(record),
            }
        }
        Ok(match (emitted, waiting.ended) {
            (true, _) => ReadStatus::More,
            (false, true) => ReadStatus::Idle,
            (false, false) => ReadStatus::Pending(None),
        })
    }

    fn snapshot(&self) -> Vec<u64> {
        self.splits.clone()
    }
}

/// What has come out of a sink of the job. Clones share it.
#[derive(Debug)]
pub struct CollectedSink<T> {
    /// Guards the records. As in [`ScriptedSource`].
    records: Arc<Mutex<Vec<T>>>,
}

impl<T> Clone for CollectedSink<T> {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records) }
    }
}

impl<T> Default for CollectedSink<T> {
    fn default() -> Self {
        Self { records: Arc::default() }
    }
}

impl<T> CollectedSink<T> {
    fn lock(&self) -> MutexGuard<'_, Vec<T>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come since the last time.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut self.lock())
    }
}

impl<T: Clone> CollectedSink<T> {
    /// What has come, in order.
    pub fn records(&self) -> Vec<T> {
        self.lock().clone()
    }

    /// What came last.
    pub fn last(&self) -> Option<T> {
        self.lock().last().cloned()
    }
}

impl<T: Clone + Send + 'static> Sink for CollectedSink<T> {
    type Record = T;
    type Writer = Self;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self, ConnectorError>> + Send + use<T> {
        std::future::ready(Ok(self.clone()))
    }
}

impl<T: Clone + Send + 'static> Writer for CollectedSink<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.lock().extend(batch.values);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}
