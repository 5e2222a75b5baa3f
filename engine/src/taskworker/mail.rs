//! What job manager and subtasks say to each other.
//!
//! Every message carries the attempt; one of an older attempt is refused (law 8). Triggers, completions, aborts and
//! acknowledgements may be lost or doubled: the sender repeats them, the receiver is idempotent. Mail that assigns splits
//! and the triggers of source subtasks travel in *one numbered sequence* per subtask ([`Mail::seq`]): handled in order,
//! deduplicated, acknowledged with [`TaskEvent::MailAcked`], sent again until then. So an assignment made after the enumerator's
//! snapshot *n* is always behind trigger *n* (the split law).
//!
//! Owns: the vocabulary. Does not own: delivery. Runs on: both sides.

use serde::{Deserialize, Serialize};

use crate::api::ConnectorError;
use crate::checkpoint::manifest::OperatorSubtaskState;
use crate::element::{CheckpointBarrier, CheckpointKind};
use crate::ids::{AttemptId, CheckpointId, EntryNumber, OperatorUid, SubtaskId};
use crate::operator::LostTransaction;

/// A message to one subtask.
#[derive(Clone, Debug)]
pub struct Mail {
    /// The sender's attempt.
    pub attempt: AttemptId,
    /// Position in the subtask's numbered sequence, from 1; `None` for mail that may be lost or doubled.
    pub seq: Option<u64>,
    /// What is said.
    pub body: MailBody,
}

/// What the job manager can say to a subtask.
#[derive(Clone, Debug)]
pub enum MailBody {
    /// To source subtasks, numbered: take snapshot and send this barrier.
    Trigger(CheckpointBarrier),
    /// To source subtasks, numbered: read these splits (framed by `tidegate_state::encode_list`).
    AssignSplits {
        /// Encoded list of splits.
        splits: Vec<u8>,
    },
    /// To source subtasks, numbered: no split will follow; after the last record comes `EndOfData`.
    NoMoreSplits,
    /// Checkpoint `id` (and every one below it) is complete: its log entry exists. Repeated.
    NotifyComplete {
        /// The newest completed checkpoint.
        id: CheckpointId,
    },
    /// Checkpoint `id` was given up. Transactions are *not* rolled back because of it (law 5).
    NotifyAbort {
        /// The checkpoint.
        id: CheckpointId,
    },
    /// To every subtask, after `finished` stands in the log: send `EndOfPartition` and stop.
    Finish,
    /// Orderly cancel: commit everything ≤ `newest_completed`, roll back the rest, sweep, answer [`TaskEvent::Canceled`].
    Cancel {
        /// The newest completed checkpoint.
        newest_completed: CheckpointId,
    },
}

/// A message of one subtask to the job manager.
#[derive(Clone, Debug)]
pub struct TaskReport {
    /// The subtask's attempt.
    pub attempt: AttemptId,
    /// Who speaks.
    pub subtask: SubtaskId,
    /// What is said.
    pub event: TaskEvent,
}

/// What a subtask can say to the job manager.
#[derive(Clone, Debug)]
pub enum TaskEvent {
    /// Restore and transaction recovery are done; the subtask may take part in checkpoints.
    Recovered,
    /// Numbered mail up to `seq` was handled.
    MailAcked {
        /// The highest number handled without a gap.
        seq: u64,
    },
    /// The subtask's part of a checkpoint is durable: state uploaded, every pending committable ≤ id prepared.
    Acknowledge(SubtaskAck),
    /// The subtask cannot take part in this checkpoint; it forwarded the barrier all the same.
    Decline {
        /// The checkpoint.
        id: CheckpointId,
        /// In words, for people.
        reason: String,
    },
    /// A sink has committed everything up to `up_to` (sent whenever it advances; repeated with acknowledgements).
    Committed {
        /// The sink.
        uid: OperatorUid,
        /// Every committable of this checkpoint and below is settled.
        up_to: CheckpointId,
        /// How many transactions this subtask's sink still holds prepared.
        prepared: u32,
        /// Whether the sink has swept left-overs of lower attempts once after that (needed before `finished`).
        swept: bool,
    },
    /// A sink's recovery: what it committed and rolled back, for people.
    TransactionsRecovered {
        /// Restored transactions that were committed now; those that had been committed before do not count.
        committed: u32,
        /// Left-overs that were rolled back.
        rolled_back: u32,
    },
    /// A sink's recovery goes on without this transaction, as somebody had decided.
    TransactionGivenUp(Box<LostTransaction>),
    /// The subtask has forwarded `EndOfData`.
    Ended,
    /// After [`MailBody::Finish`]: nothing is left to do.
    Finished,
    /// After [`MailBody::Cancel`]: committed, rolled back, swept.
    Canceled,
    /// Progress since the attempt began, sent now and then.
    Progress {
        /// Records read by a source subtask, or received by another one.
        records_in: u64,
        /// Records written by its sinks.
        records_written: u64,
        /// How far its source is behind, if it tells.
        lag: Option<u64>,
    },
    /// The subtask has failed.
    Failed(TaskFailure),
}

/// One subtask's part of a checkpoint.
#[derive(Clone, Debug)]
pub struct SubtaskAck {
    /// The checkpoint.
    pub id: CheckpointId,
    /// State of each operator with a uid.
    pub operators: Vec<OperatorSubtaskState>,
    /// Whether the subtask had forwarded `EndOfData` before this barrier.
    pub ended: bool,
    /// Records that its sinks had written before this barrier, in this attempt.
    pub records_written: u64,
    /// What it cost.
    pub stats: SubtaskCheckpointStats,
}

/// Costs of one subtask's part of a checkpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskCheckpointStats {
    /// From the trigger to the first barrier, in microseconds (0 for sources).
    pub start_delay_us: u64,
    /// From the first to the last barrier, in microseconds.
    pub alignment_us: u64,
    /// On the slot's thread, in microseconds.
    pub sync_us: u64,
    /// From the end of the sync part to the acknowledgement, in microseconds.
    pub async_us: u64,
    /// Uploaded and inline bytes.
    pub size_bytes: u64,
    /// The longest step of the subtask from the snapshot to the acknowledgement, in microseconds: pages that are written for
    /// the first time after a freeze are copied.
    pub longest_step_us: u64,
}

/// Why a subtask failed.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TaskFailure {
    /// An operator returned an error or panicked; a restart may help.
    #[error("operator \"{operator}\": {message}")]
    Operator {
        /// Name of the operator.
        operator: String,
        /// The error and its sources, in words.
        message: String,
        /// Whether a restart can help: bad input and refused settings are final.
        restartable: bool,
    },
    /// A connector has found that another attempt holds the job. The attempt ends as fenced.
    #[error("operator \"{operator}\": {message}")]
    TakenOver {
        /// Name of the operator.
        operator: String,
        /// What it was about to do, in words.
        message: String,
        /// The later claim.
        by: EntryNumber,
    },
    /// A listed transaction is gone. Never restarted: the job fails and names it (law 5).
    #[error("{0}")]
    Lost(Box<LostTransaction>),
}

impl TaskFailure {
    /// What a connector reported to its operator.
    pub fn of_connector(operator: &str, error: &ConnectorError) -> Self {
        let (operator, message) = (operator.to_owned(), error.full_text());
        match error.fenced_by {
            Some(by) => Self::TakenOver { operator, message, by },
            None => Self::Operator { operator, message, restartable: error.restartable },
        }
    }
}

/// Whether this kind of checkpoint lets the job go on.
pub fn goes_on(kind: CheckpointKind) -> bool {
    matches!(kind, CheckpointKind::Checkpoint | CheckpointKind::Savepoint)
}
