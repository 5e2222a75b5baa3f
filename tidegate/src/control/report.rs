//! What a job reports of itself, its checkpoints and its end.
//!
//! Owns: the fields, for both sides, and how they come from the engine's records. Does not own: when they are sent
//! ([`super::protocol`]). Runs on: plain data.

use std::cmp::Reverse;

use serde::{Deserialize, Serialize};

use crate::engine::checkpoint::stats::{CheckpointOutcome, SubtaskCosts};
use crate::engine::execution::control::{CheckpointRecord, JobEnd, JobPhase};
use crate::engine::jobmanager::plan::JobPlan;

/// A running job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobReport {
    /// Its name.
    pub job: String,
    /// Its process.
    pub pid: u32,
    /// Version of Tidegate in that process.
    pub tidegate: String,
    /// Where it stands.
    pub state: JobState,
    /// Its checkpoint folder, if it takes checkpoints.
    pub checkpoint_folder: Option<String>,
    /// Where it answers.
    pub control: Vec<String>,
    /// When the process began to run it, in milliseconds since 1970.
    pub since_ms: i64,
    /// The newest attempt: the number of its claim.
    pub attempt: Option<u64>,
    /// Attempts made by this process.
    pub attempts: u32,
    /// The checkpoint that the newest attempt restored.
    pub restored: Option<u64>,
    /// Records read so far, those before the restored checkpoint included.
    pub records_in: u64,
    /// Records between what its sources have read and the end of what they read; not there where no source tells it.
    #[serde(default)]
    pub lag: Option<u64>,
    /// Transactions that the sinks hold prepared.
    pub prepared: u32,
    /// Records out per 1,000 records in, over the last minute, of the sinks that wrote most again after restarts.
    #[serde(default)]
    pub out_per_1000_in: Option<u64>,
    /// The newest completed checkpoint.
    pub newest_checkpoint: Option<u64>,
    /// Checkpoints completed by this process.
    pub checkpoints: u64,
    /// Checkpoints given up by this process.
    pub checkpoints_failed: u64,
    /// Why the last attempt failed, if one did.
    pub last_failure: Option<String>,
}

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobState {
    /// Claiming its folder, or restoring.
    Starting,
    /// Working.
    Running,
    /// Failed, and about to start again.
    Restarting,
    /// Being stopped in order.
    Canceling,
    /// Over.
    Over,
    /// No job: its folder is being checked.
    Checking,
    /// Its process is stopped by a signal: whoever lists it says so in its place.
    Stopped,
}

impl JobState {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Restarting => "restarting",
            Self::Canceling => "canceling",
            Self::Over => "over",
            Self::Checking => "checking",
            Self::Stopped => "stopped",
        }
    }
}

impl From<JobPhase> for JobState {
    fn from(phase: JobPhase) -> Self {
        match phase {
            JobPhase::Starting => Self::Starting,
            JobPhase::Running => Self::Running,
            JobPhase::Restarting => Self::Restarting,
            JobPhase::Canceling => Self::Canceling,
            JobPhase::Over => Self::Over,
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub(crate) enum EndReport {
    /// All input is read, everything is committed.
    Finished,
    /// Stopped.
    Canceled {
        /// In order: what the newest checkpoint lists is committed. Else the run had not begun, and the next start does that.
        #[serde(default = "in_order")]
        settled: bool,
    },
    /// Taken over by another process.
    Fenced,
    /// Failed.
    Failed {
        /// Why.
        error: String,
    },
}

/// What a job of an earlier version means by a cancel without more words.
fn in_order() -> bool {
    true
}

impl From<JobEnd> for EndReport {
    fn from(end: JobEnd) -> Self {
        match end {
            JobEnd::Finished => Self::Finished,
            JobEnd::Canceled => Self::Canceled { settled: true },
            JobEnd::CanceledUnbegun => Self::Canceled { settled: false },
            JobEnd::Fenced => Self::Fenced,
            JobEnd::Failed { error } => Self::Failed { error },
        }
    }
}

/// A checkpoint that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointReport {
    /// Its id.
    pub id: u64,
    /// The attempt that took it.
    pub attempt: u64,
    /// Whether its entry stands in the log.
    pub complete: bool,
    /// Why it was given up, in words.
    pub reason: Option<String>,
    /// Number of its log entry.
    pub entry: Option<u64>,
    /// When it ended, in milliseconds since 1970.
    pub ended_at_ms: i64,
    /// From the trigger to the entry, or to the failure, in microseconds.
    pub end_to_end_us: u64,
    /// Bytes of state of those that acknowledged.
    pub size_bytes: u64,
    /// How many subtasks were asked.
    pub asked: usize,
    /// Those that acknowledged, the slowest first.
    pub subtasks: Vec<SubtaskReport>,
    /// Those that did not.
    pub missing: Vec<String>,
}

/// One subtask's part of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubtaskReport {
    /// Its name and index.
    pub subtask: String,
    /// From the trigger to its acknowledgement, in microseconds.
    pub duration_us: u64,
    /// From the trigger to the first barrier, in microseconds.
    pub start_delay_us: u64,
    /// From the first to the last barrier, in microseconds.
    pub alignment_us: u64,
    /// On the slot's thread, in microseconds.
    pub sync_us: u64,
    /// Off it, until everything was stored and prepared, in microseconds.
    pub async_us: u64,
    /// Its longest step from the snapshot to the acknowledgement, in microseconds.
    pub longest_step_us: u64,
    /// Bytes of its state.
    pub size_bytes: u64,
}

impl CheckpointReport {
    /// A record of the engine, with the names of the job's subtasks.
    pub(crate) fn of(record: &CheckpointRecord, plan: &JobPlan) -> Self {
        let stats = &record.stats;
        let (reason, entry) = match &stats.outcome {
            CheckpointOutcome::Complete { entry } => (None, Some(entry.0)),
            CheckpointOutcome::Failed(reason) => (Some(reason.in_words(plan)), None),
        };
        let mut subtasks: Vec<_> = stats.subtasks.iter().map(|part| SubtaskReport::of(part, plan)).collect();
        subtasks.sort_by_key(|part| Reverse(part.duration_us));
        Self {
            id: stats.id.0,
            attempt: record.attempt.0,
            complete: entry.is_some(),
            reason,
            entry,
            ended_at_ms: record.ended_at_ms,
            end_to_end_us: micros(stats.end_to_end),
            size_bytes: stats.size_bytes,
            asked: stats.asked,
            subtasks,
            missing: stats.missing.iter().map(|subtask| plan.subtask_name(*subtask)).collect(),
        }
    }
}

impl SubtaskReport {
    fn of(part: &SubtaskCosts, plan: &JobPlan) -> Self {
        Self {
            subtask: plan.subtask_name(part.subtask),
            duration_us: micros(part.after),
            start_delay_us: part.costs.start_delay_us,
            alignment_us: part.costs.alignment_us,
            sync_us: part.costs.sync_us,
            async_us: part.costs.async_us,
            longest_step_us: part.costs.longest_step_us,
            size_bytes: part.costs.size_bytes,
        }
    }
}

fn micros(span: std::time::Duration) -> u64 {
    u64::try_from(span.as_micros()).unwrap_or(u64::MAX)
}
