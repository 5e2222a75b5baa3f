//! The one driver of two-phase sinks: the stage at the end of a chain that talks with a connector's writer and committer.
//!
//! Way of a record: [`Stage::push`] → `Write` command → connector. Way of a barrier: [`AnyStage::snapshot`] → `Prepare` command →
//! `Prepared` event → the sink's part of the snapshot (all pending committables) → acknowledgement. Way of a completion:
//! [`StageControl::NotifyComplete`], or any later barrier → `Commit` command → one answer per transaction → *committed ≤ m*.
//! Commits run on their own connection and never wait behind the writer.
//!
//! Owns: the two command queues, orderly cancel, the last sweep. Does not own: the commit law (see [`super::commit_driver`]),
//! waiting (see [`super::sink_io`]). Runs on: the slot's thread.

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_state::{Redistribution, StateType, encode_list};
use tokio::sync::mpsc;

use super::commit_driver::CommitDriver;
use super::retries::Retries;
use super::sink_io::{
    COMMANDS_MAX, CommitterCommand, EVENTS_MAX, EventSender, SinkEvent, ToRecover, WriterCommand,
    run_committer, run_writer,
};
use super::transaction::{CommitOutcome, StoredParts, TransactionName};
use super::{AnyStage, Flow, OperatorPart, Stage, StageContext, StageControl, StageElement, StageStatus};
use crate::api::{ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink};
use crate::element::{Batch, CheckpointBarrier};
use crate::ids::{AttemptId, CheckpointId};
use crate::mutation::{self, Mutation};
use crate::taskworker::mail::{TaskEvent, TaskFailure};

/// Name of the operator list state that holds a sink's pending committables.
pub const COMMITTABLES: &str = "committables";

/// One pending committable as operator state: the name's components, the closing checkpoint, the connector's part.
#[derive(Clone, Debug, tidegate_state::StateType)]
pub struct StoredCommittable<C: StateType> {
    job: String,
    log_id: String,
    lineage: u64,
    uid: String,
    subtask: u32,
    opened_after: u64,
    attempt: u64,
    closed_by: u64,
    committable: C,
}

impl<C: StateType> From<Prepared<C>> for StoredCommittable<C> {
    fn from(p: Prepared<C>) -> Self {
        let TransactionName { scope, subtask, opened_after, attempt } = p.name;
        Self {
            job: scope.job.0,
            log_id: scope.log_id.0,
            lineage: scope.lineage.0,
            uid: scope.uid.0,
            subtask,
            opened_after: opened_after.0,
            attempt: attempt.0,
            closed_by: p.closed_by.0,
            committable: p.committable,
        }
    }
}

impl<C: StateType> From<StoredCommittable<C>> for Prepared<C> {
    fn from(stored: StoredCommittable<C>) -> Self {
        let StoredCommittable { job, log_id, lineage, uid, subtask, opened_after, attempt, .. } = stored;
        let parts = StoredParts { job, log_id, lineage, uid, subtask, opened_after, attempt };
        let (closed_by, committable) = (CheckpointId(stored.closed_by), stored.committable);
        Self { name: parts.into(), closed_by, committable }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Recovering,
    Running,
    /// Cancel was asked; the open transaction is being thrown away and completed ones are being committed.
    Settling,
    Sweeping,
    Canceled,
}

/// The stage of a two-phase sink.
pub struct SinkStage<S: TwoPhaseSink> {
    name: Arc<str>,
    sink: S,
    context: TwoPhaseContext,
    driver: CommitDriver<S::Committable>,
    phase: Phase,
    cancel: bool,
    discarded: bool,
    rolling_back: bool,
    /// The last barrier seen: what the next transaction is opened after.
    last_barrier: CheckpointId,
    /// Barriers whose `Prepared` is not in, each with the barrier before it.
    barriers_seen: VecDeque<(CheckpointId, CheckpointId)>,
    ended: bool,
    in_hand: Option<Batch<S::Record>>,
    to_writer: VecDeque<WriterCommand<S::Record>>,
    to_committer: VecDeque<CommitterCommand<S::Committable>>,
    writer: mpsc::Sender<WriterCommand<S::Record>>,
    /// Until recovery is done, the writer's end of the queue.
    writer_start: Option<mpsc::Receiver<WriterCommand<S::Record>>>,
    committer: mpsc::Sender<CommitterCommand<S::Committable>>,
    events_tx: mpsc::Sender<SinkEvent<S::Committable>>,
    events: mpsc::Receiver<SinkEvent<S::Committable>>,
    prepares_in_flight: usize,
    sweep_in_flight: bool,
    swept_up_to: Option<CheckpointId>,
    reported: Option<(CheckpointId, usize, bool)>,
    retries: Retries,
}

impl<S: TwoPhaseSink> std::fmt::Debug for SinkStage<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SinkStage")
            .field("name", &self.name)
            .field("phase", &self.phase)
            .finish_non_exhaustive()
    }
}

