//! The I/O side of a two-phase sink: one future that writes and prepares, one that commits, lists and rolls back.
//!
//! Owns: the connector's writer and committer, the retry of "retry after", the order of recovery: the restored committables this
//! subtask owns are committed, then left-overs are swept, and only then a writer opens (law 6). Does not own: *what* may be
//! committed or rolled back (see [`super::commit_driver`]). Runs on: [`crate::io::Io`]. Talks with the slot through bounded channels.

use std::time::Duration;

use tidegate_state::fault_point;
use tokio::sync::mpsc;

use super::commit_driver::{owned, to_roll_back};
use super::next_command::{Next, next};
use super::start_behind;
use super::transaction::{CommitOutcome, TransactionName};
use crate::api::{
    Committer, ConnectorContext, ConnectorError, Prepared, SourcePosition, TwoPhaseContext, TwoPhaseSink,
    TwoPhaseWriter,
};
use crate::element::Batch;
use crate::ids::{AttemptId, CheckpointId};
use crate::io::unpanicked;
use crate::mutation::{self, Mutation};

/// Commands in flight between a slot and a writer or committer.
pub const COMMANDS_MAX: usize = 4;
/// Events in flight back.
pub const EVENTS_MAX: usize = 64;

/// What the slot asks of the writer.
#[derive(Debug)]
pub enum WriterCommand<T> {
    /// Write into the open transaction, opening it under this name if need be.
    Write(TransactionName, Batch<T>),
    /// Prepare what was written since the last time; the source in front stands there.
    Prepare(CheckpointId, Option<SourcePosition>),
    /// Throw the open transaction away.
    Discard,
}

/// What the slot asks of the committer.
#[derive(Debug)]
pub enum CommitterCommand<C> {
    /// Commit these in order.
    Commit(Vec<Prepared<C>>),
    /// Roll back left-overs of lower attempts that are not among these.
    Sweep(Vec<TransactionName>),
    /// Roll back these.
    RollBack(Vec<TransactionName>),
}

/// What the I/O side tells the slot.
#[derive(Debug)]
pub enum SinkEvent<C> {
    /// Recovery is done: how many were committed and rolled back.
    Recovered {
        /// Restored committables that were committed now; those that had been before do not count.
        committed: u32,
        /// Left-overs that were rolled back.
        rolled_back: u32,
    },
    /// Everything before barrier `id` is prepared.
    Prepared(CheckpointId, Option<C>),
    /// Answer to the commit of one transaction.
    Outcome(TransactionName, CommitOutcome),
    /// A sweep is done.
    Swept,
    /// The open transaction is thrown away.
    Discarded,
    /// The listed transactions are rolled back.
    RolledBack,
    /// A restored transaction is gone.
    LostAtRecovery(super::LostTransaction),
    /// A restored transaction is gone, and somebody had decided to go on without it.
    GivenUp(super::LostTransaction),
    /// The connector failed.
    Failed(ConnectorError),
}

/// What a sink's recovery has to settle.
#[derive(Debug)]
pub struct ToRecover<C> {
    /// The union of what all subtasks listed.
    pub listed: Vec<Prepared<C>>,
    /// Transactions that somebody decided to go on without, should they be lost.
    pub forgotten: Vec<TransactionName>,
    /// What attempts below this one committed, behind the checkpoint that is restored, somebody has decided to have once more.
    pub rewound_at: AttemptId,
}

/// The slot is gone: the future ends.
struct SlotGone;

/// Sends events and wakes the slot.
pub struct EventSender<C> {
    tx: mpsc::Sender<SinkEvent<C>>,
    context: TwoPhaseContext,
}

impl<C> EventSender<C> {
    /// Sends on `tx`.
    pub fn new(tx: mpsc::Sender<SinkEvent<C>>, context: TwoPhaseContext) -> Self {
        Self { tx, context }
    }

    async fn send(&self, event: SinkEvent<C>) -> Result<(), SlotGone> {
        self.tx.send(event).await.map_err(|_| SlotGone)?;
        self.context.connector.waker.wake();
        Ok(())
    }

    async fn fail(&self, error: ConnectorError) {
        let _ = self.send(SinkEvent::Failed(error)).await;
    }
}

enum Stop {
    Gone,
    Failed(ConnectorError),
    Lost(super::LostTransaction),
}

