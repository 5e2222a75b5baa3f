//! The orders job and everything around it: `orders generate`, `import`, `run`, `explain`, `verify`, `demo`,
//! `torture`.
//!
//! Owns: the list of subcommands and the exit status: 0 done, 1 failed (also: not exactly once), 2 wrong usage,
//! 3 taken over by another process.
//! Does not own: what a subcommand does (one module each).
//! Runs on: the main thread.
//!
//! The way of an order: [`generate`] or [`import`] writes it as a JSON line into one of a few partition files, [`run`]
//! streams the partitions into four tables, [`verify`] computes the same tables from the same files by a plain loop
//! and compares. [`demo`] does all of it and kills the job in the middle; [`torture`] kills it many times.

mod address;
mod attempt;
mod demo;
mod error;
mod generate;
mod import;
mod job;
mod order;
mod partitions;
mod run;
mod run_line;
mod torture;
mod verify;
mod work_folder;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::OrdersError;

/// Orders, streamed exactly once, and the means to check it.
#[derive(Debug, Parser)]
#[command(name = "orders", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Write made-up orders, the same for the same seed, as JSON lines in partition files.
    Generate(generate::GenerateArgs),
    /// Write real purchases (the CDNOW file in jobs/data) as JSON lines in partition files.
    Import(import::ImportArgs),
    /// Run the job: orders in, four tables out.
    Run(run::RunArgs),
    /// Show what the job consists of and which settings hold, without running it.
    Explain(run::RunArgs),
    /// Compare the tables with what a plain loop makes of the input; exit status 0 only when all agree.
    Verify(verify::VerifyArgs),
    /// Run, kill -9 in the middle, restart, verify, and write a report.
    Demo(demo::DemoArgs),
    /// Kill -9 many times at chosen places, restart, verify; exit status 0 only when each place was struck and all agree.
    Torture(torture::TortureArgs),
}

/// Exit status of wrong usage.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    tidegate::log_to_stderr();
    let Cli { command } = Cli::try_parse().unwrap_or_else(|error| tidegate::exit_for_usage(error));
    let usage = match &command {
        Command::Run(args) => args.check().map_err(|usage| usage.to_string()),
        Command::Explain(args) => args.check_own().map_err(|usage| usage.to_string()),
        Command::Torture(args) => args.check().map_err(|usage| usage.to_string()),
        _ => Ok(()),
    };
    if let Err(usage) = usage {
        eprintln!("error: {usage}");
        return ExitCode::from(USAGE);
    }
    let outcome = match command {
        Command::Generate(args) => generate::generate(&args).map_err(OrdersError::from),
        Command::Import(args) => import::import(&args).map_err(OrdersError::from),
        Command::Run(args) => run::run(&args).map(|()| ExitCode::SUCCESS).map_err(OrdersError::from),
        Command::Explain(args) => run::explain(&args).map(|()| ExitCode::SUCCESS).map_err(OrdersError::from),
        Command::Verify(args) => verify::verify(&args).map_err(OrdersError::from),
        Command::Demo(args) => demo::demo(&args).map_err(OrdersError::from),
        Command::Torture(args) => torture::torture(&args).map_err(OrdersError::from),
    };
    match outcome {
        Ok(status) => status,
        Err(error) => {
            eprintln!("{}", tidegate::error_text(&error));
            ExitCode::from(error.exit_status())
        }
    }
}
