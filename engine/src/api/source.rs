//! A source in two parts: [`SplitEnumerator`] at the job manager, [`SplitReader`] in each source subtask.
//!
//! **Split law** (law 3). Snapshot *n* of the enumerator is taken first; assignments made after it travel behind trigger *n* on the
//! same ordered, acknowledged mail. A split is in exactly one place in every checkpoint; a failed reader's splits return by restore
//! only. A reader's position is that of the last record handed to its output, never of the last one fetched.
//!
//! Owns: the traits a connector implements, and their erasure. Does not own: when a snapshot is taken.
//! Runs on: the enumerator with the job manager, the reader on its slot's thread. Both may start futures on [`SharedIo`] and talk
//! with them through bounded channels; neither waits.

use std::any::Any;
use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tidegate_state::{StateType, decode_list, encode_list};

use super::claim_watch::ClaimWatch;
use super::preflight::{PreflightContext, PreflightResult};
use crate::clock::{Moment, SharedClock};
use crate::element::{Batch, EventTime, SplitNotes, SplitRun, SplitStanding};
use crate::ids::{CheckpointId, EntryNumber};
use crate::io::{BoxFuture, SharedIo, Waker};

/// An error of a connector: what was tried, and the source of the failure.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ConnectorError {
    /// What was tried, where, and the remedy.
    pub message: String,
    /// Whether a restart from the last checkpoint may help. Bad input and refused settings are final.
    pub restartable: bool,
    /// The claim that has taken the job over, if that is what was found: the attempt ends as fenced, whatever the restart strategy is.
    pub fenced_by: Option<EntryNumber>,
    /// Why it failed.
    #[source]
    pub source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl ConnectorError {
    /// An error that no restart can mend: bad input, refused settings, a replaced file.
    pub fn fatal(message: impl Display) -> Self {
        Self { message: message.to_string(), restartable: false, fenced_by: None, source: None }
    }

    /// An error that a restart may mend: a server or a disk that is away.
    pub fn transient(message: impl Display) -> Self {
        Self { message: message.to_string(), restartable: true, fenced_by: None, source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// The message and every source that says something new, in one line each.
    pub fn full_text(&self) -> String {
        let source = self.source.as_ref().map(|s| s.as_ref() as &dyn std::error::Error);
        crate::error::with_causes(self.message.clone(), source)
    }
}

/// What a connector's parts are given.
#[derive(Clone)]
pub struct ConnectorContext {
    /// Time.
    pub clock: SharedClock,
    /// Where futures run.
    pub io: SharedIo,
    /// Call after putting something into a channel that the slot (or job manager) reads.
    pub waker: Waker,
    /// A checkpoint that takes longer is given up: whatever a connector waits for, it waits less.
    pub checkpoint_timeout: Duration,
    /// Whether the job is still this attempt's: asked by what writes outside of transactions.
    pub claim: ClaimWatch,
}

/// A source: settings plus the makers of its two parts. Cloned into the job manager and every subtask.
pub trait Source: Clone + Send + 'static {
    /// What it emits.
    type Record: Clone + Send + 'static;
    /// A part of the input together with the position in it.
    type Split: StateType;
    /// The part at the job manager.
    type Enumerator: SplitEnumerator<Split = Self::Split>;
    /// The part in a subtask.
    type Reader: SplitReader<Record = Self::Record, Split = Self::Split>;

    /// Refuses bad settings before anything runs: a missing folder, a rate of zero.
    ///
    /// # Errors
    /// What is wrong and how to mend it.
    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// Looks at the server before the job runs: rights, tables, limits that the job's settings would meet.
    ///
    /// # Errors
    /// What is wrong and how to mend it.
    fn preflight(
        &self,
        _context: PreflightContext,
    ) -> impl Future<Output = PreflightResult> + Send + use<Self> {
        std::future::ready(Ok(Vec::new()))
    }

    /// Makes the enumerator for a job without restored state. `parallelism` is that of the source.
    fn enumerator(&self, parallelism: u32) -> Self::Enumerator;

    /// Makes a reader on its slot's thread. Its splits come by [`SplitReader::add_splits`].
    fn reader(&self, context: ConnectorContext, subtask: u32) -> Self::Reader;

    /// How many records there are in all, where that is known at once: for progress bars.
    fn total_records(&self) -> Option<u64> {
        None
    }
}

/// Splits for one subtask.
#[derive(Clone, Debug)]
pub struct Assignment<S> {
    /// Index of the reader.
    pub subtask: u32,
    /// What it shall read.
    pub splits: Vec<S>,
}

/// Finds splits and hands them out. Pure but for [`SplitEnumerator::discover`].
pub trait SplitEnumerator: Send + 'static {
    /// What it hands out.
    type Split: StateType;
    /// What its discovery finds.
    type Found: Send + 'static;
    /// What it must remember: which splits were handed out already.
    type State: StateType;

    /// Takes over restored state. Called before anything else.
    ///
    /// # Errors
    /// State that does not fit these settings.
    fn restore(&mut self, state: Self::State, parallelism: u32) -> Result<(), ConnectorError>;

    /// A future that looks for splits, or `None` if there is no more to look for.
    fn discover(&mut self, io: &SharedIo) -> Option<BoxFuture<Result<Self::Found, ConnectorError>>>;

    /// Takes what a discovery found and says what to assign now.
    ///
    /// # Errors
    /// Input that contradicts the state: a file that is gone or was replaced.
    fn on_found(&mut self, found: Self::Found) -> Result<Vec<Assignment<Self::Split>>, ConnectorError>;

    /// Time between discoveries; `None`: discover once.
    fn interval(&self) -> Option<Duration>;

    /// Whether no split will follow (bounded input, everything found and handed out).
    fn is_complete(&self) -> bool;

    /// Its state now.
    fn snapshot(&self) -> Self::State;
}

