//! When a two-phase sink commits: the commit law as a pure state machine.
//!
//! **Commit law** (law 5). A committable is *pending* from its flush until the server's answer "committed" or "already committed" is
//! in; handing it to a committer changes nothing. Snapshot *n* lists **all** pending committables ≤ *n*, also those of aborted and
//! subsumed checkpoints. An aborted checkpoint aborts no transaction: its committables go with the next completed one. On
//! `notify_complete(n)` every pending committable ≤ *n* is committed, in checkpoint order; "retry after" holds up the later ones.
//! Lost is never swallowed. Every barrier since the newest completed checkpoint takes one place among the transactions the sink
//! may hold, whatever its kind and however it ended.
//!
//! "Batch executed", "sink snapshot returned" and "checkpoint complete" are three events with three names: `write`, `prepared`, `complete`.
//!
//! Owns: pending committables, places, *committed ≤ m*. Does not own: connections, retries (see [`super::sink_io`]).
//! Runs on: the slot's thread. Pure: events in, lists out.

use std::collections::VecDeque;

use super::transaction::{CommitOutcome, LostTransaction, TransactionName};
use crate::api::Prepared;
use crate::ids::CheckpointId;
use crate::mutation::{self, Mutation};

/// No place is left for another transaction: too many barriers since the newest completed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{barriers} checkpoints have begun since checkpoint {newest_completed} completed, and a sink may hold only {places} \
     transactions (max concurrent + tolerable failures + 2)\n  \
     help: see why the checkpoints do not complete; more tolerable failures give more places"
)]
pub struct NoPlaceLeft {
    /// Barriers since the newest completed checkpoint.
    pub barriers: usize,
    /// The newest completed checkpoint.
    pub newest_completed: CheckpointId,
    /// Places in all.
    pub places: usize,
}

/// The commit law for one subtask of one sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CommitDriver<C> {
    pending: VecDeque<Prepared<C>>,
    newest_completed: CheckpointId,
    barriers: VecDeque<CheckpointId>,
    places: usize,
    /// Names handed to the committer whose answers are not in.
    handed: VecDeque<TransactionName>,
}

impl<C: Clone> CommitDriver<C> {
    /// Nothing pending; `places` is max concurrent + tolerable failures + 2.
    pub fn new(restored: CheckpointId, places: usize) -> Self {
        Self {
            pending: VecDeque::new(),
            newest_completed: restored,
            barriers: VecDeque::new(),
            places,
            handed: VecDeque::new(),
        }
    }

    /// A barrier passes the writer.
    ///
    /// # Errors
    /// [`NoPlaceLeft`]: the job fails with that reason.
    pub fn on_barrier(
        &mut self,
        id: CheckpointId,
        newest_completed: CheckpointId,
    ) -> Result<(), NoPlaceLeft> {
        self.on_complete(newest_completed);
        self.barriers.push_back(id);
        // Two places are the writer's and the committer's.
        if self.barriers.len() > self.places.saturating_sub(2) {
            return Err(NoPlaceLeft {
                barriers: self.barriers.len(),
                newest_completed: self.newest_completed,
                places: self.places,
            });
        }
        Ok(())
    }

    /// The writer has prepared what lay before barrier `id` (`None`: there was no record). Returns what snapshot `id` lists.
    pub fn on_prepared(&mut self, id: CheckpointId, prepared: Option<Prepared<C>>) -> Vec<Prepared<C>> {
        self.pending.extend(prepared);
        let own_only = mutation::on(Mutation::ListsOnlyOwnCheckpoint);
        self.pending
            .iter()
            .filter(|p| if own_only { p.closed_by == id } else { p.closed_by <= id })
            .cloned()
            .collect()
    }

    /// Checkpoint `id` and all below are complete; learnt from a notification or from any later barrier.
    pub fn on_complete(&mut self, id: CheckpointId) {
        if id > self.newest_completed {
            self.newest_completed = id;
            self.barriers.retain(|b| *b > id);
        }
    }

    /// Checkpoint `id` was given up. Nothing happens: its committables go with the next completed one.
    /// Returns what must be rolled back, which is nothing but under [`Mutation::RollbackOnAbort`].
    pub fn on_abort(&mut self, id: CheckpointId) -> Vec<TransactionName> {
        if !mutation::on(Mutation::RollbackOnAbort) {
            return Vec::new();
        }
        let (rolled_back, kept): (VecDeque<_>, VecDeque<_>) =
            std::mem::take(&mut self.pending).into_iter().partition(|p| p.closed_by == id);
        self.pending = kept;
        rolled_back.into_iter().map(|p| p.name).collect()
    }

