//! Operators and the chain they form inside a subtask.
//!
//! A chain is a tree of [`Stage`]s: each holds at most one element *in hand*, hands its output to its downstream in batches (one `dyn`
//! call per operator and batch), and takes the next element only when its downstream has nothing in hand. So a chain can stop
//! anywhere: inside a batch, inside one record of a `flat_map` (the iterator is kept), between two timers, in the middle of
//! `on_end`. A barrier passes only when nothing is in hand (`Flow::Idle`): that is the snapshot law inside a chain.
//!
//! Owns: the traits, the element in hand, snapshot parts. Does not own: channels (see [`crate::exchange`]), when to step
//! (see [`crate::taskworker`]). Runs on: the slot's thread; no call waits.

pub mod chained;
pub mod commit_driver;
pub mod filter;
pub mod flat_map;
pub mod inline_sink;
pub mod keyed_process;
pub mod listed_transaction;
pub mod map;
mod next_command;
pub mod pipe;
pub mod plain_sink;
pub mod process_function;
mod retries;
pub mod sink_io;
pub mod sink_operator;
pub mod split_clock;
pub(crate) mod start_behind;
pub mod transaction;
pub mod watermarks;

pub use chained::{Chained, Downstream};
pub use listed_transaction::ListedTransaction;
pub use transaction::{CommitOutcome, LostTransaction, TransactionName, TransactionScope};

use std::sync::Arc;
use std::time::Duration;

use tidegate_state::{FrozenTable, KeyGroupRange, MaxParallelism, Redistribution};

use crate::api::SourcePosition;
use crate::clock::Moment;
use crate::element::{Batch, CheckpointBarrier, EventTime, SplitNotes, StreamStatus};
use crate::error::JobError;
use crate::ids::{CheckpointId, OperatorUid};
use crate::taskworker::mail::{TaskEvent, TaskFailure};

/// What a stage can be handed: the grammar's elements without barriers, which travel by [`AnyStage::snapshot`].
#[derive(Clone, Debug)]
pub enum StageElement<T> {
    /// Records.
    Records(Batch<T>),
    /// Event time has advanced.
    Watermark(EventTime),
    /// The input became idle or active.
    Status(StreamStatus),
    /// No record follows.
    EndOfData,
}

/// How far a chain came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// Nothing is in hand: the chain takes the next element, or a barrier.
    Idle,
    /// Something is in hand and can go on at once.
    More,
    /// Something is in hand and waits for room downstream, or for a connector.
    Blocked,
}

/// Whether an operator is done with what it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// It is.
    Done,
    /// The output is full, or the share of this step is used up: ask again.
    More,
}

/// Limits that every stage of a subtask shares.
#[derive(Clone, Copy, Debug)]
pub struct StageLimits {
    /// Records in a batch.
    pub batch_records: usize,
    /// How long a batch that is not full may wait for more records.
    pub batch_age: Duration,
}

/// What a chain is handed at each call, and what it hands back beside its output.
#[derive(Debug)]
pub struct StageContext {
    /// The moment of this step.
    pub now: Moment,
    /// Limits.
    pub limits: StageLimits,
    /// The earliest moment at which stepping is worth while although nothing arrives.
    pub next_deadline: Option<Moment>,
    /// Parts of snapshots that were finished later than their barrier (prepared transactions).
    pub late_parts: Vec<(CheckpointId, OperatorPart)>,
    /// What sinks have to say to the job manager.
    pub events: Vec<TaskEvent>,
    /// Records handed to connectors by sinks.
    pub records_written: u64,
    /// The operator whose code runs now: a panic is reported with its name.
    pub operator: Arc<str>,
    /// During a snapshot: where the source of this subtask stands, if a sink wants to know.
    pub source_position: Option<SourcePosition>,
}

impl StageContext {
    /// A context for the first step.
    pub fn new(limits: StageLimits) -> Self {
        Self {
            now: Moment::ZERO,
            limits,
            next_deadline: None,
            late_parts: Vec::new(),
            events: Vec::new(),
            records_written: 0,
            operator: Arc::from(""),
            source_position: None,
        }
    }

    /// Asks to be stepped again at `moment` at the latest.
    pub fn wake_at(&mut self, moment: Moment) {
        self.next_deadline = Some(self.next_deadline.map_or(moment, |d| d.min(moment)));
    }
}

