//! The `tidegate` command line: running jobs, their checkpoints, checkpoint folders, and the simulation.
//!
//! Owns: the subcommands and their exit statuses: 0 done and nothing found, 1 failed or something found, 2 wrong usage.
//! Does not own: what they show (one file each), the talking to jobs ([`crate::control`]). Runs on: the main thread.

mod cancel;
mod checkpoint;
mod checkpoints;
mod error;
mod folder;
mod list;
mod shown;
mod sim;
mod table;
mod target;
mod txn;
#[cfg(feature = "rdkafka")]
mod txn_broker;
#[cfg(feature = "mysql")]
mod xa;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

pub(crate) use self::error::CliError;
use crate::error::error_text;
use crate::exit_for_usage;
use crate::trace::log_to_stderr;

/// A stream processor with exactly-once that you can check.
#[derive(Debug, Parser)]
#[command(name = "tidegate", bin_name = "tidegate", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the jobs that run on this machine.
    List(list::ListArgs),
    /// Show the last checkpoints of a running job, and which subtask was slow.
    Checkpoints(checkpoints::CheckpointsArgs),
    /// Trigger a checkpoint of a running job; or list, verify or check a checkpoint folder.
    Checkpoint(checkpoint::CheckpointArgs),
    /// Stop a running job in order, and wait until it is over.
    Cancel(cancel::CancelArgs),
    /// Go on without a lost transaction; show, commit or abort those that jobs have left open on Kafka brokers.
    Txn(txn::TxnArgs),
    /// Simulate jobs under crashes, pauses, lying stores and lost messages, and judge their output.
    Sim(sim::SimArgs),
    /// Show prepared branches and staging tables that are left on a MySQL server, and settle them by hand.
    #[cfg(feature = "mysql")]
    Xa(xa::XaArgs),
}

/// The whole program: parses the command line, does what it says, and answers with the exit status.
pub fn main() -> ExitCode {
    let Cli { command } = Cli::try_parse().unwrap_or_else(|error| exit_for_usage(error));
    // A simulation plants what others are warned of.
    if !matches!(command, Command::Sim(_)) {
        log_to_stderr();
    }
    let done = match command {
        Command::List(args) => list::run(&args),
        Command::Checkpoints(args) => checkpoints::run(&args),
        Command::Checkpoint(args) => checkpoint::run(&args),
        Command::Cancel(args) => cancel::run(&args),
        Command::Txn(args) => txn::run(&args),
        Command::Sim(args) => Ok(sim::run(&args)),
        #[cfg(feature = "mysql")]
        Command::Xa(args) => xa::run(&args),
    };
    done.unwrap_or_else(|error| {
        eprintln!("{}", error_text(&error));
        ExitCode::from(error.exit_status())
    })
}
