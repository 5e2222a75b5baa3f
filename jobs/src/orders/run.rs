//! `orders run`: the flags of the job, and its run.
//!
//! Owns: what is the orders job's own among the flags.
//! Does not own: the settings of every job ([`RunSettings`]), the job ([`crate::job`]).
//! Runs on: the main thread.

use clap::{Args, ValueEnum};
use tidegate::connectors::file::{BrokenLine, FileCounters};
use tidegate::{Backend, Mode, RunError, RunSettings, SettingsError, explain_job, run_job};

use crate::address::servers::{MysqlAddress, MysqlMode};
use crate::address::{SinkAddress, SourceAddress};
use crate::job;
use tidegate::stdout;
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
    /// staging, upsert or plain, and &batch_rows=N for the rows of a statement.
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
    /// What is written would be read again, for ever, and the input could not be told from the output.
    #[error("{flag} is the topic that --source reads\n  help: give it a topic of its own")]
    OwnInput {
        /// The flag.
        flag: &'static str,
    },
    /// Both outputs into one topic: nobody could tell them apart.
    #[error("--detail is the topic that --sink writes\n  help: give it a topic of its own")]
    OneOutput,
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

    /// What was asked for and may not be what was meant.
    fn warning(&self) -> Option<&'static str> {
        let plain = self.mysql().is_some_and(|address| address.mode == MysqlMode::Plain);
        (plain && self.settings.mode == Mode::ExactlyOnce).then_some(
            "?mode=plain writes outside of all transactions: what was written after the newest checkpoint is there twice after a crash, also with \
             --mode exactly-once; ?mode=xa, staging and upsert keep the promise",
        )
    }

    /// What helps here, beside what helps everywhere.
    fn hint(&self, error: &str) -> Option<String> {
        let address = self.mysql().filter(|address| address.mode == MysqlMode::Upsert)?;
        error.contains(UNFIT_KEY).then(|| {
            format!(
                "?mode=upsert needs tables with other keys: `orders tables --mysql ADDRESS?mode=upsert --force` drops those in {address} and \
                 makes them so"
            )
        })
    }

    /// The database that the tables are in.
    fn mysql(&self) -> Option<&MysqlAddress> {
        match &self.sink {
            #[cfg(feature = "mysql")]
            SinkAddress::Mysql(address) => Some(address),
            _ => None,
        }
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
        self.check_topics()
    }

    #[cfg(not(feature = "rdkafka"))]
    fn check_topics(&self) -> Result<(), RunUsage> {
        Ok(())
    }

    #[cfg(feature = "rdkafka")]
    fn check_topics(&self) -> Result<(), RunUsage> {
        let written = |sink: &SinkAddress| match sink {
            SinkAddress::Kafka(address) => Some(address.clone()),
            _ => None,
        };
        let (sink, detail) = (written(&self.sink), self.detail.as_ref().and_then(written));
        if let SourceAddress::Kafka(read) = &self.source {
            for (flag, topic) in [("--sink", &sink), ("--detail", &detail)] {
                if topic.as_ref() == Some(read) {
                    return Err(RunUsage::OwnInput { flag });
                }
            }
        }
        if sink.is_some() && sink == detail { Err(RunUsage::OneOutput) } else { Ok(()) }
    }
}

/// Says what the job consists of.
///
/// # Errors
/// [`RunError`].
pub(crate) fn explain(args: &RunArgs) -> Result<(), RunError> {
    let explained = explain_job(NAME, &args.settings, |env| job::build(env, args).map(drop))?;
    stdout::text(explained);
    Ok(())
}

/// Runs the job to its end.
///
/// # Errors
/// [`RunError`].
pub(crate) fn run(args: &RunArgs) -> Result<(), RunError> {
    let Backend::Hashmap = args.settings.backend;
    if let Some(warning) = args.warning() {
        eprintln!("orders: warning: {warning}");
    }
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
    if let Some(hint) = outcome.as_ref().err().and_then(|error| args.hint(&error.to_string())) {
        eprintln!("orders: {hint}");
    }
    outcome.map(drop)
}

/// What a connector says of a table that has not the key it is written by.
const UNFIT_KEY: &str = "is neither its primary key nor a unique key";

#[cfg(feature = "mysql")]
#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Line {
        #[command(flatten)]
        run: RunArgs,
    }

    #[cfg(feature = "rdkafka")]
    #[test]
    fn a_topic_has_one_part_in_a_job() {
        let run = |sink: &str, detail: &str| {
            let line = ["orders", "--source=kafka://h:1/in", "--checkpoints=c", sink, detail];
            Line::try_parse_from(line).unwrap().run.check_own()
        };
        let (own, other) = ("--sink=kafka://h:1/in", "--sink=kafka://h:1/out");
        assert_eq!(run(own, "--detail=kafka://h:1/out"), Err(RunUsage::OwnInput { flag: "--sink" }));
        assert_eq!(run(other, "--detail=kafka://h:1/in"), Err(RunUsage::OwnInput { flag: "--detail" }));
        assert_eq!(run(other, "--detail=kafka://h:1/out"), Err(RunUsage::OneOutput));
        assert_eq!(run(other, "--detail=kafka://h:1/more"), Ok(()));
    }

    fn run_into(sink: &str, mode: &str) -> RunArgs {
        let line = ["orders", "--source=datagen", "--checkpoints=c", &format!("--sink={sink}"), mode];
        Line::try_parse_from(line).unwrap().run
    }

    #[test]
    fn a_sink_without_the_promise_is_warned_of_where_the_promise_is_asked_for() {
        let address = |mode| format!("mysql://u:s3cret@h:1/d?mode={mode}");
        let warning = |mode, of| run_into(&address(mode), of).warning();
        assert!(warning("plain", "--mode=exactly-once").unwrap().contains("twice"));
        assert_eq!(warning("plain", "--mode=at-least-once"), None);
        for mode in ["xa", "staging", "upsert"] {
            assert_eq!(warning(mode, "--mode=exactly-once"), None, "{mode}");
        }
    }

    #[test]
    fn a_table_without_the_key_of_an_upsert_is_made_by_orders_tables() {
        let refused = format!("(order_id) {UNFIT_KEY}");
        let of = |mode| run_into(&format!("mysql://u:s3cret@h:1/d?mode={mode}"), "--mode=exactly-once");
        let hint = of("upsert").hint(&refused).unwrap();
        assert!(
            hint.contains("orders tables") && hint.contains("h:1/d") && !hint.contains("s3cret"),
            "{hint}"
        );
        assert_eq!(of("upsert").hint("no space left"), None);
        assert_eq!(of("xa").hint(&refused), None);
    }
}