/// One operator's part of a snapshot, frozen on the slot's thread.
pub struct OperatorPart {
    /// The operator.
    pub uid: OperatorUid,
    /// Keyed state, to be written to a file off the slot's thread.
    pub keyed: Option<FrozenKeyedState>,
    /// Operator list states: name, redistribution, framed bytes.
    pub lists: Vec<(String, Redistribution, Vec<u8>)>,
    /// Whether the operator has forwarded `EndOfData`, in this attempt or in one before it (set by [`Chained`]).
    pub ended: bool,
    /// Whether the rest of the part comes later, through [`StageContext::late_parts`].
    pub comes_later: bool,
}

impl std::fmt::Debug for OperatorPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OperatorPart")
            .field("uid", &self.uid)
            .field("comes_later", &self.comes_later)
            .finish()
    }
}

/// Frozen tables of one keyed operator.
pub struct FrozenKeyedState {
    /// The key groups of the subtask.
    pub range: KeyGroupRange,
    /// Number of key groups in all.
    pub max_parallelism: MaxParallelism,
    /// Its tables.
    pub tables: Vec<Box<dyn FrozenTable>>,
}

/// What a whole chain is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageControl {
    /// Checkpoint `id` and all below are complete.
    NotifyComplete(CheckpointId),
    /// Checkpoint `id` was given up.
    NotifyAbort(CheckpointId),
    /// Orderly cancel, with the newest completed checkpoint.
    Cancel(CheckpointId),
    /// `finished` stands in the log: close everything.
    Finish,
}

/// Where a chain stands in its life. Over a chain: the conjunction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StageStatus {
    /// Transaction recovery is done.
    pub recovered: bool,
    /// After [`StageControl::Cancel`]: committed, rolled back, swept.
    pub canceled: bool,
    /// After [`StageControl::Finish`]: nothing is left to do.
    pub finished: bool,
}

impl StageStatus {
    /// A stage that never waits for the outside.
    pub const SETTLED: Self = Self { recovered: true, canceled: true, finished: true };

    /// Both hold.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            recovered: self.recovered && other.recovered,
            canceled: self.canceled && other.canceled,
            finished: self.finished && other.finished,
        }
    }
}

/// The untyped side of a stage; every call goes through the whole chain below it.
pub trait AnyStage {
    /// Goes on with what is in hand, downstream first.
    ///
    /// # Errors
    /// The failure of an operator or connector: the subtask fails.
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure>;

    /// Takes the snapshot for `barrier` and sends the barrier on. Called only when [`AnyStage::resume`] said [`Flow::Idle`].
    ///
    /// # Errors
    /// As for `resume`.
    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        parts: &mut Vec<OperatorPart>,
        cx: &mut StageContext,
    ) -> Result<(), TaskFailure>;

    /// Hands on what the job manager said.
    ///
    /// # Errors
    /// As for `resume`.
    fn control(&mut self, control: StageControl, cx: &mut StageContext) -> Result<(), TaskFailure>;

    /// Takes in what connectors have answered. `true` if there was anything.
    ///
    /// # Errors
    /// As for `resume`.
    fn poll(&mut self, cx: &mut StageContext) -> Result<bool, TaskFailure>;

    /// Where the chain stands.
    fn status(&self) -> StageStatus;

    /// Whether an operator of the chain wants to know about a source's splits.
    fn hears_splits(&self) -> bool {
        false
    }

    /// Whether a sink of the chain wants to know where its source stands at a barrier.
    fn takes_position(&self) -> bool {
        false
    }

    /// Takes notes about a source's splits, which stand in front of the next batch. Called only when [`AnyStage::resume`] said
    /// [`Flow::Idle`]. `true`: something is in hand now.
    fn note_splits(&mut self, notes: &SplitNotes, cx: &mut StageContext) -> bool {
        let _ = (notes, cx);
        false
    }
}

/// A stage that takes records of type `T`.
pub trait Stage<T>: AnyStage {
    /// Takes an element in hand. Called only when [`AnyStage::resume`] said [`Flow::Idle`].
    ///
    /// # Errors
    /// The failure of an operator or connector: the subtask fails.
    fn push(&mut self, element: StageElement<T>, cx: &mut StageContext) -> Result<(), TaskFailure>;
}

/// Records in hand, taken from the front.
#[derive(Debug)]
pub struct BatchCursor<T> {
    values: std::vec::IntoIter<T>,
    times: std::vec::IntoIter<EventTime>,
}

