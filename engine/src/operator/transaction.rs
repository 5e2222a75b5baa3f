//! Names of transactions, and what a server can answer about one.
//!
//! **Recovery law** (law 6). The *lineage* is the number of the claim that began it, together with the log id. Committables are
//! operator list state restored by **union**; the owner of branch *b* is `b.subtask mod parallelism` and commits it if any
//! subtask listed it; any subtask may roll back an unlisted branch of a *lower attempt*, after the listed ones are settled. No
//! writer opens a transaction and no subtask acknowledges before its recovery is done. Names are compared component by
//! component, never by string prefix.
//!
//! Owns: the name's components and their order. Does not own: how a server spells one (the connector does), when anything is
//! committed (see [`super::sink_operator`]). Runs on: plain data.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};

/// What all transactions of one sink in one attempt share.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TransactionScope {
    /// The job.
    pub job: JobName,
    /// Its commit log.
    pub log_id: LogId,
    /// The claim that began the lineage.
    pub lineage: Lineage,
    /// The sink.
    pub uid: OperatorUid,
}

/// Name of one transaction: (job, log id + lineage, operator uid, subtask, checkpoint, attempt).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct TransactionName {
    /// Job, log, lineage and sink.
    pub scope: TransactionScope,
    /// The subtask that wrote it.
    pub subtask: u32,
    /// The last barrier seen when it was opened; at a start the restored id, or 0.
    pub opened_after: CheckpointId,
    /// The attempt that wrote it.
    pub attempt: AttemptId,
}

/// The components of a name as operator state has them.
pub(super) struct StoredParts {
    pub(super) job: String,
    pub(super) log_id: String,
    pub(super) lineage: u64,
    pub(super) uid: String,
    pub(super) subtask: u32,
    pub(super) opened_after: u64,
    pub(super) attempt: u64,
}

impl From<StoredParts> for TransactionName {
    fn from(stored: StoredParts) -> Self {
        let scope = TransactionScope {
            job: JobName(stored.job),
            log_id: LogId(stored.log_id),
            lineage: Lineage(stored.lineage),
            uid: OperatorUid(stored.uid),
        };
        Self {
            scope,
            subtask: stored.subtask,
            opened_after: CheckpointId(stored.opened_after),
            attempt: AttemptId(stored.attempt),
        }
    }
}

/// Checkpoint components from here on are slots: see [`TransactionName::of_slot`].
const SLOTS_FROM: u64 = u64::MAX - u32::MAX as u64;

impl TransactionName {
    /// Name of a left-over on a server that knows transactions by slot, not by the checkpoint they were opened after. No
    /// transaction that a checkpoint lists has such a name.
    pub const fn of_slot(scope: TransactionScope, subtask: u32, slot: u32, attempt: AttemptId) -> Self {
        Self { scope, subtask, opened_after: CheckpointId(SLOTS_FROM + slot as u64), attempt }
    }

    /// The slot of such a left-over.
    pub fn slot(&self) -> Option<u32> {
        self.opened_after.0.checked_sub(SLOTS_FROM).and_then(|slot| u32::try_from(slot).ok())
    }
}

impl fmt::Display for TransactionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TransactionScope { job, log_id, lineage, uid } = &self.scope;
        if let Some(slot) = self.slot() {
            let (subtask, attempt) = (self.subtask, self.attempt);
            return write!(f, "{job}/{log_id}.{lineage}/{uid}[{subtask}] slot {slot} of attempt {attempt}");
        }
        write!(
            f,
            "{job}/{log_id}.{lineage}/{uid}[{}] after checkpoint {} of attempt {}",
            self.subtask, self.opened_after, self.attempt
        )
    }
}

/// What a server answered to the commit of one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Now.
    Committed,
    /// Before; the ledger shows it.
    AlreadyCommitted,
    /// Not decided; ask again. Holds up the later ones of the same sink subtask.
    RetryAfter {
        /// Milliseconds to wait.
        ms: u64,
        /// Why, for people.
        reason: String,
    },
    /// Neither prepared nor committed: its records are gone from the server.
    Lost {
        /// What the server knows, for people.
        reason: String,
    },
}

/// A listed transaction whose records are gone. The job fails with it; no restart strategy applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error(
    "transaction lost: {name} (closed by checkpoint {closed_by}): {reason}\n  \
     records of \"{}\" after checkpoint {} up to checkpoint {closed_by} are not in the output",
    name.scope.uid, name.opened_after
)]
pub struct LostTransaction {
    /// The transaction.
    pub name: TransactionName,
    /// The checkpoint whose barrier closed it: the records lost lie in (`name.opened_after`, `closed_by`].
    pub closed_by: CheckpointId,
    /// What the server knows.
    pub reason: String,
}
