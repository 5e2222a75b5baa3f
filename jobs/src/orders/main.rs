//! The orders job and everything around it: `orders generate`, `import`, `produce`, `tables`, `run`, `explain`, `verify`,
//! `demo`, `torture`, `scenario`.
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
#[cfg(feature = "mysql")]
mod database;
mod demo;
mod error;
mod generate;
mod ground;
mod import;
mod job;
mod leftover;
#[cfg(feature = "mysql")]
mod log_id;
#[cfg(not(all(feature = "mysql", feature = "rdkafka")))]
mod not_built;
mod order;
mod partitions;
mod run;
mod run_line;
#[cfg(all(feature = "mysql", feature = "rdkafka"))]
mod scenario;
#[cfg(feature = "rdkafka")]
mod topic;
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
    /// Fill a Kafka topic with orders, the same for the same flags.
    #[cfg(feature = "rdkafka")]
    Produce(topic::produce::ProduceArgs),
    /// Make the four tables in a MySQL database.
    #[cfg(feature = "mysql")]
    Tables(database::tables::TablesArgs),
    /// Fill a Kafka topic with orders (not in this build).
    #[cfg(not(feature = "rdkafka"))]
    Produce(not_built::NotBuiltArgs),
    /// Make the four tables in a MySQL database (not in this build).
    #[cfg(not(feature = "mysql"))]
    Tables(not_built::NotBuiltArgs),
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
    /// Show exactly-once on real Kafka and MySQL by experiments, each beside what it is compared with.
    #[cfg(all(feature = "mysql", feature = "rdkafka"))]
    Scenario(scenario::ScenarioArgs),
    /// Show exactly-once on real Kafka and MySQL (not in this build).
    #[cfg(not(all(feature = "mysql", feature = "rdkafka")))]
    Scenario(not_built::NotBuiltArgs),
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
        #[cfg(feature = "rdkafka")]
        Command::Produce(args) => topic::produce::produce(&args).map_err(OrdersError::from),
        #[cfg(feature = "mysql")]
        Command::Tables(args) => database::tables::tables(&args).map_err(OrdersError::from),
        #[cfg(not(feature = "rdkafka"))]
        Command::Produce(_) => Err(not_built::NotBuilt { command: "produce", features: "rdkafka" }.into()),
        #[cfg(not(feature = "mysql"))]
        Command::Tables(_) => Err(not_built::NotBuilt { command: "tables", features: "mysql" }.into()),
        Command::Run(args) => run::run(&args).map(|()| ExitCode::SUCCESS).map_err(OrdersError::from),
        Command::Explain(args) => run::explain(&args).map(|()| ExitCode::SUCCESS).map_err(OrdersError::from),
        Command::Verify(args) => verify::verify(&args).map_err(OrdersError::from),
        Command::Demo(args) => demo::demo(&args).map_err(OrdersError::from),
        Command::Torture(args) => torture::torture(&args).map_err(OrdersError::from),
        #[cfg(all(feature = "mysql", feature = "rdkafka"))]
        Command::Scenario(args) => scenario::scenario(&args).map_err(OrdersError::from),
        #[cfg(not(all(feature = "mysql", feature = "rdkafka")))]
        Command::Scenario(_) => {
            Err(not_built::NotBuilt { command: "scenario", features: "mysql,rdkafka" }.into())
        }
    };
    match outcome {
        Ok(status) => status,
        Err(error) => {
            eprintln!("{}", tidegate::error_text(&error));
            ExitCode::from(error.exit_status())
        }
    }
}
