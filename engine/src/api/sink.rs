//! Sinks as a connector writes them: in one part, or in two phases.
//!
//! Owns: the traits. Does not own: *when* anything is flushed, prepared, committed or rolled back: the one driver in
//! [`crate::operator::sink_operator`] decides that. Runs on: the I/O side ([`crate::io::Io`]); every method may wait.

use std::future::Future;

use tidegate_state::StateType;

use crate::api::preflight::{PreflightContext, PreflightResult};
use crate::api::source::{ConnectorContext, ConnectorError, SourcePosition};
use crate::clock::Moment;
use crate::element::Batch;
use crate::ids::{AttemptId, CheckpointId};
use crate::io::BoxFuture;
use crate::operator::{CommitOutcome, TransactionName};

/// A sink without transactions: what it has written stays, also when the job restores an older checkpoint (at-least-once).
pub trait Sink: Clone + Send + 'static {
    /// What it takes.
    type Record: Clone + Send + 'static;
    /// Writes for one subtask.
    type Writer: Writer<Record = Self::Record>;

    /// Every future of this sink is ready when it is first polled: it keeps or drops what it is handed, and waits for nothing. Such a
    /// sink is written to on the slot's thread, which spares the way over the I/O side; one that waits all the same fails the job.
    const NEVER_WAITS: bool = false;

    /// Refuses bad settings before anything runs.
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

    /// Tells the sink where it stands, before it is opened: the name has job, log and uid, this subtask and the attempt. For sinks that
    /// have to know sessions of earlier attempts.
    fn placed(&mut self, _name: &TransactionName, _parallelism: u32) {}

    /// Opens the writer of one subtask.
    fn open(
        &self,
        context: ConnectorContext,
        subtask: u32,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<Self>;
}

/// Writer of a [`Sink`].
pub trait Writer: Send + 'static {
    /// What it takes.
    type Record;
    /// Writes a batch.
    fn write(
        &mut self,
        batch: Batch<Self::Record>,
    ) -> impl Future<Output = Result<(), ConnectorError>> + Send;
    /// Makes everything written durable. Called inside a snapshot before the acknowledgement, and at the end.
    fn flush(&mut self) -> impl Future<Output = Result<(), ConnectorError>> + Send;
    /// When [`on_due`](Self::on_due) shall be called although no batch comes, by the context's clock; asked after every call. A writer
    /// that holds rows back writes them then. (Not asked of sinks that never wait.)
    fn due(&self) -> Option<Moment> {
        None
    }
    /// That moment has come.
    fn on_due(&mut self) -> impl Future<Output = Result<(), ConnectorError>> + Send {
        std::future::ready(Ok(()))
    }
}

/// What a two-phase sink's parts are told about themselves.
#[derive(Clone)]
pub struct TwoPhaseContext {
    /// Clock, I/O, waker.
    pub connector: ConnectorContext,
    /// Index of the subtask.
    pub subtask: u32,
    /// Number of subtasks.
    pub parallelism: u32,
    /// Transactions that the subtask may hold: max concurrent + tolerable failures + 2.
    pub places: usize,
    /// The attempt that completed the restored checkpoint; 0: nothing is restored. That attempt's recovery has dealt with what
    /// attempts before it had left.
    pub restored_attempt: AttemptId,
    /// Name template: job, log, lineage and uid, this subtask, this attempt; `opened_after` is the restored checkpoint.
    pub name: TransactionName,
}

/// Asks a sink's server what it has committed; see [`TwoPhaseSink::newest_committed`].
pub type AskCommitted = Box<
    dyn Fn(TwoPhaseContext, AttemptId) -> BoxFuture<Result<Option<CheckpointId>, ConnectorError>>
        + Send
        + Sync,
>;

/// A sink in two phases.
pub trait TwoPhaseSink: Clone + Send + 'static {
    /// What it takes.
    type Record: Clone + Send + 'static;
    /// What is needed to commit one transaction, beside its name. Operator state; restored by union.
    type Committable: StateType;
    /// Writes and prepares.
    type Writer: TwoPhaseWriter<Record = Self::Record, Committable = Self::Committable>;
    /// Commits, lists and rolls back, on a connection of its own.
    type Committer: Committer<Committable = Self::Committable>;

    /// Refuses bad settings before anything runs.
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

    /// The newest checkpoint of which the server knows a committed transaction of this sink, as [`Committer::newest_committed`] tells it, asked
    /// before a job is claimed: it must touch nothing, no session and no transaction of whoever has the job.
    fn newest_committed(
        &self,
        _context: TwoPhaseContext,
        _since: AttemptId,
    ) -> impl Future<Output = Result<Option<CheckpointId>, ConnectorError>> + Send + use<Self> {
        std::future::ready(Ok(None))
    }

    /// Whether a prepared transaction keeps rows locked that later ones may need (updates in place): such sinks run with
    /// max concurrent 1 and tolerable failures 0 (law 5).
    fn holds_locks(&self) -> bool {
        false
    }

    /// Whether rows are added to, or written over, those with the same key. With several subtasks such a sink wants a `key_by` in front
    /// of it: rows of one key that two subtasks write would wait for each other's locks, and which comes last would be chance. A job
    /// without one is refused at submit. (That it is the same key cannot be seen.)
    fn merges_by_key(&self) -> bool {
        false
    }

    /// Whether its writers want to know where the source stands, if one is in front of them in the same subtask (see
    /// [`TwoPhaseWriter::position`]).
    fn takes_position(&self) -> bool {
        false
    }

    /// Opens the committer of one subtask. It is opened first, for recovery.
    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self::Committer, ConnectorError>> + Send + use<Self>;

    /// Opens the writer of one subtask, after its recovery is done.
    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<Self>;
}

