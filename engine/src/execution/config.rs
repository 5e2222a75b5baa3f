//! Settings of a job's execution.
//!
//! Owns: batch, channel, restore and restart settings with their defaults. Does not own: checkpoint settings
//! ([`CheckpointConfig`]). Runs on: plain data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::checkpoint::{CheckpointConfig, CheckpointMode};
use crate::error::EngineError;
use crate::ids::CheckpointId;
use crate::jobmanager::RestartStrategy;
use crate::operator::StageLimits;

/// What a start restores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RestoreFrom {
    /// The newest checkpoint of the log, or nothing if there is none.
    #[default]
    Latest,
    /// Nothing: a new lineage begins; older checkpoints can never be restored again.
    None,
    /// This checkpoint, which must be on the line and retained. What was put out after it will be there twice.
    Rewind(CheckpointId),
}

/// How a job runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ExecutionConfig {
    /// Records in a batch; 1 to 65,536.
    pub batch_records: usize,
    /// How long a record may wait for its batch to fill, in milliseconds.
    pub batch_age_ms: u64,
    /// Threads that step subtasks; as many as there are cores where it is left out.
    pub threads: Option<usize>,
    /// Batches in flight per channel; > 0.
    pub channel_batches: u32,
    /// Checkpoints.
    pub checkpoints: CheckpointConfig,
    /// What the first start restores. Restarts restore the newest checkpoint.
    pub restore: RestoreFrom,
    /// Drop state of operators that are no longer in the job.
    pub allow_non_restored_state: bool,
    /// A cancel, or a slot after its attempt's end, may take so long, in milliseconds; then the process is ended. A cancel waits eight
    /// tenths of it for an orderly end, and has the rest for ending without one.
    pub cancellation_timeout_ms: u64,
    /// What follows a failure.
    pub restart: RestartStrategy,
}

impl Default for ExecutionConfig {
    fn default() -> Self {
        Self {
            batch_records: 1_024,
            batch_age_ms: 5,
            threads: None,
            channel_batches: 8,
            checkpoints: CheckpointConfig::default(),
            restore: RestoreFrom::Latest,
            allow_non_restored_state: false,
            cancellation_timeout_ms: 10_000,
            restart: RestartStrategy::default(),
        }
    }
}

impl ExecutionConfig {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// [`EngineError::Settings`] names the setting.
    pub fn validate(&self) -> Result<(), EngineError> {
        if !(1..=65_536).contains(&self.batch_records) {
            let message =
                format!("{} is out of range; 1 to 65536 records fit into a batch", self.batch_records);
            return Err(EngineError::Settings { setting: "batch_records", message });
        }
        if self.channel_batches == 0 {
            let message = "0 batches per channel would let nothing through; use at least 1".to_owned();
            return Err(EngineError::Settings { setting: "channel_batches", message });
        }
        let checked = self.checkpoints.validate();
        checked.map_err(|e| EngineError::Settings { setting: "checkpoints", message: e.to_string() })
    }

    /// Whether there is a log.
    pub fn has_checkpoints(&self) -> bool {
        self.checkpoints.mode != CheckpointMode::None
    }

    pub(crate) fn cancellation_timeout(&self) -> Duration {
        Duration::from_millis(self.cancellation_timeout_ms)
    }

    /// The rest of the timeout is for an end that is not orderly.
    pub(crate) fn orderly_cancel(&self) -> Duration {
        self.cancellation_timeout() / 10 * 8
    }

    pub(crate) fn limits(&self) -> StageLimits {
        StageLimits { batch_records: self.batch_records, batch_age: Duration::from_millis(self.batch_age_ms) }
    }
}
