//! `tidegate checkpoint`: one now, or what stands in a checkpoint folder.
//!
//! Owns: the subcommands `trigger`, `list`, `verify` and `fsck`; without one of these words it triggers. Does not own: what is done
//! with a folder ([`super::folder`]). Runs on: the main thread.

use std::process::ExitCode;

use clap::Subcommand;

use super::checkpoints::with_subtasks;
use super::folder::{self, FolderArgs, FsckArgs};
use super::list::unexpected;
use super::{CliError, cancel, target};
use crate::control::client;
use crate::control::protocol::{Answer, Ask};
use crate::stdout;

/// Arguments of `tidegate checkpoint`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct CheckpointArgs {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    trigger: TriggerArgs,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Take a checkpoint of a running job now, and wait for its result (the default).
    Trigger(TriggerArgs),
    /// Show the entries of a folder's commit log.
    List(FolderArgs),
    /// Read every file that the retained checkpoints refer to, and check it.
    Verify(FolderArgs),
    /// Find torn, missing and orphaned files and damaged log entries; delete left-overs on request.
    Fsck(FsckArgs),
}

#[derive(Debug, clap::Args)]
struct TriggerArgs {
    /// The job: its checkpoint folder, the address of its --control, or its name; not needed if only one runs.
    job: Option<String>,
    /// Print a JSON object instead of words.
    #[arg(long)]
    json: bool,
}

/// Exit status 0 when the checkpoint is complete, or nothing was found; else 1.
pub(super) fn run(args: &CheckpointArgs) -> Result<ExitCode, CliError> {
    match &args.action {
        None => trigger(&args.trigger),
        Some(Action::Trigger(args)) => trigger(args),
        Some(Action::List(args)) => folder::list(args),
        Some(Action::Verify(args)) => folder::verify(args),
        Some(Action::Fsck(args)) => folder::fsck(args),
    }
}

fn trigger(args: &TriggerArgs) -> Result<ExitCode, CliError> {
    let address = target::resolve(args.job.as_deref())?;
    match client::ask(&address, Ask::TriggerCheckpoint)? {
        Answer::Checkpoint { checkpoint } => {
            if args.json {
                stdout::line(serde_json::to_string_pretty(&checkpoint).expect("numbers and strings"));
            } else {
                stdout::text(with_subtasks(&checkpoint));
            }
            Ok(if checkpoint.complete { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        Answer::Ended { end } => {
            Err(CliError::Refused { reason: format!("no checkpoint was taken: {}", cancel::words(&end)) })
        }
        Answer::Refused { reason } => Err(CliError::Refused { reason }),
        other => Err(unexpected(&other)),
    }
}