impl Stop {
    /// A panic (of a function that makes a column, say) fails the subtask as one on the slot does.
    fn of(ended: Result<Result<(), Self>, String>) -> Self {
        match ended {
            Ok(Ok(())) => Self::Gone,
            Ok(Err(stop)) => stop,
            Err(panic) => Self::Failed(ConnectorError::transient(panic)),
        }
    }
}

impl From<SlotGone> for Stop {
    fn from(_: SlotGone) -> Self {
        Self::Gone
    }
}

impl From<ConnectorError> for Stop {
    fn from(error: ConnectorError) -> Self {
        Self::Failed(error)
    }
}

/// Runs the writer until the slot goes away or the connector fails.
pub async fn run_writer<S: TwoPhaseSink>(
    sink: S,
    mut commands: mpsc::Receiver<WriterCommand<S::Record>>,
    events: EventSender<S::Committable>,
) {
    let ended = unpanicked(write_loop(sink, &mut commands, &events)).await;
    if let Stop::Failed(error) = Stop::of(ended) {
        events.fail(error).await;
    }
}

async fn write_loop<S: TwoPhaseSink>(
    sink: S,
    commands: &mut mpsc::Receiver<WriterCommand<S::Record>>,
    events: &EventSender<S::Committable>,
) -> Result<(), Stop> {
    let opening = sink.open_writer(events.context.clone());
    drop(sink);
    let mut writer = opening.await?;
    loop {
        let command = match next(commands, writer.due(), &events.context.connector).await {
            Next::Command(command) => command,
            Next::Due => {
                writer.on_due().await?;
                continue;
            }
            Next::Gone => return Ok(()),
        };
        // A place for another command is free again.
        events.context.connector.waker.wake();
        match command {
            WriterCommand::Write(name, batch) => {
                fault_point!("sink.write.before");
                writer.write(&name, batch).await?;
                fault_point!("sink.write.after");
            }
            WriterCommand::Prepare(id, position) => {
                fault_point!("sink.prepare.before");
                writer.closing(id);
                if let Some(position) = position {
                    writer.position(position);
                }
                let committable = writer.prepare().await?;
                fault_point!("sink.prepare.after");
                events.send(SinkEvent::Prepared(id, committable)).await?;
            }
            WriterCommand::Discard => {
                writer.discard().await?;
                events.send(SinkEvent::Discarded).await?;
            }
        }
    }
}

/// Recovers, then runs the committer until the slot goes away or the connector fails.
pub async fn run_committer<S: TwoPhaseSink>(
    sink: S,
    restored: ToRecover<S::Committable>,
    mut commands: mpsc::Receiver<CommitterCommand<S::Committable>>,
    events: EventSender<S::Committable>,
) {
    let ended = unpanicked(commit_loop(sink, restored, &mut commands, &events)).await;
    match Stop::of(ended) {
        Stop::Gone => {}
        Stop::Failed(error) => events.fail(error).await,
        Stop::Lost(lost) => {
            let _ = events.send(SinkEvent::LostAtRecovery(lost)).await;
        }
    }
}

async fn commit_loop<S: TwoPhaseSink>(
    sink: S,
    restored: ToRecover<S::Committable>,
    commands: &mut mpsc::Receiver<CommitterCommand<S::Committable>>,
    events: &EventSender<S::Committable>,
) -> Result<(), Stop> {
    let opening = sink.open_committer(events.context.clone());
    drop(sink);
    let mut committer = opening.await?;
    recover(&mut committer, restored, events).await?;
    while let Some(command) = commands.recv().await {
        events.context.connector.waker.wake();
        match command {
            CommitterCommand::Commit(items) => {
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        fault_point!("sink.commit.between");
                    }
                    let outcome = commit_one(&mut committer, item, events).await?;
                    events.send(SinkEvent::Outcome(item.name.clone(), outcome)).await?;
                }
            }
            CommitterCommand::Sweep(listed) => {
                sweep(&mut committer, &listed, events).await?;
                events.send(SinkEvent::Swept).await?;
            }
            CommitterCommand::RollBack(names) => {
                roll_back(&mut committer, &names).await?;
                events.send(SinkEvent::RolledBack).await?;
            }
        }
    }
    Ok(())
}

