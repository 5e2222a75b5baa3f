//! `orders run`: the flags of the job, and its run.
//!
//! Owns: what is the orders job's own among the flags.
//! Does not own: the settings of every job ([`RunSettings`]), the job ([`crate::job`]).
//! Runs on: the main thread.

use clap::{Args, ValueEnum};
use tidegate::connectors::file::{BrokenLine, FileCounters};
use tidegate::{Backend, RunError, RunSettings, SettingsError, explain_job, run_job};

use crate::address::{SinkAddress, SourceAddress};
use crate::job;
use tidegate_jobs::digits::counted;

/// The job's name: its checkpoint folder belongs to it.
const NAME: &str = "orders";

/// Flags of `orders run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Where orders come from: datagen, files:DIR as `generate` and `import` write it, or a topic as `produce` fills it.
    #[arg(long, value_name = "datagen|files:DIR|kafka://HOST:PORT/TOPIC")]
    pub(crate) source: SourceAddress,
    /// Where the tables go, or to which topic the orders as they are; there is no default. mysql://… takes ?mode=xa (if not given),
    /// staging, upsert or plain.
    #[arg(long, value_name = "sqlite:FILE|blackhole|mysql://…|kafka://…")]
    pub(crate) sink: SinkAddress,
    /// A second output beside the tables: the orders as they are, into a topic.
    #[arg(long, value_name = "kafka://HOST:PORT/TOPIC", value_parser = crate::verify::parse_detail)]
    pub(crate) detail: Option<SinkAddress>,
    /// datagen: number of orders; without it, they never end.
    #[arg(long, value_name = "N")]
    pub(crate) orders: Option<u64>,
    /// datagen: number of users.
    #[arg(long, value_name = "U", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// datagen: another seed gives other orders.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// files, kafka: go on when the input is at its end, and wait for what is appended: lines and files, or records and partitions.
    #[arg(long)]
    pub(crate) follow: bool,
    /// files, kafka: what to do with a line or a record that is no order.
    #[arg(long, value_enum, default_value_t = BrokenLines::Fail)]
    pub(crate) broken_lines: BrokenLines,
    /// At most this many orders a second over all subtasks.
    #[arg(long, value_name = "ORDERS_PER_SECOND", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    #[command(flatten)]
    pub(crate) settings: RunSettings,
}

/// `--broken-lines`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BrokenLines {
    /// The job fails, naming file and line.
    Fail,
    /// They are left out and counted.
    Skip,
}

impl From<BrokenLines> for BrokenLine {
    fn from(policy: BrokenLines) -> Self {
        match policy {
            BrokenLines::Fail => Self::Fail,
            BrokenLines::Skip => Self::Skip,
        }
    }
}

/// Flags that are right one by one and not together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum RunUsage {
    /// The settings of every job.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The files say how many orders there are.
    #[error("--orders belongs to --source datagen; a folder of files or a topic has the orders it has")]
    OrdersOfFiles,
    /// There are no files.
    #[error("--follow and --broken-lines skip belong to --source files:DIR or kafka://…")]
    FilesOfDatagen,
}

impl RunArgs {
    /// Checks the flags against each other.
    ///
    /// # Errors
    /// [`RunUsage`].
    pub(crate) fn check(&self) -> Result<(), RunUsage> {
        self.settings.check()?;
        self.check_own()
    }

    /// Checks those that belong to this job. To be explained it needs no folder of checkpoints.
    ///
    /// # Errors
    /// [`RunUsage`].
    pub(crate) fn check_own(&self) -> Result<(), RunUsage> {
        let datagen = self.source == SourceAddress::Datagen;
        if self.orders.is_some() && !datagen {
            return Err(RunUsage::OrdersOfFiles);
        }
        if datagen && (self.follow || self.broken_lines == BrokenLines::Skip) {
            return Err(RunUsage::FilesOfDatagen);
        }
        Ok(())
    }
}

/// Says what the job consists of.
///
/// # Errors
/// [`RunError`].
pub(crate) fn explain(args: &RunArgs) -> Result<(), RunError> {
    let explained = explain_job(NAME, &args.settings, |env| job::build(env, args).map(drop))?;
    print!("{explained}");
    Ok(())
}

/// Runs the job to its end.
///
/// # Errors
/// [`RunError`].
pub(crate) fn run(args: &RunArgs) -> Result<(), RunError> {
    let Backend::Hashmap = args.settings.backend;
    let mut counters = FileCounters::default();
    let outcome = run_job(NAME, &args.settings, |env| {
        counters = job::build(env, args)?;
        Ok(())
    });
    let broken = counters.broken_lines();
    if broken > 0 && args.broken_lines == BrokenLines::Skip {
        eprintln!(
            "orders: {} left out that {} no order",
            counted(broken, "line"),
            if broken == 1 { "is" } else { "are" }
        );
    }
    outcome.map(drop)
}