/// Writer of a [`TwoPhaseSink`]. Opens a transaction lazily, with the first record.
pub trait TwoPhaseWriter: Send + 'static {
    /// What it takes.
    type Record;
    /// What it makes at a barrier.
    type Committable: StateType;

    /// Writes a batch into the open transaction, which it opens under `name` if there is none. (`name.opened_after` is the
    /// last barrier seen, so every transaction of a subtask has a name of its own.)
    ///
    /// # Errors
    /// The driver fails the subtask; a failed statement is never repeated behind its back.
    fn write(
        &mut self,
        name: &TransactionName,
        batch: Batch<Self::Record>,
    ) -> impl Future<Output = Result<(), ConnectorError>> + Send;

    /// Tells which checkpoint's barrier closes the transaction that is prepared next, for servers that have to keep it.
    fn closing(&mut self, _barrier: crate::ids::CheckpointId) {}

    /// Tells where the source of the same subtask stood at the barrier that closes the transaction prepared next: behind the records of
    /// that transaction, and before those of the next one.
    fn position(&mut self, _position: SourcePosition) {}

    /// Flushes and prepares the open transaction: afterwards it survives this process and can be committed by another one.
    /// `None` if no record was written since the last time (an epoch without records makes no committable).
    ///
    /// # Errors
    /// The driver fails the subtask, since the records are no longer held.
    fn prepare(&mut self) -> impl Future<Output = Result<Option<Self::Committable>, ConnectorError>> + Send;

    /// When [`on_due`](Self::on_due) shall be called although no batch comes, by the context's clock; asked after every call. A writer
    /// that holds rows back puts them into the open transaction then.
    fn due(&self) -> Option<Moment> {
        None
    }

    /// That moment has come.
    ///
    /// # Errors
    /// As of [`write`](Self::write).
    fn on_due(&mut self) -> impl Future<Output = Result<(), ConnectorError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Throws the open, unprepared transaction away: orderly cancel only.
    fn discard(&mut self) -> impl Future<Output = Result<(), ConnectorError>> + Send;
}

/// One prepared transaction, as the sink's state lists it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prepared<C> {
    /// Its name.
    pub name: TransactionName,
    /// The checkpoint whose barrier closed it.
    pub closed_by: crate::ids::CheckpointId,
    /// What the connector needs.
    pub committable: C,
}

/// Committer of a [`TwoPhaseSink`].
pub trait Committer: Send + 'static {
    /// What it commits.
    type Committable: StateType;

    /// Commits one transaction. Idempotent: it may have been committed before, by this process or another one.
    ///
    /// # Errors
    /// Only for faults of the connector itself; a server that is away is [`CommitOutcome::RetryAfter`].
    fn commit(
        &mut self,
        item: &Prepared<Self::Committable>,
    ) -> impl Future<Output = Result<CommitOutcome, ConnectorError>> + Send;

    /// Lists left-overs on the server (prepared, staged or open) whose name has this sink's job, log id and uid, of any
    /// lineage, subtask and attempt. Which of them may be rolled back is the driver's decision.
    fn list(&mut self) -> impl Future<Output = Result<Vec<TransactionName>, ConnectorError>> + Send;

    /// Rolls one transaction back; one that is gone is fine.
    fn roll_back(
        &mut self,
        name: &TransactionName,
    ) -> impl Future<Output = Result<(), ConnectorError>> + Send;

    /// The newest checkpoint of which the server knows a committed transaction of this sink, in this log, in whatever lineage, of an attempt that is not below
    /// `since`; `None`: of none, or it does not keep that. A start that goes on from an older one would write the records between once more, and is refused: somebody
    /// committed by hand what no checkpoint lists, or the folder is an old copy.
    fn newest_committed(
        &mut self,
        _since: AttemptId,
    ) -> impl Future<Output = Result<Option<CheckpointId>, ConnectorError>> + Send {
        std::future::ready(Ok(None))
    }
}
