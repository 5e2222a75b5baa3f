//! The flags of `orders scenario`.
//!
//! Owns: names and defaults. Does not own: what they do ([`super`]).
//! Runs on: the main thread, while flags are read. Pure.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use crate::address::servers::{MysqlAddress, parse_bootstrap};
use tidegate::parse_duration;

/// Which scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Which {
    /// No fault: the tables against a plain loop over the topic.
    A,
    /// Killed inside a transaction and restored; and what hangs when nobody restores.
    B,
    /// Killed twice: offsets against rows, both ways.
    C,
    /// A kill at each of four places, by XA, staging tables and upsert.
    Positions,
    /// The same kills without checkpoints.
    Control,
    /// Exactly-once beside at-least-once: latency, recovery, what a reader sees twice.
    Latency,
    /// All of them.
    All,
}

impl std::fmt::Display for Which {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| f.write_str(value.get_name()))
    }
}

impl Which {
    const EACH: [Self; 6] = [Self::A, Self::B, Self::C, Self::Positions, Self::Control, Self::Latency];

    /// The single scenarios in it.
    pub(crate) fn each(self) -> Vec<Self> {
        if self == Self::All { Self::EACH.to_vec() } else { vec![self] }
    }
}

/// Flags of `orders scenario`.
#[derive(Debug, Args)]
pub(crate) struct ScenarioArgs {
    /// Which one.
    #[arg(value_enum, ignore_case = true)]
    pub(crate) which: Which,
    /// The cluster; without it a broker is started by scripts/services, and ended with its data at the end.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_bootstrap)]
    pub(crate) kafka: Option<String>,
    /// The database; without it a server is started by scripts/services, and ended with its data at the end.
    #[arg(long, value_name = "mysql://USER:PASSWORD@HOST:PORT/DATABASE")]
    pub(crate) mysql: Option<MysqlAddress>,
    /// Drop tables of orders that are in the database.
    #[arg(long)]
    pub(crate) force: bool,
    /// Number of orders.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(500..))]
    pub(crate) orders: u64,
    /// Number of users.
    #[arg(long, value_name = "U", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// Partitions of the topic, and subtasks of each operator.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) parallelism: u32,
    /// Another seed makes other orders.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Between the triggers of two checkpoints.
    #[arg(long, value_name = "DURATION", default_value = "200ms", value_parser = parse_duration)]
    pub(crate) checkpoint_interval: Duration,
    /// The folder of everything that is made; what an earlier call left there is removed.
    #[arg(long, value_name = "DIR", default_value = "target/scenario")]
    pub(crate) dir: PathBuf,
    /// The report; if not given, report.html in the folder.
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,
    /// Print one JSON object at the end; what happens meanwhile goes to standard error.
    #[arg(long)]
    pub(crate) json: bool,
}