impl<S: TwoPhaseSink> SinkStage<S> {
    /// Starts recovery.
    pub fn start(
        name: Arc<str>,
        sink: S,
        context: TwoPhaseContext,
        restored: ToRecover<S::Committable>,
        places: usize,
    ) -> Self {
        let (writer, writer_rx) = mpsc::channel(COMMANDS_MAX);
        let (committer, committer_rx) = mpsc::channel(COMMANDS_MAX);
        let (events_tx, events) = mpsc::channel(EVENTS_MAX);
        let sender = EventSender::new(events_tx.clone(), context.clone());
        context
            .connector
            .io
            .spawn("sink committer", Box::pin(run_committer(sink.clone(), restored, committer_rx, sender)));
        let restored_id = context.name.opened_after;
        Self {
            name,
            sink,
            context,
            driver: CommitDriver::new(restored_id, places),
            phase: Phase::Recovering,
            cancel: false,
            discarded: false,
            rolling_back: false,
            last_barrier: restored_id,
            barriers_seen: VecDeque::new(),
            ended: false,
            in_hand: None,
            to_writer: VecDeque::new(),
            to_committer: VecDeque::new(),
            writer,
            writer_start: Some(writer_rx),
            committer,
            events_tx,
            events,
            prepares_in_flight: 0,
            sweep_in_flight: false,
            swept_up_to: None,
            reported: None,
            retries: Retries::default(),
        }
    }

    /// Hands queued commands over as far as there is room.
    fn flush_commands(&mut self) {
        while let Some(command) = self.to_writer.pop_front() {
            if let Err(mpsc::error::TrySendError::Full(command)) = self.writer.try_send(command) {
                self.to_writer.push_front(command);
                break;
            }
        }
        while let Some(command) = self.to_committer.pop_front() {
            if let Err(mpsc::error::TrySendError::Full(command)) = self.committer.try_send(command) {
                self.to_committer.push_front(command);
                break;
            }
        }
    }

    fn write_in_hand(&mut self, cx: &mut StageContext) {
        if self.phase != Phase::Recovering && !self.to_writer.is_empty() {
            self.flush_commands();
        }
        if self.phase == Phase::Recovering || !self.to_writer.is_empty() {
            return;
        }
        if self.phase == Phase::Running && !self.driver.has_place(self.prepares_in_flight) {
            return; // every place is taken until a commit is in
        }
        let Some(batch) = self.in_hand.take() else { return };
        if self.phase != Phase::Running {
            return; // canceled: records after the newest checkpoint are dropped with their transaction
        }
        let mut name = self.own_name();
        name.opened_after = self.last_barrier;
        let records = batch.len() as u64;
        match self.writer.try_send(WriterCommand::Write(name, batch)) {
            Ok(()) => cx.records_written += records,
            Err(mpsc::error::TrySendError::Full(WriterCommand::Write(_, batch))) => {
                self.in_hand = Some(batch)
            }
            // The writer is gone: its reason arrives as an event.
            Err(_) => {}
        }
    }

    fn on_event(
        &mut self,
        event: SinkEvent<S::Committable>,
        cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        match event {
            SinkEvent::Recovered { committed, rolled_back } => self.on_recovered(committed, rolled_back, cx),
            SinkEvent::Prepared(id, committable) => self.on_prepared(id, committable, cx),
            SinkEvent::Outcome(name, outcome) => {
                if let CommitOutcome::RetryAfter { ms, reason } = &outcome {
                    self.tell_retry(&name, *ms, reason);
                }
                self.driver.on_outcome(&name, outcome).map_err(TaskFailure::Lost)?;
            }
            SinkEvent::Swept => {
                self.sweep_in_flight = false;
                self.swept_up_to = Some(self.driver.committed_up_to());
                if self.phase == Phase::Sweeping {
                    self.phase = Phase::Canceled;
                }
            }
            SinkEvent::Discarded => self.discarded = true,
            SinkEvent::RolledBack => self.rolling_back = false,
            SinkEvent::GivenUp(lost) => cx.events.push(TaskEvent::TransactionGivenUp(Box::new(lost))),
            SinkEvent::LostAtRecovery(lost) => return Err(TaskFailure::Lost(Box::new(lost))),
            SinkEvent::Failed(error) => return Err(self.failure(&error)),
        }
        Ok(())
    }

