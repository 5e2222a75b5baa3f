//! Settings of a run: each a flag, an environment variable, and a key of a settings file. A flag wins over the variable, that one
//! over the file, the file over the default.
//!
//! Owns: names, defaults, and which settings contradict each other.
//! Does not own: the layers ([`layers`], [`file`]), the forms of single values ([`restore`], [`restart`]), what the settings do
//! ([`crate::engine::execution::ExecutionConfig`]).
//! Runs on: the main thread, while flags are read. Pure, but for reading the settings file.

mod error;
mod file;
mod layers;
mod restart;
mod restore;

#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, ValueEnum};

pub use self::error::SettingsError;
pub use self::file::SettingsFileError;
pub use self::layers::{EffectiveSetting, Origin, RunSettings};
pub use self::restart::{Restart, RestartError};
pub use self::restore::{Restore, RestoreError};
use crate::control::ControlAddress;
use crate::duration::parse_duration;
use crate::engine::checkpoint::{CheckpointConfig, CheckpointMode};
use crate::engine::execution::{ExecutionConfig, RestoreFrom};
use crate::engine::ids::CheckpointId;
use crate::engine::jobmanager::RestartStrategy;
pub(crate) use crate::state::local_folder;

/// The values of the settings, whichever layer they come from. [`RunSettings`] reads them.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Settings")]
pub struct SettingValues {
    /// A TOML file with settings: their names without --, as in checkpoint-interval = "1s".
    #[arg(long, env = "TIDEGATE_SETTINGS", value_name = "FILE")]
    pub settings: Option<PathBuf>,
    /// The folder of the checkpoints: a path, file:///path, or s3://bucket/prefix; needed unless --mode none.
    #[arg(long, env = "TIDEGATE_CHECKPOINTS", value_name = "URL")]
    pub checkpoints: Option<String>,
    /// Between the triggers of two checkpoints.
    #[arg(long, env = "TIDEGATE_CHECKPOINT_INTERVAL", value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub checkpoint_interval: Duration,
    /// A checkpoint that takes longer is given up.
    #[arg(long, env = "TIDEGATE_CHECKPOINT_TIMEOUT", value_name = "DURATION", default_value = "2min", value_parser = parse_duration)]
    pub checkpoint_timeout: Duration,
    /// How many checkpoints in a row may fail before the attempt does.
    #[arg(long, env = "TIDEGATE_TOLERABLE_FAILURES", value_name = "N", default_value_t = 3)]
    pub tolerable_failures: u32,
    /// How many completed checkpoints are kept.
    #[arg(long, env = "TIDEGATE_RETAINED", value_name = "N", default_value_t = 3, value_parser = retained)]
    pub retained: u32,
    /// What a crash may do to the output.
    #[arg(long, env = "TIDEGATE_MODE", value_enum, default_value_t = Mode::ExactlyOnce)]
    pub mode: Mode,
    /// Where state is kept while the job runs.
    #[arg(long, env = "TIDEGATE_BACKEND", value_enum, default_value_t = Backend::Hashmap)]
    pub backend: Backend,
    /// Parallel subtasks of each operator.
    #[arg(long, env = "TIDEGATE_PARALLELISM", value_name = "N", default_value_t = 1, value_parser = parallelism)]
    pub parallelism: u32,
    /// Number of key groups: the highest parallelism this job can ever have. It cannot change once there is state.
    #[arg(long, env = "TIDEGATE_MAX_PARALLELISM", value_name = "N", default_value_t = 128, value_parser = max_parallelism)]
    pub max_parallelism: u32,
    /// What follows a failure: none, or fixed-delay, exponential-delay or failure-rate, with their parts as in
    /// fixed-delay,attempts=3,delay=1s [default: exponential-delay,initial=100ms,max=60s,reset-after=10min].
    #[arg(long, env = "TIDEGATE_RESTART", value_name = "STRATEGY")]
    pub restart: Option<Restart>,
    /// Where to begin: latest, none, or a checkpoint of this folder as URL#id.
    #[arg(long, env = "TIDEGATE_RESTORE", value_name = "latest|none|URL#id", default_value = "latest")]
    pub restore: Restore,
    /// Allow --restore URL#id, although outputs made since that checkpoint will appear twice.
    #[arg(long, env = "TIDEGATE_REWIND", action = ArgAction::Set, value_parser = truth, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false")]
    pub rewind: bool,
    /// Start although the job of this checkpoint folder still answers; that one ends at its next checkpoint.
    #[arg(long, env = "TIDEGATE_TAKE_OVER", action = ArgAction::Set, value_parser = truth, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false")]
    pub take_over: bool,
    /// Drop state of operators that are no longer in the job.
    #[arg(long, env = "TIDEGATE_ALLOW_NON_RESTORED_STATE", action = ArgAction::Set, value_parser = truth, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false")]
    pub allow_non_restored_state: bool,
    /// Where the running job answers `tidegate`, besides the socket in its checkpoint folder: unix:PATH, or 127.0.0.1:PORT (0: a
    /// free port).
    #[arg(long, env = "TIDEGATE_CONTROL", value_name = "ADDR")]
    pub control: Option<ControlAddress>,
    /// Allow --control at an address that other machines reach: whoever reaches it can cancel the job.
    #[arg(long, env = "TIDEGATE_CONTROL_REMOTE", action = ArgAction::Set, value_parser = truth, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false")]
    pub control_remote: bool,
    /// Print one JSON object per line instead of text.
    #[arg(long, env = "TIDEGATE_JSON", action = ArgAction::Set, value_parser = truth, num_args = 0..=1, require_equals = true,
        default_value = "false", default_missing_value = "true", hide_default_value = true, hide_possible_values = true, value_name = "true|false")]
    pub json: bool,
}