    /// What to hand to the committer now, in checkpoint order; empty while it is at work.
    pub fn next_commits(&mut self) -> Vec<Prepared<C>> {
        if !self.handed.is_empty() {
            return Vec::new();
        }
        let due: Vec<_> =
            self.pending.iter().filter(|p| p.closed_by <= self.newest_completed).cloned().collect();
        self.handed = due.iter().map(|p| p.name.clone()).collect();
        if mutation::on(Mutation::PendingEndsAtHandOver) {
            self.pending.retain(|p| !self.handed.contains(&p.name));
        }
        due
    }

    /// The committer's answer for one transaction.
    ///
    /// # Errors
    /// [`LostTransaction`]: the job fails and no restart strategy applies.
    pub fn on_outcome(
        &mut self,
        name: &TransactionName,
        outcome: CommitOutcome,
    ) -> Result<(), Box<LostTransaction>> {
        let reason = match outcome {
            CommitOutcome::RetryAfter { .. } => return Ok(()),
            CommitOutcome::Committed | CommitOutcome::AlreadyCommitted => None,
            CommitOutcome::Lost { reason } => Some(reason),
        };
        self.handed.retain(|n| n != name);
        let Some(at) = self.pending.iter().position(|p| p.name == *name) else { return Ok(()) };
        let Some(item) = self.pending.remove(at) else { return Ok(()) };
        match reason {
            None => Ok(()),
            Some(reason) => {
                Err(Box::new(LostTransaction { name: item.name, closed_by: item.closed_by, reason }))
            }
        }
    }

    /// Every committable up to this checkpoint is settled.
    pub fn committed_up_to(&self) -> CheckpointId {
        match self.pending.iter().map(|p| p.closed_by).min() {
            Some(first) if first <= self.newest_completed => CheckpointId(first.0.saturating_sub(1)),
            _ => self.newest_completed,
        }
    }

    /// Whether the writer may put records into a transaction of its own beside what is prepared, and what `in_flight` barriers are about
    /// to prepare. If not, the writer waits for a commit, and with it every barrier that has records before it. (Barriers alone are
    /// bounded by [`on_barrier`](Self::on_barrier): so what holds the places is complete, and its commits wait for nobody's writer.)
    pub fn has_place(&self, in_flight: usize) -> bool {
        self.pending.len() + in_flight < self.places
    }

    /// How many transactions are prepared and not settled.
    pub fn prepared(&self) -> usize {
        self.pending.len()
    }

    /// Names of everything prepared and not settled, without forgetting it.
    pub fn pending_names(&self) -> Vec<TransactionName> {
        self.pending.iter().map(|p| p.name.clone()).collect()
    }

    /// Orderly cancel, once everything completed is settled: names to roll back, in order.
    pub fn take_uncommitted(&mut self) -> Vec<TransactionName> {
        self.pending.drain(..).map(|p| p.name).collect()
    }

    /// Whether everything up to the newest completed checkpoint is settled.
    pub fn is_settled(&self) -> bool {
        self.handed.is_empty() && self.committed_up_to() == self.newest_completed
    }
}

/// The owner rule (law 6): which restored committables this subtask commits, in checkpoint order.
pub fn owned<C: Clone>(restored: &[Prepared<C>], subtask: u32, parallelism: u32) -> Vec<Prepared<C>> {
    let dealt_out = mutation::on(Mutation::SplitListInRecovery);
    let is_mine = |p: &&Prepared<C>| dealt_out || p.name.subtask % parallelism == subtask;
    let mut mine: Vec<Prepared<C>> = restored.iter().filter(is_mine).cloned().collect();
    mine.sort_by(|a, b| (a.closed_by, &a.name).cmp(&(b.closed_by, &b.name)));
    mine.dedup_by(|a, b| a.name == b.name);
    mine
}

/// The sweep rule (law 6): which left-overs this subtask rolls back: same job, log and sink (the committer listed only those), of
/// a lower attempt, listed by nobody.
pub fn to_roll_back(
    left_overs: Vec<TransactionName>,
    listed: &[TransactionName],
    own: &TransactionName,
    parallelism: u32,
) -> Vec<TransactionName> {
    left_overs
        .into_iter()
        .filter(|n| {
            n.scope.job == own.scope.job && n.scope.log_id == own.scope.log_id && n.scope.uid == own.scope.uid
        })
        .filter(|n| {
            let unbound = mutation::on(Mutation::SweepWithoutAttemptBound) && n.attempt != own.attempt;
            let lower = n.attempt < own.attempt || unbound;
            lower && n.subtask % parallelism == own.subtask && !listed.contains(n)
        })
        .collect()
}

#[cfg(test)]
mod tests;
