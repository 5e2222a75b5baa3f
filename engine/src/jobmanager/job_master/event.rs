//! What a job master is told, and what it wants done.
//!
//! Owns: the vocabulary. Does not own: delivery. Runs on: plain data.

use crate::api::source::{AnyFound, ConnectorError};
use crate::checkpoint::cleaner::CleanPlan;
use crate::checkpoint::commit_log::{LogEntry, Settled};
use crate::checkpoint::stats::CheckpointStats;
use crate::ids::{CheckpointId, EntryNumber, SubtaskId, VertexId};
use crate::jobmanager::attempt_end::AttemptEnd;
use crate::operator::LostTransaction;
use crate::taskworker::mail::{Mail, TaskReport};

/// Something that happened.
pub enum MasterEvent {
    /// The subtasks are being built; begin.
    Start,
    /// A subtask speaks.
    Task(TaskReport),
    /// A put is certain, one way or the other.
    EntrySettled {
        /// The number that [`MasterAction::Append`] gave.
        number: EntryNumber,
        /// How it ended.
        outcome: Settled,
    },
    /// A discovery has ended.
    Found {
        /// The source's vertex.
        vertex: VertexId,
        /// What it found.
        result: Result<AnyFound, ConnectorError>,
    },
    /// A person speaks.
    Control(Control),
    /// [`MasterAction::Clean`] was carried out.
    Cleaned {
        /// Entries that are gone together with their files. Others are tried again with the next cleaning.
        entries: Vec<EntryNumber>,
    },
    /// The moment of [`super::JobMaster::next_timer`] has come.
    Tick,
}

/// What a person can ask of a running job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// Stop in order.
    Cancel,
    /// Take a checkpoint as soon as the bounds allow it.
    TriggerCheckpoint,
}

/// Something to do. Actions are carried out in order; nothing is awaited between them.
#[derive(Debug)]
pub enum MasterAction {
    /// Send a mail; it may be lost.
    Mail {
        /// To whom.
        to: SubtaskId,
        /// What.
        mail: Mail,
    },
    /// Put an entry with [`crate::checkpoint::commit_log::LogClient::append`]; answered by [`MasterEvent::EntrySettled`].
    Append {
        /// Exactly here.
        number: EntryNumber,
        /// What.
        entry: LogEntry,
    },
    /// Delete with [`crate::checkpoint::commit_log::LogClient::clean`]; answered by [`MasterEvent::Cleaned`].
    Clean(CleanPlan),
    /// Run [`super::JobMaster::discover`]; answered by [`MasterEvent::Found`].
    Discover {
        /// The source's vertex.
        vertex: VertexId,
    },
    /// The attempt is over; no action follows.
    End(AttemptEnd),
    /// Something for people.
    Notice(MasterNotice),
}

/// Something that people may want to see. Nothing depends on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MasterNotice {
    /// Every subtask has restored its state and settled its transactions.
    Recovered {
        /// Restored transactions that the sinks committed now; those that had been committed before do not count.
        committed: u64,
        /// Left-overs of lower attempts that they rolled back.
        rolled_back: u64,
    },
    /// A listed transaction is lost, and the job goes on without it, as somebody had decided.
    TransactionGivenUp(Box<LostTransaction>),
    /// A checkpoint is complete.
    CheckpointCompleted(CheckpointStats),
    /// A checkpoint was given up.
    CheckpointFailed(CheckpointStats),
    /// All two-phase sinks have committed what this checkpoint lists, and what those before it list.
    Committed {
        /// The checkpoint.
        up_to: CheckpointId,
    },
    /// Every subtask has ended; the last checkpoint follows.
    AllEnded,
    /// Progress of this attempt.
    Progress {
        /// Read by the sources.
        records_read: u64,
        /// Written by the sinks.
        records_written: u64,
        /// Transactions that the sinks hold prepared, as they last said.
        prepared: u32,
        /// How far the sources are behind, as they last said; `None`: none of them tells.
        lag: Option<u64>,
    },
}