/// `--backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Backend {
    /// Typed tables in memory; full snapshots.
    Hashmap,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Aligned checkpoints; sinks commit in two phases.
    ExactlyOnce,
    /// Checkpoints without alignment: after a restore a record may count again.
    AtLeastOnce,
    /// No checkpoints: what goes wrong without them.
    None,
}

fn truth(text: &str) -> Result<bool, String> {
    match text {
        "true" | "1" => Ok(true),
        "false" | "0" => Ok(false),
        _ => Err("write true or false".to_owned()),
    }
}

fn parallelism(text: &str) -> Result<u32, String> {
    at_least_one(text, "each operator needs at least 1 subtask")
}

fn max_parallelism(text: &str) -> Result<u32, String> {
    at_least_one(text, "at least 1 key group is needed")
}

fn retained(text: &str) -> Result<u32, String> {
    at_least_one(text, "the newest checkpoint is always kept, so this is at least 1")
}

fn at_least_one(text: &str, why: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(0) => Err(why.to_owned()),
        Ok(number) => Ok(number),
        Err(_) => Err(format!("write a whole number from 1 to {}", u32::MAX)),
    }
}

impl SettingValues {
    /// Checks the settings against each other.
    ///
    /// # Errors
    /// [`SettingsError`]; exit status 2.
    pub fn check(&self) -> Result<(), SettingsError> {
        if self.rewind && !matches!(self.restore, Restore::Checkpoint { .. }) {
            return Err(SettingsError::RewindWithoutCheckpoint);
        }
        match (self.mode, &self.checkpoints) {
            (Mode::None, Some(_)) => return Err(SettingsError::CheckpointsWithoutMode),
            (Mode::ExactlyOnce | Mode::AtLeastOnce, None) => return Err(SettingsError::NoCheckpoints),
            (_, Some(url)) if url.trim().is_empty() => return Err(SettingsError::NoCheckpoints),
            _ => {}
        }
        if self.checkpoints.as_ref().is_some_and(|url| url.starts_with("memory://")) {
            return Err(SettingsError::CheckpointsInMemory);
        }
        if self.mode == Mode::None && self.restart.is_some_and(|restart| restart.0 != RestartStrategy::None) {
            return Err(SettingsError::RestartWithoutMode);
        }
        if let Some(control) = self.control.as_ref().filter(|control| !control.is_local())
            && !self.control_remote
        {
            return Err(SettingsError::ControlBeyondLoopback { address: control.clone() });
        }
        let Restore::Checkpoint { url, id } = &self.restore else { return Ok(()) };
        let Some(checkpoints) = &self.checkpoints else { return Err(SettingsError::RestoreWithoutMode) };
        if !restore::same_folder(url, checkpoints) {
            let (named, checkpoints) = (url.clone(), checkpoints.clone());
            return Err(SettingsError::OtherFolder { named, checkpoints });
        }
        if !self.rewind {
            return Err(SettingsError::CheckpointWithoutRewind { url: url.clone(), id: *id });
        }
        Ok(())
    }

    /// Refuses a place of the checkpoints at which no folder can be.
    ///
    /// # Errors
    /// [`SettingsError`]; exit status 2.
    pub(crate) fn check_folder(&self) -> Result<(), SettingsError> {
        let Some(url) = &self.checkpoints else { return Ok(()) };
        match local_folder(url) {
            Some(folder) if folder.exists() && !folder.is_dir() => {
                Err(SettingsError::NoFolder { url: url.clone() })
            }
            _ => Ok(()),
        }
    }

    /// What follows a failure. Without checkpoints a restart would read everything again.
    pub fn restart_strategy(&self) -> Restart {
        let default =
            if self.mode == Mode::None { RestartStrategy::None } else { RestartStrategy::default() };
        self.restart.unwrap_or(Restart(default))
    }

    /// What the engine is told.
    pub(crate) fn execution(&self) -> ExecutionConfig {
        let mode = match self.mode {
            Mode::ExactlyOnce => CheckpointMode::ExactlyOnce,
            Mode::AtLeastOnce => CheckpointMode::AtLeastOnce,
            Mode::None => CheckpointMode::None,
        };
        let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        ExecutionConfig {
            checkpoints: CheckpointConfig {
                mode,
                interval_ms: ms(self.checkpoint_interval),
                timeout_ms: ms(self.checkpoint_timeout),
                tolerable_failures: self.tolerable_failures,
                retained: self.retained,
                ..CheckpointConfig::default()
            },
            restore: match self.restore {
                Restore::Latest => RestoreFrom::Latest,
                Restore::None => RestoreFrom::None,
                Restore::Checkpoint { id, .. } => RestoreFrom::Rewind(CheckpointId(id)),
            },
            allow_non_restored_state: self.allow_non_restored_state,
            restart: self.restart_strategy().0,
            ..ExecutionConfig::default()
        }
    }
}