/// What [`SplitReader::poll`] says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadStatus {
    /// Call again.
    More,
    /// Nothing now; the waker will be called, or it is worth asking again at this moment.
    Pending(Option<Moment>),
    /// Every split that was added is read to its end. If no more splits come, the source has ended.
    Idle,
}

/// Where a reader puts records.
#[derive(Debug)]
pub struct SourceOutput<T> {
    batch: Batch<T>,
    room: usize,
    /// `None`: nobody asks about splits.
    notes: Option<SplitNotes>,
}

impl<T> SourceOutput<T> {
    /// Room for at most `records` records.
    pub fn with_room(records: usize) -> Self {
        Self { batch: Batch::with_capacity(records), room: records, notes: None }
    }

    /// The same, for a job that wants to know about splits.
    pub fn with_notes(records: usize) -> Self {
        Self { notes: Some(SplitNotes::default()), ..Self::with_room(records) }
    }

    /// Whether the job makes watermarks of each split. A reader then says before the records of a split whose they are
    /// ([`Self::records_of`]) and at every poll how each split stands ([`Self::note_split`]). One that does not counts as one split.
    pub fn wants_splits(&self) -> bool {
        self.notes.is_some()
    }

    /// The records emitted from here on are those of this split; the number is the reader's own.
    pub fn records_of(&mut self, split: u32) {
        self.close_run();
        if let Some(notes) = &mut self.notes
            && notes.runs.last().is_none_or(|last| last.split != split)
        {
            notes.runs.push(SplitRun { split, records: 0 });
        }
    }

    /// How a split stands after this poll.
    pub fn note_split(&mut self, split: u32, standing: SplitStanding) {
        if let Some(notes) = &mut self.notes {
            notes.splits.push((split, standing));
        }
    }

    /// Counts the records of the last run.
    fn close_run(&mut self) {
        if let Some(notes) = &mut self.notes
            && let Some((last, before)) = notes.runs.split_last_mut()
        {
            let counted: usize = before.iter().map(|run| run.records).sum();
            last.records = self.batch.len() - counted;
        }
    }

    /// What was said about splits.
    pub(crate) fn take_notes(&mut self) -> Option<SplitNotes> {
        self.close_run();
        self.notes.take()
    }

    /// How many more records fit. A reader never emits more.
    pub fn room(&self) -> usize {
        self.room.saturating_sub(self.batch.len())
    }

    /// Emits a record without event time (the job assigns one with `watermarks`).
    #[inline]
    pub fn emit(&mut self, record: T) {
        self.batch.push(record, None);
    }

    /// Emits a record that carries its event time.
    #[inline]
    pub fn emit_at(&mut self, record: T, time: EventTime) {
        self.batch.push(record, Some(time));
    }

    /// Emits many records without event time.
    pub fn emit_all(&mut self, records: impl IntoIterator<Item = T>) {
        self.batch.values.extend(records);
    }

    /// The records so far.
    pub fn take(self) -> Batch<T> {
        self.batch
    }
}

/// Where a reader stands at a barrier, for a sink behind it in the same subtask that keeps such positions inside its transactions. Its
/// type is between the two connectors.
pub type SourcePosition = Arc<dyn Any + Send + Sync>;

