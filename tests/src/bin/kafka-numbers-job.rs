//! A job for scenario tests: numbers into a Kafka topic, exactly once.
//!
//! Owns: the job. Does not own: what is done to it. Runs on: a process of its own.

use tidegate::connectors::kafka::KafkaSink;
use tidegate::prelude::*;

/// Writes numbers into a topic.
#[derive(Debug, Args)]
struct Numbers {
    /// How many.
    #[arg(long)]
    count: u64,
    /// At most so many a second.
    #[arg(long, default_value_t = 2_000)]
    rate: u64,
    /// The brokers.
    #[arg(long)]
    kafka: String,
    /// The topic.
    #[arg(long)]
    topic: String,
}

fn build(env: &StreamEnvironment, args: &Numbers) -> Result<()> {
    let source = Datagen::new(|index| index).bounded(args.count).rate_per_second(args.rate);
    let sink = KafkaSink::<u64>::json(&args.kafka, &args.topic).key(|number| number.to_string());
    env.source("numbers", source).sink("numbers_topic", sink);
    Ok(())
}

fn main() -> ExitCode {
    tidegate::launch("kafka-numbers", build)
}
