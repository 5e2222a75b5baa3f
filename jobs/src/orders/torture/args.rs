//! The flags of `orders torture`.
//!
//! Owns: names, defaults, and which flags contradict each other.
//! Does not own: what they do ([`super`]).
//! Runs on: the main thread, while flags are read. Pure.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::control::BadRestart;
use super::schedule::KILLS_MIN;
use crate::address::{AddressError, SinkAddress, SourceAddress};
use crate::partitions::MAX_PARTITIONS;
use tidegate::parse_duration;

/// Kills of a control group, and the fewest that replay half of its run.
pub(crate) const CONTROL_KILLS: u32 = 3;

/// More would take days, and an input that fills disks.
const KILLS_MAX: i64 = 10_000;

/// `--mode`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TortureMode {
    /// The job as it should be.
    ExactlyOnce,
    /// Control group: no checkpoints, each restart begins at the beginning; orders count twice.
    None,
    /// Control group: each restart begins at the position last read; orders are lost.
    AtMostOnce,
}

/// Flags of `orders torture`.
#[derive(Debug, Args)]
pub(crate) struct TortureArgs {
    /// Number of kills that count: at least 7 (20 if not given), so that each named place is struck; a control group takes 3 or more.
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u32).range(..=KILLS_MAX))]
    pub(crate) kills: Option<u32>,
    /// Another seed makes other orders and other kills.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// What is tortured; a control group runs beside the job as it should be, under the same kills.
    #[arg(long, value_enum, default_value_t = TortureMode::ExactlyOnce)]
    pub(crate) mode: TortureMode,
    /// The folder of everything that is made; what an earlier torture left there is removed.
    #[arg(long, value_name = "DIR", default_value = "target/torture")]
    pub(crate) dir: PathBuf,
    /// Use these real purchases (jobs/data/cdnow_purchases.txt) instead of made-up orders.
    #[arg(long, value_name = "FILE", conflicts_with = "orders")]
    pub(crate) purchases: Option<PathBuf>,
    /// Number of made-up orders; if not given, 1,000 for each kill and subtask, for a control group 20,000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..))]
    pub(crate) orders: Option<u64>,
    /// Made-up orders: number of users.
    #[arg(long, value_name = "U", default_value_t = 5_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// Number of partition files, or partitions of the topics; one for --mode at-most-once, whose position is a line number.
    #[arg(long, value_name = "P", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=MAX_PARTITIONS))]
    pub(crate) partitions: u32,
    /// Parallel subtasks of each operator.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub(crate) parallelism: u32,
    /// Between the triggers of two checkpoints: 100ms if not given, for a control group 500ms or more, on servers 1500ms.
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) checkpoint_interval: Option<Duration>,
    /// A topic instead of the files: it is filled first, and must not have records.
    #[arg(long, value_name = "kafka://HOST:PORT/TOPIC", value_parser = parse_topic)]
    pub(crate) source: Option<SourceAddress>,
    /// A database of a server, or a topic, instead of a file; the tables, or the topic, are made, and must not be there.
    #[arg(long, value_name = "mysql://USER:PASSWORD@HOST:PORT/DATABASE?mode=xa or kafka://HOST:PORT/TOPIC", value_parser = parse_tables)]
    pub(crate) sink: Option<SinkAddress>,
    /// A second output beside the sink: every order into a topic, audited with the tables. It is made, and must not have records.
    #[cfg(feature = "rdkafka")]
    #[arg(long, value_name = "kafka://HOST:PORT/TOPIC", value_parser = crate::verify::parse_detail)]
    pub(crate) detail: Option<SinkAddress>,
    /// Remove topics and tables of these names first.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print one JSON object at the end; what happens meanwhile goes to standard error.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Flags that are right one by one and not together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TortureUsage {
    /// Too few kills for what they must show.
    #[error("--kills {kills} is too few: {needed} are needed to strike each named place once")]
    TooFew {
        /// What was given.
        kills: u32,
        /// The least.
        needed: u32,
    },
    /// A control group has one output.
    #[cfg(feature = "rdkafka")]
    #[error("a control group has one output: leave --detail out")]
    DetailOfControl,
    /// Its position is a line number.
    #[error("--mode at-most-once cuts files of its own: leave --source out")]
    CutTopic,
    /// A sink that is not in two phases.
    #[cfg(feature = "mysql")]
    #[error(
        "--sink is to be written exactly once here: ?mode=xa or ?mode=staging; a control group comes by --mode none"
    )]
    OnePhase,
    /// Too few kills for a control group.
    #[error(
        "--kills {kills} is too few: with less than {needed} a control group replays less than half of its run"
    )]
    TooFewOfControl {
        /// What was given.
        kills: u32,
        /// The least.
        needed: u32,
    },
}

fn parse_topic(text: &str) -> Result<SourceAddress, AddressError> {
    match text.strip_prefix("kafka:") {
        Some(_) => text.parse(),
        None => Err(AddressError::Source { text: text.into(), expected: "kafka://HOST:PORT/TOPIC" }),
    }
}

fn parse_tables(text: &str) -> Result<SinkAddress, AddressError> {
    if ["mysql:", "kafka:"].iter().any(|scheme| text.starts_with(scheme)) {
        return text.parse();
    }
    let expected =
        "mysql://USER:PASSWORD@HOST:PORT/DATABASE, with ?mode=xa or staging, or kafka://HOST:PORT/TOPIC";
    Err(AddressError::Sink { text: text.into(), expected })
}

impl TortureArgs {
    /// Checks the flags against each other.
    ///
    /// # Errors
    /// [`TortureUsage`].
    pub(crate) fn check(&self) -> Result<(), TortureUsage> {
        if self.mode == TortureMode::AtMostOnce && self.source.is_some() {
            return Err(TortureUsage::CutTopic);
        }
        #[cfg(feature = "rdkafka")]
        if self.bad_restart().is_some() && self.detail.is_some() {
            return Err(TortureUsage::DetailOfControl);
        }
        #[cfg(feature = "mysql")]
        if let Some(SinkAddress::Mysql(address)) = &self.sink {
            use crate::address::servers::MysqlMode;
            if !matches!(address.mode, MysqlMode::Xa | MysqlMode::Staging) {
                return Err(TortureUsage::OnePhase);
            }
        }
        match (self.kills, self.bad_restart()) {
            (Some(kills), None) if kills < KILLS_MIN => {
                Err(TortureUsage::TooFew { kills, needed: KILLS_MIN })
            }
            (Some(kills), Some(_)) if kills < CONTROL_KILLS => {
                Err(TortureUsage::TooFewOfControl { kills, needed: CONTROL_KILLS })
            }
            _ => Ok(()),
        }
    }

    /// The second output.
    pub(crate) fn detail(&self) -> Option<&SinkAddress> {
        #[cfg(feature = "rdkafka")]
        return self.detail.as_ref();
        #[cfg(not(feature = "rdkafka"))]
        None
    }

    /// How the control group restarts, if there is one.
    pub(crate) fn bad_restart(&self) -> Option<BadRestart> {
        match self.mode {
            TortureMode::ExactlyOnce => None,
            TortureMode::None => Some(BadRestart::None),
            TortureMode::AtMostOnce => Some(BadRestart::AtMostOnce),
        }
    }
}