    fn tell_retry(&mut self, name: &TransactionName, retry_ms: u64, reason: &str) {
        match self.retries.count(name) {
            (tries, true) => {
                tracing::warn!(sink = %self.name, transaction = %name, tries, retry_ms, %reason, "commit will be tried again");
            }
            (tries, false) => {
                tracing::debug!(sink = %self.name, transaction = %name, tries, retry_ms, %reason, "commit will be tried again");
            }
        }
    }

    fn on_recovered(&mut self, committed: u32, rolled_back: u32, cx: &mut StageContext) {
        cx.events.push(TaskEvent::TransactionsRecovered { committed, rolled_back });
        self.phase = Phase::Running;
        if let Some(commands) = self.writer_start.take() {
            let sender = EventSender::new(self.events_tx.clone(), self.context.clone());
            let writer = run_writer(self.sink.clone(), commands, sender);
            self.context.connector.io.spawn("sink writer", Box::pin(writer));
        }
    }

    fn on_prepared(&mut self, id: CheckpointId, committable: Option<S::Committable>, cx: &mut StageContext) {
        self.prepares_in_flight -= 1;
        let mut name = self.own_name();
        name.opened_after = self.opened_after(id);
        self.barriers_seen.retain(|(barrier, _)| *barrier != id);
        let prepared = committable.map(|committable| Prepared { name, closed_by: id, committable });
        let listed = self.driver.on_prepared(id, prepared);
        let stored: Vec<StoredCommittable<S::Committable>> = listed.into_iter().map(Into::into).collect();
        cx.late_parts.push((id, self.part(Some(stored))));
    }

    fn own_name(&self) -> TransactionName {
        let mut name = self.context.name.clone();
        if mutation::on(Mutation::NameWithoutAttempt) {
            name.attempt = AttemptId(0);
        }
        name
    }

    /// The barrier before `id`: what the transaction that `id` closed was opened after.
    fn opened_after(&self, id: CheckpointId) -> CheckpointId {
        self.barriers_seen
            .iter()
            .find(|(barrier, _)| *barrier == id)
            .map_or(self.last_barrier, |(_, before)| *before)
    }

    /// A list stands in the state only if something is pending: so a sink without any may be removed from the job.
    fn part(&self, committables: Option<Vec<StoredCommittable<S::Committable>>>) -> OperatorPart {
        let comes_later = committables.is_none();
        let pending = committables.filter(|list| !list.is_empty());
        let redistribution = match mutation::on(Mutation::SplitListInRecovery) {
            true => Redistribution::Split,
            false => Redistribution::Union,
        };
        let lists = pending.map(|list| (COMMITTABLES.to_owned(), redistribution, encode_list(&list)));
        let uid = self.context.name.scope.uid.clone();
        OperatorPart { uid, keyed: None, lists: lists.into_iter().collect(), ended: false, comes_later }
    }

    /// Moves orderly cancel on.
    fn step_cancel(&mut self) {
        if !self.cancel {
            return;
        }
        match self.phase {
            Phase::Running => {
                self.in_hand = None;
                self.to_writer.retain(|c| matches!(c, WriterCommand::Prepare(..)));
                self.to_writer.push_back(WriterCommand::Discard);
                self.phase = Phase::Settling;
            }
            // The rest is rolled back without waiting for the writer: the writer may wait for a row that a prepared transaction
            // holds. What the writer prepares until it has discarded its own is rolled back in another round.
            Phase::Settling if self.driver.is_settled() && !self.rolling_back => {
                let names = self.driver.take_uncommitted();
                if !names.is_empty() {
                    self.rolling_back = true;
                    self.to_committer.push_back(CommitterCommand::RollBack(names));
                } else if self.discarded && self.prepares_in_flight == 0 {
                    self.phase = Phase::Sweeping;
                    self.to_committer.push_back(CommitterCommand::Sweep(Vec::new()));
                }
            }
            _ => {}
        }
    }

