//! A job for scenario tests: numbers into a Kafka topic, exactly once.
//!
//! Owns: the job. Does not own: what is done to it. Runs on: a process of its own.

use tidegate::connectors::kafka::{KafkaSink, KafkaSource, StoppingOffsets};
use tidegate::prelude::*;

/// Writes numbers into a topic.
#[derive(Debug, Args)]
struct Numbers {
    /// How many, if they are not read from a topic.
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
    /// Reads them from this topic, to its end, for a group of the same name.
    #[arg(long)]
    from: Option<String>,
    /// Event times begin here, in milliseconds since 1970, a millisecond for each number; without it there are none.
    #[arg(long)]
    first_ms: Option<i64>,
}

fn build(env: &StreamEnvironment, args: &Numbers) -> Result<()> {
    let sink = KafkaSink::<u64>::json(&args.kafka, &args.topic).key(|number| number.to_string());
    if let Some(from) = &args.from {
        let source = KafkaSource::<u64>::json(&args.kafka, from).group(from).bounded(StoppingOffsets::Latest);
        let source = source.rate_per_second(args.rate);
        env.source("numbers", source).sink("numbers_topic", sink.source_offsets());
    } else {
        let source = Datagen::new(|index| index).bounded(args.count).rate_per_second(args.rate);
        let mut numbers = env.source("numbers", source);
        if let Some(first_ms) = args.first_ms {
            let times = Watermarks::ascending();
            let times = times.event_time(move |number: &u64| first_ms.saturating_add_unsigned(*number));
            numbers = numbers.watermarks(times);
        }
        numbers.sink("numbers_topic", sink);
    }
    Ok(())
}

fn main() -> ExitCode {
    tidegate::launch("kafka-numbers", build)
}