/// Reads splits; slot side of a source.
pub trait SplitReader: 'static {
    /// What it emits.
    type Record;
    /// What it reads.
    type Split: StateType;

    /// Takes splits, restored or newly assigned, each with its position.
    ///
    /// # Errors
    /// A split that cannot be read (a truncated or replaced file) may be reported here or by `poll`.
    fn add_splits(&mut self, splits: Vec<Self::Split>) -> Result<(), ConnectorError>;

    /// Hands records to `output`, at most its room. Never waits.
    ///
    /// # Errors
    /// Broken input, by the source's policy, or a disk or server that is away.
    fn poll(&mut self, output: &mut SourceOutput<Self::Record>) -> Result<ReadStatus, ConnectorError>;

    /// Every split it holds, with the position behind the last record handed to an output. Splits read to their end
    /// may be left out only if the enumerator never hands them out again.
    fn snapshot(&self) -> Vec<Self::Split>;

    /// Records that lie before the positions of the splits it was given: read by earlier attempts. For progress only.
    fn restored_records(&self) -> u64 {
        0
    }

    /// How many records lie between what it has handed out and the end of what there is now; `None`: that is not known, or has no
    /// meaning. For people only; asked now and then.
    fn lag(&self) -> Option<u64> {
        None
    }

    /// Whether it tells which records come from which split (see [`SourceOutput::wants_splits`]).
    fn tells_splits(&self) -> bool {
        false
    }

    /// What [`Self::snapshot`] gave just now, for a sink of the same subtask that wants it ([`crate::api::TwoPhaseSink::takes_position`]).
    /// Asked only if there is one; [`Self::note_snapshot`] is not called then, since the sink tells the outside. Restores never read
    /// it.
    fn position(&self) -> Option<SourcePosition> {
        None
    }

    /// What [`Self::snapshot`] gave just now is the reader's part of checkpoint `id`.
    fn note_snapshot(&mut self, _id: CheckpointId) {}

    /// Checkpoint `id` is complete: positions in it may be told to the outside, for monitoring only. May come more than once.
    fn notify_complete(&mut self, _id: CheckpointId) {}
}

/// Anything a discovery found, with its type erased.
pub type AnyFound = Box<dyn Any + Send>;

/// A [`SplitEnumerator`] without its types, as the job manager holds it.
pub trait AnyEnumerator: Send {
    /// See [`SplitEnumerator::restore`]; `state` is what `snapshot` gave.
    ///
    /// # Errors
    /// State that does not fit.
    fn restore(&mut self, state: &[u8], parallelism: u32) -> Result<(), ConnectorError>;
    /// See [`SplitEnumerator::discover`].
    fn discover(&mut self, io: &SharedIo) -> Option<BoxFuture<Result<AnyFound, ConnectorError>>>;
    /// See [`SplitEnumerator::on_found`]; the splits are framed by `tidegate_state::encode_list`.
    ///
    /// # Errors
    /// As there.
    fn on_found(&mut self, found: AnyFound) -> Result<Vec<(u32, Vec<u8>)>, ConnectorError>;
    /// See [`SplitEnumerator::interval`].
    fn interval(&self) -> Option<Duration>;
    /// See [`SplitEnumerator::is_complete`].
    fn is_complete(&self) -> bool;
    /// See [`SplitEnumerator::snapshot`].
    fn snapshot(&self) -> Vec<u8>;
}

/// Erases a [`SplitEnumerator`].
#[derive(Debug)]
pub struct ErasedEnumerator<E>(pub E);

impl<E: SplitEnumerator> AnyEnumerator for ErasedEnumerator<E> {
    fn restore(&mut self, state: &[u8], parallelism: u32) -> Result<(), ConnectorError> {
        let mut states = decode_list::<E::State>(state)
            .map_err(|e| ConnectorError::fatal("the enumerator's state cannot be read").caused_by(e))?;
        match states.pop() {
            Some(state) => self.0.restore(state, parallelism),
            None => Ok(()),
        }
    }

    fn discover(&mut self, io: &SharedIo) -> Option<BoxFuture<Result<AnyFound, ConnectorError>>> {
        let future = self.0.discover(io)?;
        Some(Box::pin(async move { future.await.map(|found| Box::new(found) as AnyFound) }))
    }

    fn on_found(&mut self, found: AnyFound) -> Result<Vec<(u32, Vec<u8>)>, ConnectorError> {
        let found = found.downcast::<E::Found>().map_err(|_| {
            ConnectorError::fatal("a discovery of another source was handed to this enumerator")
        })?;
        let assignments = self.0.on_found(*found)?;
        Ok(assignments.into_iter().map(|a| (a.subtask, encode_list(&a.splits))).collect())
    }

    fn interval(&self) -> Option<Duration> {
        self.0.interval()
    }

    fn is_complete(&self) -> bool {
        self.0.is_complete()
    }

    fn snapshot(&self) -> Vec<u8> {
        encode_list(&[self.0.snapshot()])
    }
}
