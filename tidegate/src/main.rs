//! The `tidegate` command line.
//!
//! Owns: the subcommands. Does not own: what they do. Runs on: the main thread.

mod sim_command;

use std::process::ExitCode;

use tidegate::clap::{self, Parser, Subcommand};

/// A stream processor with exactly-once that you can check.
#[derive(Debug, Parser)]
#[command(version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Simulate jobs under crashes, pauses, lying stores and lost messages, and judge their output.
    Sim(sim_command::SimArgs),
}

fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Sim(args) => sim_command::run(&args),
    }
}