/// Recovery in the order of law 6: listed ones first, then the sweep; the writer opens after that.
async fn recover<C: Committer>(
    committer: &mut C,
    restored: ToRecover<C::Committable>,
    events: &EventSender<C::Committable>,
) -> Result<(), Stop> {
    let ToRecover { mut listed, forgotten, rewound_at } = restored;
    fault_point!("sink.recover.before");
    let context = &events.context;
    refuse_if_ahead(committer, context, rewound_at).await?;
    if mutation::on(Mutation::SweepBeforeCommit) {
        sweep(committer, &[], events).await?;
    }
    let mine = owned(&listed, context.subtask, context.parallelism);
    let mut committed = 0;
    for (index, item) in mine.iter().enumerate() {
        if index > 0 {
            fault_point!("sink.commit.between");
        }
        match commit_one(committer, item, events).await? {
            CommitOutcome::Committed => committed += 1,
            CommitOutcome::Lost { reason } => {
                let (name, closed_by) = (item.name.clone(), item.closed_by);
                let lost = super::LostTransaction { name, closed_by, reason };
                if !forgotten.contains(&lost.name) {
                    return Err(Stop::Lost(lost));
                }
                // What the server may still have of it is a left-over now.
                listed.retain(|other| other.name != lost.name);
                events.send(SinkEvent::GivenUp(lost)).await?;
            }
            CommitOutcome::AlreadyCommitted | CommitOutcome::RetryAfter { .. } => {}
        }
    }
    let listed: Vec<TransactionName> = listed.into_iter().map(|p| p.name).collect();
    let rolled_back = sweep(committer, &listed, events).await?;
    fault_point!("sink.recover.after");
    events.send(SinkEvent::Recovered { committed, rolled_back }).await?;
    Ok(())
}

/// What was committed behind the checkpoint that is restored would be written once more.
async fn refuse_if_ahead<C: Committer>(
    committer: &mut C,
    context: &TwoPhaseContext,
    rewound_at: AttemptId,
) -> Result<(), ConnectorError> {
    let restored = context.name.opened_after;
    let committed = match context.subtask {
        0 => committer.newest_committed(rewound_at).await?,
        _ => None,
    };
    let Some(committed) = committed.filter(|committed| *committed > restored) else { return Ok(()) };
    let folder = context.connector.claim.folder();
    Err(ConnectorError::fatal(start_behind::refusal(committed, restored, folder.as_deref())))
}

/// Commits one transaction, for as long as the answer is "retry after" and no longer than a checkpoint may take; then the attempt
/// fails, and the next one's recovery tries again: whether the job goes on is its restart strategy's affair.
async fn commit_one<C: Committer>(
    committer: &mut C,
    item: &Prepared<C::Committable>,
    events: &EventSender<C::Committable>,
) -> Result<CommitOutcome, Stop> {
    let ConnectorContext { clock, io, checkpoint_timeout: patience, .. } = &events.context.connector;
    let begun = clock.now();
    loop {
        fault_point!("sink.commit.before");
        let outcome = committer.commit(item).await?;
        fault_point!("sink.commit.after");
        let CommitOutcome::RetryAfter { ms, reason } = &outcome else { return Ok(outcome) };
        if clock.now().saturating_sub(begun) >= *patience {
            return Err(Stop::Failed(commit_in_vain(&item.name, *patience, reason)));
        }
        let pause = Duration::from_millis(*ms);
        events.send(SinkEvent::Outcome(item.name.clone(), outcome)).await?;
        io.sleep(pause).await;
    }
}

fn commit_in_vain(name: &TransactionName, patience: Duration, reason: &str) -> ConnectorError {
    ConnectorError::transient(format!(
        "the commit of {name} was tried for the checkpoint timeout ({} ms) in vain: {reason}\n  \
         help: nothing is lost: it is prepared, and the next attempt commits it first; let the cause end, or raise the checkpoint timeout",
        patience.as_millis()
    ))
}

async fn sweep<C: Committer>(
    committer: &mut C,
    listed: &[TransactionName],
    events: &EventSender<C::Committable>,
) -> Result<u32, Stop> {
    let left_overs = committer.list().await?;
    let names = to_roll_back(left_overs, listed, &events.context.name, events.context.parallelism);
    roll_back(committer, &names).await?;
    Ok(u32::try_from(names.len()).unwrap_or(u32::MAX))
}

async fn roll_back<C: Committer>(committer: &mut C, names: &[TransactionName]) -> Result<(), Stop> {
    for name in names {
        fault_point!("sink.rollback.before");
        committer.roll_back(name).await?;
        fault_point!("sink.rollback.after");
    }
    Ok(())
}
