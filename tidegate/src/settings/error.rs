//! Settings that are right one by one and not together.
//!
//! Owns: the cases and their words. Does not own: the check ([`super::SettingValues::check`]). Runs on: plain data.

use crate::control::ControlAddress;

/// Settings that are right one by one and not together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// Checkpoints need a place.
    #[error("checkpoints need a folder: give --checkpoints URL, or choose --mode none")]
    NoCheckpoints,
    /// Something else is there.
    #[error("--checkpoints {url} is a file, and checkpoints need a folder; name another place")]
    NoFolder {
        /// As given.
        url: String,
    },
    /// A folder without checkpoints would mislead.
    #[error("--mode none takes no checkpoints; leave --checkpoints away, or choose --mode exactly-once")]
    CheckpointsWithoutMode,
    /// Checkpoints that are gone with the process.
    #[error(
        "--checkpoints memory:// is gone with the process: the next start would begin anew, and put out again what is out already; \
         give it a folder (file:///path or a plain path) or s3://bucket/prefix"
    )]
    CheckpointsInMemory,
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
    /// A restart without a checkpoint reads everything again.
    #[error(
        "--mode none never restarts: a restart would read everything again; leave --restart away, or choose --restart none"
    )]
    RestartWithoutMode,
    /// Anybody who reaches the address could cancel the job.
    #[error(
        "--control {address} can be reached from other machines, and whoever reaches it can cancel the job; use 127.0.0.1, or add \
         --control-remote if that is what you want"
    )]
    ControlBeyondLoopback {
        /// As given.
        address: ControlAddress,
    },
}
