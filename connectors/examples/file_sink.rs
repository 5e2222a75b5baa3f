//! A job that writes numbers into part files, exactly once: one JSON line each, even and odd ones in folders of their own.
//!
//! ```text
//! cargo run -p tidegate-connectors --example file_sink -- out checkpoints
//! ```
//!
//! Kill it and start it again: whoever reads only finished files finds each number once. `TIDEGATE_FAULT=file_sink.link.after` kills it
//! between the link of a part and what follows.

use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use tidegate_connectors::datagen::Datagen;
use tidegate_connectors::file::FileSink;
use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::checkpoint::CheckpointConfig;
use tidegate_engine::execution::{ExecutionConfig, LocalRunner};
use tidegate_engine::fault::arm_from_env;
use tidegate_engine::state::CheckpointStorage;

const NUMBERS: u64 = 20_000;

#[derive(Clone, Serialize)]
struct Number {
    number: u64,
    parity: &'static str,
}

fn run(out: &str, checkpoints: &str, parallelism: u32) -> Result<(), Box<dyn std::error::Error>> {
    arm_from_env()?;
    let sink = FileSink::json_lines::<Number>(out)
        .bucket_by(|record| format!("parity={}", record.parity))
        .roll_at_bytes(16 * 1024)
        .roll_after(Duration::from_secs(60));
    let env = StreamEnvironment::new();
    env.source("numbers", Datagen::new(|index| index).bounded(NUMBERS).rate_per_second(60_000))
        .map(|number| Number { number, parity: if number % 2 == 0 { "even" } else { "odd" } })
        .rebalance()
        .sink("parts", sink);
    let graph = env.into_graph("numbers", parallelism, 16)?;
    let checkpointing = CheckpointConfig { interval_ms: 20, ..CheckpointConfig::default() };
    let config = ExecutionConfig { checkpoints: checkpointing, ..ExecutionConfig::default() };
    let storage = CheckpointStorage::open(checkpoints)?;
    let outcome = LocalRunner::new(graph, config, Some(storage))?.run(|_| {})?;
    println!("{outcome:?}");
    Ok(())
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [out, checkpoints, more @ ..] = arguments.as_slice() else {
        eprintln!("usage: file_sink OUT CHECKPOINTS [PARALLELISM]");
        return ExitCode::from(2);
    };
    let parallelism = more.first().and_then(|text| text.parse().ok()).unwrap_or(2);
    match run(out, checkpoints, parallelism) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
