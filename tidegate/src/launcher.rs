//! From an author's function to a whole binary.
//!
//! Owns: the subcommands `run` and `explain`, and the exit status: 0 finished or canceled, 1 failed, 2 wrong usage, 3 taken over
//! by another process.
//! Does not own: the settings ([`RunSettings`]), the run ([`run_job`]).
//! Runs on: the main thread.

use std::process::ExitCode;

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::engine::api::StreamEnvironment;
use crate::engine::error::JobError;
use crate::error::{RunError, error_text};
use crate::explain::explained;
use crate::run_job::{graph, run_job};
use crate::settings::RunSettings;
use crate::trace::log_to_stderr;

/// A Tidegate job.
#[derive(Debug, Parser)]
#[command(arg_required_else_help = true)]
struct Cli<A: clap::Args> {
    #[command(subcommand)]
    command: Command<A>,
}

#[derive(Debug, Subcommand)]
enum Command<A: clap::Args> {
    /// Run the job in this process.
    Run(JobArgs<A>),
    /// Show what the job consists of, without running it.
    Explain(JobArgs<A>),
}

#[derive(Debug, clap::Args)]
struct JobArgs<A: clap::Args> {
    #[command(flatten)]
    job: A,
    #[command(flatten)]
    settings: RunSettings,
}

/// Makes a binary of a job: parses the command line, runs the job that `build` records, and answers with the exit status.
/// `A` is the job's own arguments; `()` when it has none.
pub fn launch<A, F>(name: &'static str, build: F) -> ExitCode
where
    A: clap::Args,
    F: Fn(&StreamEnvironment, &A) -> Result<(), JobError>,
{
    log_to_stderr();
    let version = concat!("(tidegate ", env!("CARGO_PKG_VERSION"), ")");
    let mut command = Cli::<A>::command().name(name).bin_name(name).version(version);
    let parsed = command.try_get_matches_from_mut(std::env::args_os());
    let cli = match parsed.and_then(|matches| Cli::<A>::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let done = match &cli.command {
        Command::Run(args) => run_job(name, &args.settings, |env| build(env, &args.job)).map(drop),
        Command::Explain(args) => graph(name, &args.settings, |env| build(env, &args.job))
            .map(|graph| print!("{}", explained(&graph))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(RunError::Settings(usage)) => command.error(ErrorKind::ArgumentConflict, usage).exit(),
        Err(error) => {
            eprintln!("{}", error_text(&error));
            ExitCode::from(error.exit_status())
        }
    }
}
