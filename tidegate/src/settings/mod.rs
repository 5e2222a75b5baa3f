//! Settings of a run, each a flag and an environment variable.
//!
//! Owns: names, defaults, and which settings contradict each other.
//! Does not own: what they do ([`crate::engine::execution::ExecutionConfig`]), nor the forms of `--restore` ([`restore`]).
//! Runs on: the main thread, while flags are read. Pure.

mod restore;

use std::time::Duration;

use clap::ValueEnum;

pub(crate) use self::restore::local_folder;
pub use self::restore::{Restore, RestoreError};
use crate::duration::parse_duration;
use crate::engine::checkpoint::{CheckpointConfig, CheckpointMode};
use crate::engine::execution::{ExecutionConfig, RestoreFrom};
use crate::engine::ids::CheckpointId;
use crate::engine::jobmanager::RestartStrategy;

/// Settings of a run. Flatten them into a command line of your own, or let [`crate::launch`] do it.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Settings")]
pub struct RunSettings {
    /// The folder of the checkpoints: a path, file:///path, or s3://bucket/prefix; needed unless --mode none.
    #[arg(long, env = "TIDEGATE_CHECKPOINTS", value_name = "URL")]
    pub checkpoints: Option<String>,
    /// Between the triggers of two checkpoints.
    #[arg(long, env = "TIDEGATE_CHECKPOINT_INTERVAL", value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub checkpoint_interval: Duration,
    /// What a crash may do to the output.
    #[arg(long, env = "TIDEGATE_MODE", value_enum, default_value_t = Mode::ExactlyOnce)]
    pub mode: Mode,
    /// Where state is kept while the job runs.
    #[arg(long, env = "TIDEGATE_BACKEND", value_enum, default_value_t = Backend::Hashmap)]
    pub backend: Backend,
    /// Parallel subtasks of each operator.
    #[arg(long, env = "TIDEGATE_PARALLELISM", value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub parallelism: u32,
    /// Number of key groups: the highest parallelism this job can ever have. It cannot change once there is state.
    #[arg(long, env = "TIDEGATE_MAX_PARALLELISM", value_name = "N", default_value_t = 128, value_parser = clap::value_parser!(u32).range(1..))]
    pub max_parallelism: u32,
    /// Where to begin: latest, none, or a checkpoint of this folder as URL#id.
    #[arg(long, env = "TIDEGATE_RESTORE", value_name = "latest|none|URL#id", default_value = "latest")]
    pub restore: Restore,
    /// Allow --restore URL#id, although outputs made since that checkpoint will appear twice.
    #[arg(long, env = "TIDEGATE_REWIND")]
    pub rewind: bool,
    /// Start although the job of this checkpoint folder still answers; that one ends at its next checkpoint.
    #[arg(long, env = "TIDEGATE_TAKE_OVER")]
    pub take_over: bool,
    /// Drop state of operators that are no longer in the job.
    #[arg(long, env = "TIDEGATE_ALLOW_NON_RESTORED_STATE")]
    pub allow_non_restored_state: bool,
    /// Print one JSON object per line instead of text.
    #[arg(long, env = "TIDEGATE_JSON")]
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

/// Settings that are right one by one and not together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Checkpoints need a place.
    #[error("checkpoints need a folder: give --checkpoints URL, or choose --mode none")]
    NoCheckpoints,
    /// A folder without checkpoints would mislead.
    #[error("--mode none takes no checkpoints; leave --checkpoints away, or choose --mode exactly-once")]
    CheckpointsWithoutMode,
    /// There is nothing to go back to.
    #[error("--rewind needs --restore URL#id, which names the checkpoint to go back to")]
    RewindWithoutCheckpoint,
    /// Outputs would be there twice.
    #[error(
        "--restore {url}#{id} goes back: what was put out after checkpoint {id} will appear twice; add --rewind if \
         that is what you want"
    )]
    CheckpointWithoutRewind {
        /// Its folder.
        url: String,
        /// Its id.
        id: u64,
    },
    /// A checkpoint of another folder.
    #[error(
        "--restore names a checkpoint in {named}, and --checkpoints is {checkpoints}; a checkpoint can be restored only \
         in its own folder"
    )]
    OtherFolder {
        /// In `--restore`.
        named: String,
        /// In `--checkpoints`.
        checkpoints: String,
    },
    /// Without checkpoints nothing can be restored.
    #[error("--mode none restores nothing; leave --restore away")]
    RestoreWithoutMode,
}

impl RunSettings {
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
            _ => {}
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

    /// What the engine is told.
    pub(crate) fn execution(&self) -> ExecutionConfig {
        let mode = match self.mode {
            Mode::ExactlyOnce => CheckpointMode::ExactlyOnce,
            Mode::AtLeastOnce => CheckpointMode::AtLeastOnce,
            Mode::None => CheckpointMode::None,
        };
        let interval_ms = u64::try_from(self.checkpoint_interval.as_millis()).unwrap_or(u64::MAX);
        // Without checkpoints a restart would read everything again.
        let restart =
            if self.mode == Mode::None { RestartStrategy::None } else { RestartStrategy::default() };
        ExecutionConfig {
            checkpoints: CheckpointConfig { mode, interval_ms, ..CheckpointConfig::default() },
            restore: match self.restore {
                Restore::Latest => RestoreFrom::Latest,
                Restore::None => RestoreFrom::None,
                Restore::Checkpoint { id, .. } => RestoreFrom::Rewind(CheckpointId(id)),
            },
            allow_non_restored_state: self.allow_non_restored_state,
            restart,
            ..ExecutionConfig::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        settings: RunSettings,
    }

    fn check(args: &[&str]) -> Result<(), SettingsError> {
        Line::try_parse_from([&["job"], args].concat()).unwrap().settings.check()
    }

    #[test]
    fn settings_are_checked_against_each_other() {
        assert_eq!(check(&["--checkpoints", "c"]), Ok(()));
        assert_eq!(check(&["--mode", "none"]), Ok(()));
        assert_eq!(check(&[]), Err(SettingsError::NoCheckpoints));
        assert_eq!(
            check(&["--mode", "none", "--checkpoints", "c"]),
            Err(SettingsError::CheckpointsWithoutMode)
        );
        assert_eq!(check(&["--checkpoints", "c", "--rewind"]), Err(SettingsError::RewindWithoutCheckpoint));
        assert_eq!(check(&["--mode", "none", "--restore", "c#1"]), Err(SettingsError::RestoreWithoutMode));
    }

    #[test]
    fn going_back_needs_the_same_folder_and_the_will() {
        let named = |more: &[&str]| check(&[&["--checkpoints", "file:///a/b/", "--restore"], more].concat());
        assert_eq!(named(&["file:///a/b#3", "--rewind"]), Ok(()));
        assert_eq!(named(&["/a/b#3", "--rewind"]), Ok(()));
        assert!(matches!(named(&["/a/b#3"]), Err(SettingsError::CheckpointWithoutRewind { id: 3, .. })));
        assert!(matches!(named(&["/a/c#3", "--rewind"]), Err(SettingsError::OtherFolder { .. })));
    }
}