    /// Hands due transactions to the committer and says how far it came.
    fn step_commits(&mut self, cx: &mut StageContext) {
        if self.phase == Phase::Recovering {
            return;
        }
        let due = self.driver.next_commits();
        if !due.is_empty() {
            self.to_committer.push_back(CommitterCommand::Commit(due));
        }
        let up_to = self.driver.committed_up_to();
        if self.phase == Phase::Running && self.ended && self.driver.is_settled() {
            self.step_last_sweep(up_to);
        }
        let swept = self.swept_up_to == Some(up_to);
        let now = (up_to, self.driver.prepared(), swept);
        if self.reported != Some(now) {
            self.reported = Some(now);
            self.report(cx);
        }
    }

    fn step_last_sweep(&mut self, up_to: CheckpointId) {
        if !self.sweep_in_flight && self.swept_up_to != Some(up_to) {
            self.sweep_in_flight = true;
            self.to_committer.push_back(CommitterCommand::Sweep(self.driver.pending_names()));
        }
    }

    fn report(&self, cx: &mut StageContext) {
        let up_to = self.driver.committed_up_to();
        cx.events.push(TaskEvent::Committed {
            uid: self.context.name.scope.uid.clone(),
            up_to,
            prepared: u32::try_from(self.driver.prepared()).unwrap_or(u32::MAX),
            swept: self.swept_up_to == Some(up_to),
        });
    }

    fn failure(&self, error: &ConnectorError) -> TaskFailure {
        TaskFailure::of_connector(&self.name, error)
    }
}

impl<S: TwoPhaseSink> AnyStage for SinkStage<S> {
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        cx.operator = Arc::clone(&self.name);
        self.flush_commands();
        self.write_in_hand(cx);
        Ok(if self.in_hand.is_some() { Flow::Blocked } else { Flow::Idle })
    }

    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        parts: &mut Vec<OperatorPart>,
        cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        cx.operator = Arc::clone(&self.name);
        debug_assert!(
            self.in_hand.is_none() || mutation::on(Mutation::EndedSetEarly),
            "snapshot law: a barrier passed an element in hand"
        );
        self.driver.on_barrier(barrier.id, barrier.newest_completed).map_err(|e| TaskFailure::Operator {
            operator: self.name.to_string(),
            message: e.to_string(),
            restartable: false,
        })?;
        self.barriers_seen.push_back((barrier.id, self.last_barrier));
        self.last_barrier = barrier.id;
        self.prepares_in_flight += 1;
        let position = cx.source_position.clone().filter(|_| self.sink.takes_position());
        self.to_writer.push_back(WriterCommand::Prepare(barrier.id, position));
        if self.phase != Phase::Recovering {
            self.flush_commands();
        }
        parts.push(self.part(None));
        Ok(())
    }

    fn control(&mut self, control: StageControl, cx: &mut StageContext) -> Result<(), TaskFailure> {
        match control {
            StageControl::NotifyComplete(id) => {
                self.driver.on_complete(id);
                self.step_commits(cx);
                self.report(cx); // the last report may have been lost
            }
            StageControl::NotifyAbort(id) => {
                let names = self.driver.on_abort(id);
                if !names.is_empty() {
                    self.to_committer.push_back(CommitterCommand::RollBack(names));
                }
            }
            StageControl::Cancel(newest) => {
                self.driver.on_complete(newest);
                self.cancel = true;
            }
            StageControl::Finish => {}
        }
        self.flush_commands();
        Ok(())
    }

    fn poll(&mut self, cx: &mut StageContext) -> Result<bool, TaskFailure> {
        cx.operator = Arc::clone(&self.name);
        let mut any = false;
        while let Ok(event) = self.events.try_recv() {
            any = true;
            self.on_event(event, cx)?;
        }
        self.step_commits(cx);
        self.step_cancel();
        self.flush_commands();
        Ok(any)
    }

    fn takes_position(&self) -> bool {
        self.sink.takes_position()
    }

    fn status(&self) -> StageStatus {
        StageStatus {
            recovered: self.phase != Phase::Recovering,
            canceled: self.phase == Phase::Canceled,
            finished: self.driver.prepared() == 0 && self.prepares_in_flight == 0,
        }
    }
}

impl<S: TwoPhaseSink> Stage<S::Record> for SinkStage<S> {
    fn push(&mut self, element: StageElement<S::Record>, cx: &mut StageContext) -> Result<(), TaskFailure> {
        debug_assert!(self.in_hand.is_none(), "an element was pushed before the last was done");
        match element {
            StageElement::Records(batch) => {
                self.in_hand = Some(batch);
                self.write_in_hand(cx);
            }
            StageElement::Watermark(_) | StageElement::Status(_) => {}
            StageElement::EndOfData => self.ended = true,
        }
        Ok(())
    }
}