impl<T> BatchCursor<T> {
    /// All of a batch.
    pub fn new(batch: Batch<T>) -> Self {
        Self { values: batch.values.into_iter(), times: batch.timestamps.into_iter() }
    }

    /// The next record and its event time.
    #[inline]
    #[allow(
        clippy::should_implement_trait,
        reason = "not an iterator: it yields pairs and hands out the rest as a batch"
    )]
    pub fn next(&mut self) -> Option<(T, Option<EventTime>)> {
        let value = self.values.next()?;
        Some((value, self.times.next()))
    }

    /// The records that are left.
    #[inline]
    pub fn rest(&self) -> &[T] {
        self.values.as_slice()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.values.len() == 0
    }

    /// Everything that is left.
    pub fn take_rest(&mut self) -> Batch<T> {
        // `collect` on the taken iterator gives the allocation back where nothing was consumed yet.
        Batch {
            values: std::mem::take(&mut self.values).collect(),
            timestamps: std::mem::take(&mut self.times).collect(),
        }
    }
}

/// Where an operator puts its output.
#[derive(Debug)]
pub struct Output<T> {
    pub(crate) batch: Batch<T>,
    pub(crate) capacity: usize,
    /// Event time given to records that are emitted without one.
    pub(crate) time: Option<EventTime>,
}

impl<T> Output<T> {
    /// An empty output that counts as full at `capacity` records.
    pub fn new(capacity: usize) -> Self {
        Self { batch: Batch::default(), capacity, time: None }
    }

    /// Emits a record with the event time of the record (or timer) that is being handled.
    #[inline]
    pub fn emit(&mut self, value: T) {
        self.batch.push(value, self.time);
    }

    /// Whether the operator has to stop after the call it is in.
    #[inline]
    pub fn is_full(&self) -> bool {
        self.batch.len() >= self.capacity
    }
}

/// One operator of a chain: its loop over a batch is static, [`Chained`] makes the one `dyn` call.
pub trait Operator<In, Out>: 'static {
    /// Handles records from the front of `input` until none is left or `out` is full. An operator that stops inside a record
    /// keeps the rest of it and says [`Progress::More`].
    ///
    /// # Errors
    /// The user's error.
    fn process(&mut self, input: &mut BatchCursor<In>, out: &mut Output<Out>) -> Result<Progress, JobError>;

    /// Event time has advanced: fires timers, at most [`TIMERS_PER_STEP_MAX`] a call.
    ///
    /// # Errors
    /// The user's error.
    fn on_watermark(&mut self, watermark: EventTime, out: &mut Output<Out>) -> Result<Progress, JobError> {
        let _ = (watermark, out);
        Ok(Progress::Done)
    }

    /// The watermark to hand on for this one; `None` hands on nothing (the operator makes its own).
    fn outgoing_watermark(&mut self, watermark: EventTime) -> Option<EventTime> {
        Some(watermark)
    }

    /// A watermark this operator makes itself, after a batch.
    fn generated_watermark(&mut self) -> Option<EventTime> {
        None
    }

    /// What it does with notes about a source's splits.
    fn split_hearing(&self) -> SplitHearing {
        SplitHearing::Deaf
    }

    /// Takes notes about a source's splits, which stand in front of the next batch; [`Self::generated_watermark`] is asked
    /// afterwards.
    fn on_splits(&mut self, notes: &SplitNotes) {
        let _ = notes;
    }

    /// A change of status that this operator makes itself: it goes in front of everything that follows.
    fn generated_status(&mut self) -> Option<StreamStatus> {
        None
    }

    /// When to be told about splits again although no record comes.
    fn next_split_deadline(&self) -> Option<Moment> {
        None
    }

    /// No record follows. Called once, until [`Progress::Done`]; never again after a restore of an ended subtask.
    ///
    /// # Errors
    /// The user's error.
    fn on_end(&mut self, out: &mut Output<Out>) -> Result<Progress, JobError> {
        let _ = out;
        Ok(Progress::Done)
    }

    /// Freezes its state for a snapshot; `None` for a stateless operator.
    fn freeze(&mut self) -> Option<OperatorPart> {
        None
    }
}

/// What an operator does with notes about a source's splits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SplitHearing {
    /// They end here.
    Deaf,
    /// It hands them on: each record in is exactly one record out.
    HandsOn,
    /// It takes them.
    Hears,
}

/// Timers fired in one step at most.
pub const TIMERS_PER_STEP_MAX: usize = 1_024;
