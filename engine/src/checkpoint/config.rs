//! Settings of checkpoints.
//!
//! Owns: their defaults and bounds. Does not own: where checkpoints go (the storage is a component, no setting).
//! Runs on: plain data.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What a job promises.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckpointMode {
    /// Barriers are aligned: every record counts once.
    #[default]
    ExactlyOnce,
    /// Barriers are not aligned: after a restore a record may count again.
    AtLeastOnce,
    /// No checkpoints and no log: a failure is the end.
    None,
}

/// When checkpoints are taken, and how many may fail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// What the job promises.
    pub mode: CheckpointMode,
    /// From one trigger to the next, in milliseconds; > 0.
    pub interval_ms: u64,
    /// From the end of one checkpoint to the next trigger, in milliseconds.
    pub min_pause_ms: u64,
    /// A checkpoint that takes longer is given up; > 0.
    pub timeout_ms: u64,
    /// How many may be in flight; ≥ 1.
    pub max_concurrent: u32,
    /// How many may fail in a row before the attempt fails.
    pub tolerable_failures: u32,
    /// How many completed ones are kept, the newest included; ≥ 1.
    pub retained: u32,
    /// After this time an aligning subtask goes over to unaligned; not built yet, so it must be off.
    pub alignment_timeout_ms: Option<u64>,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        Self {
            mode: CheckpointMode::ExactlyOnce,
            interval_ms: 10_000,
            min_pause_ms: 0,
            timeout_ms: 120_000,
            max_concurrent: 1,
            tolerable_failures: 3,
            retained: 3,
            alignment_timeout_ms: None,
        }
    }
}

/// A setting that cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointConfigError {
    /// A number below its bound.
    #[error("checkpoint setting {setting} must be at least {min}, and is {is}")]
    TooSmall {
        /// Its name.
        setting: &'static str,
        /// The bound.
        min: u64,
        /// The value.
        is: u64,
    },
    /// Unaligned checkpoints are not built yet.
    #[error(
        "checkpoint setting alignment_timeout_ms must be left out: unaligned checkpoints are not built yet"
    )]
    AlignmentTimeout,
}

impl CheckpointConfig {
    /// Refuses what cannot work.
    ///
    /// # Errors
    /// The setting and its bound.
    pub fn validate(&self) -> Result<(), CheckpointConfigError> {
        let at_least_one = [
            ("interval_ms", self.interval_ms),
            ("timeout_ms", self.timeout_ms),
            ("max_concurrent", u64::from(self.max_concurrent)),
            ("retained", u64::from(self.retained)),
        ];
        if let Some((setting, is)) = at_least_one.into_iter().find(|(_, is)| *is == 0) {
            return Err(CheckpointConfigError::TooSmall { setting, min: 1, is });
        }
        match self.alignment_timeout_ms {
            Some(_) => Err(CheckpointConfigError::AlignmentTimeout),
            None => Ok(()),
        }
    }

    /// These settings for a job with a sink that holds row locks: max concurrent 1 and tolerable failures 0 (law 5). An
    /// aborted checkpoint would keep its rows locked, the writer behind it would wait for them, and only a completion behind
    /// that writer would free them.
    #[must_use]
    pub fn with_locks_held(self) -> Self {
        Self { max_concurrent: 1, tolerable_failures: 0, ..self }
    }

    /// From one trigger to the next.
    pub fn interval(&self) -> Duration {
        Duration::from_millis(self.interval_ms)
    }

    /// From an end to the next trigger.
    pub fn min_pause(&self) -> Duration {
        Duration::from_millis(self.min_pause_ms)
    }

    /// Until one is given up.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// How many barriers may be out since the newest completed checkpoint: the places of a sink's transactions (max concurrent +
    /// tolerable failures + 2) without the writer's and the committer's.
    pub fn barrier_places(&self) -> u32 {
        self.max_concurrent.saturating_add(self.tolerable_failures)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_valid_and_zeros_are_not() {
        CheckpointConfig::default().validate().unwrap();
        let zero = CheckpointConfig { interval_ms: 0, ..Default::default() };
        let refused = CheckpointConfigError::TooSmall { setting: "interval_ms", min: 1, is: 0 };
        assert_eq!(zero.validate(), Err(refused));
        assert!(CheckpointConfig { alignment_timeout_ms: Some(1), ..Default::default() }.validate().is_err());
    }

    #[test]
    fn unknown_settings_are_refused_and_missing_ones_have_defaults() {
        let config: CheckpointConfig =
            serde_json::from_str(r#"{"mode":"at-least-once","retained":5}"#).unwrap();
        assert_eq!(
            (config.mode, config.retained, config.interval_ms),
            (CheckpointMode::AtLeastOnce, 5, 10_000)
        );
        assert!(serde_json::from_str::<CheckpointConfig>(r#"{"intervall_ms":5}"#).is_err());
    }
}
