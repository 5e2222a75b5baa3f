//! Benchmarks of Tidegate, with their peers and the loop written by hand beside them.
//!
//! `benches <name>` runs the candidates of one benchmark interleaved, several rounds, and prints min, median and max; `--json`
//! adds one object as the last line, `--report FILE` writes a page with bars. Build it with the release profile.
//!
//! Owns: the command line. Does not own: any benchmark. Runs on: the main thread.

mod chain;
mod error;
mod exchange;
mod harness;
mod job;
mod keyed_sum;
mod latency;
mod live_job;
mod options;
mod report;
#[cfg(feature = "servers")]
mod servers;
mod snapshot;
mod stopwatch;
mod subtasks;
mod timed_sink;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::error::BenchError;

#[derive(Debug, Parser)]
#[command(name = "benches", version, about = "Benchmarks, peers side by side")]
struct Arguments {
    #[command(subcommand)]
    benchmark: Benchmark,
}

#[derive(Debug, Subcommand)]
enum Benchmark {
    /// map → filter → map: three operators, one pipe, and the loop by hand
    Chain(chain::ChainOptions),
    /// A running sum per key: exchange, keyed state, checkpoints
    KeyedSum(keyed_sum::KeyedSumOptions),
    /// A shuffle by key and nothing else, with records of three sizes
    Exchange(exchange::ExchangeOptions),
    /// What a snapshot costs the slot that takes it, how long it takes, and how long a restore does
    Snapshot(snapshot::SnapshotOptions),
    /// From source to sink at a tenth of full speed, and the CPU of an idle job
    Latency(latency::LatencyOptions),
    /// 10 vertices of 100 subtasks, all-to-all: start, memory, a checkpoint of all of them
    Subtasks(subtasks::SubtasksOptions),
    /// A topic read and decoded, beside a consumer loop
    #[cfg(feature = "rdkafka")]
    KafkaSource(servers::kafka_source::KafkaSourceOptions),
    /// Transactions into a topic, beside a transactional producer
    #[cfg(feature = "rdkafka")]
    KafkaSink(servers::kafka_sink::KafkaSinkOptions),
    /// XA transactions into a table, beside multi-row inserts
    #[cfg(feature = "mysql")]
    MysqlSink(servers::mysql_sink::MysqlSinkOptions),
    /// From Kafka to a visible row
    #[cfg(all(feature = "mysql", feature = "rdkafka"))]
    ChainLatency(servers::chain_latency::ChainLatencyOptions),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    if cfg!(debug_assertions) {
        eprintln!("note: this is not the release profile; its figures say nothing about speed");
    }
    match run(&arguments.benchmark) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            let mut cause = std::error::Error::source(&error);
            while let Some(source) = cause {
                eprintln!("  because {source}");
                cause = source.source();
            }
            ExitCode::FAILURE
        }
    }
}

fn run(benchmark: &Benchmark) -> Result<(), BenchError> {
    let (outcome, common) = match benchmark {
        Benchmark::Chain(options) => (chain::run(options)?, &options.common),
        Benchmark::KeyedSum(options) => (keyed_sum::run(options)?, &options.common),
        Benchmark::Exchange(options) => (exchange::run(options)?, &options.common),
        Benchmark::Snapshot(options) => (snapshot::run(options)?, &options.common),
        Benchmark::Latency(options) => (latency::run(options)?, &options.common),
        Benchmark::Subtasks(options) if options.inside => return subtasks::run_inside(options),
        Benchmark::Subtasks(options) => (subtasks::run(options)?, &options.common),
        #[cfg(feature = "rdkafka")]
        Benchmark::KafkaSource(options) => (servers::kafka_source::run(options)?, &options.common),
        #[cfg(feature = "rdkafka")]
        Benchmark::KafkaSink(options) => (servers::kafka_sink::run(options)?, &options.common),
        #[cfg(feature = "mysql")]
        Benchmark::MysqlSink(options) => (servers::mysql_sink::run(options)?, &options.common),
        #[cfg(all(feature = "mysql", feature = "rdkafka"))]
        Benchmark::ChainLatency(options) => (servers::chain_latency::run(options)?, &options.common),
    };
    report::show(&outcome, common.json, common.report.as_deref())
}
