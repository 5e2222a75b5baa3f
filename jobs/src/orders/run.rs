//! `orders run`: the job itself.
//!
//! Owns: the flags of the job.
//! Does not own: the engine, the connectors, nor the forms of addresses ([`crate::address`]).
//! Runs on: the main thread.

use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::address::{RestoreFrom, SinkAddress, SourceAddress, parse_duration};

/// Flags of `orders run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Where orders come from: datagen, or files:DIR as `generate` and `import` write it.
    #[arg(long, value_name = "datagen|files:DIR")]
    pub(crate) source: SourceAddress,
    /// Where the tables go; there is no default.
    #[arg(long, value_name = "sqlite:FILE|blackhole")]
    pub(crate) sink: SinkAddress,
    /// Where state is kept while the job runs.
    #[arg(long, value_enum, default_value_t = Backend::Hashmap)]
    pub(crate) backend: Backend,
    /// The folder of the checkpoints, as a URL; needed unless --mode none.
    #[arg(long, value_name = "URL")]
    pub(crate) checkpoints: Option<String>,
    /// Between the triggers of two checkpoints.
    #[arg(long, value_name = "DURATION", default_value = "10s", value_parser = parse_duration)]
    pub(crate) checkpoint_interval: Duration,
    /// What a crash may do to the tables.
    #[arg(long, value_enum, default_value_t = Mode::ExactlyOnce)]
    pub(crate) mode: Mode,
    /// Parallel subtasks of each operator.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) parallelism: u32,
    /// Where to begin: latest, none, or a checkpoint as URL#id.
    #[arg(long, value_name = "latest|none|URL#id", default_value = "latest")]
    pub(crate) restore: RestoreFrom,
    /// Allow --restore to name an older checkpoint, although outputs made since then will appear twice.
    #[arg(long)]
    pub(crate) rewind: bool,
    /// Start although the job of this checkpoint folder still answers; that one ends at its next checkpoint.
    #[arg(long)]
    pub(crate) take_over: bool,
    /// datagen: number of orders; without it, they never end.
    #[arg(long, value_name = "N")]
    pub(crate) orders: Option<u64>,
    /// datagen: number of users.
    #[arg(long, value_name = "U", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// datagen: another seed gives other orders.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// At most this many orders a second over all subtasks.
    #[arg(long, value_name = "ORDERS_PER_SECOND", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Print one JSON object per line instead of text.
    #[arg(long)]
    pub(crate) json: bool,
}

/// `--backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Backend {
    /// Typed tables in memory; full snapshots.
    Hashmap,
}

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Mode {
    /// Checkpoints, and sinks that commit in two phases.
    ExactlyOnce,
    /// A plain SQL transaction per batch and no checkpoints: what goes wrong without them.
    None,
}

/// What can go wrong with `orders run`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RunError {
    /// The job is not part of this version.
    #[error(
        "orders run is not built yet\n  help: generate, import and verify work; run and demo come with the engine"
    )]
    NotBuilt,
}

/// Flags that are right one by one and not together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunUsage {
    /// Exactly once rests on checkpoints.
    #[error("--mode exactly-once needs --checkpoints URL, or choose --mode none")]
    NoCheckpoints,
    /// There is nothing to go back to.
    #[error("--rewind needs --restore URL#id, which names the checkpoint to go back to")]
    RewindWithoutCheckpoint,
    /// The files say how many orders there are.
    #[error("--orders belongs to --source datagen; a folder of files has the orders it has")]
    OrdersOfFiles,
}

impl RunArgs {
    /// Checks the flags against each other.
    ///
    /// # Errors
    /// [`RunUsage`].
    pub(crate) fn check(&self) -> Result<(), RunUsage> {
        if self.mode == Mode::ExactlyOnce && self.checkpoints.is_none() {
            return Err(RunUsage::NoCheckpoints);
        }
        if self.rewind && !matches!(self.restore, RestoreFrom::Checkpoint { .. }) {
            return Err(RunUsage::RewindWithoutCheckpoint);
        }
        if self.orders.is_some() && self.source != SourceAddress::Datagen {
            return Err(RunUsage::OrdersOfFiles);
        }
        Ok(())
    }
}

/// Runs the job to its end.
///
/// # Errors
/// [`RunError`].
pub(crate) fn run(_args: &RunArgs) -> Result<ExitCode, RunError> {
    Err(RunError::NotBuilt)
}
