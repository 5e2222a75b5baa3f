//! `benches kafka-sink`: records written into a topic in transactions of a second, beside a bare transactional producer.
//!
//! Owns: the candidates. Does not own: the sink. Runs on: the main thread.

use std::time::Duration;

use clap::Args;
use rdkafka::ClientConfig;
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use rdkafka::types::RDKafkaErrorCode;
use tidegate_connectors::datagen::Datagen;
use tidegate_connectors::kafka::KafkaSink;
use tidegate_engine::api::StreamEnvironment;

use super::topic::{Topic, kafka};
use super::{Order, Server, ServerOptions};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, ratio};
use crate::job::{JobSetup, run_job};
use crate::options::{CommonOptions, machine_load};
use crate::stopwatch::Stopwatch;

/// Flags of `benches kafka-sink`.
#[derive(Clone, Debug, Args)]
pub(crate) struct KafkaSinkOptions {
    /// Records of each run; the start of a job and the look at its broker count too
    #[arg(long, default_value_t = 3_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    /// From one commit to the next
    #[arg(long, value_name = "MS", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) commit_interval_ms: u64,
    #[command(flatten)]
    pub(crate) servers: ServerOptions,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const GROUP: &str = "exactly once, JSON, one subtask";
const BY_HAND: &str = "transactional producer by hand";
const OURS: &str = "tidegate sink";
const PARTITIONS: i32 = 3;
const PATIENCE: Duration = Duration::from_secs(60);
/// As both use it: what a producer waits for a batch to fill.
const LINGER_MS: &str = "20";
/// The loop by hand looks at the clock so often.
const RECORDS_BETWEEN_LOOKS: u64 = 1_024;

/// Runs it.
///
/// # Errors
/// The first candidate that fails, or a broker that does.
pub(crate) fn run(options: &KafkaSinkOptions) -> Result<Outcome, BenchError> {
    let broker = Server::kafka(&options.servers)?;
    let topic = Topic::make(&broker.address, &format!("bench-sink-{}", std::process::id()), PARTITIONS)?;
    let (load, every) = (machine_load(), Duration::from_millis(options.commit_interval_ms));
    let topic = &topic;
    let candidates = vec![
        Candidate::new(GROUP, BY_HAND, move |records| by_hand(topic, every, records)),
        Candidate::new(GROUP, OURS, move |records| job(topic, every, records)),
    ];
    let measured = options.common.rounds(options.records).measure(candidates)?;
    let mut outcome = options
        .common
        .outcome("kafka-sink", measured, load)
        .setting("records", options.records)
        .setting("commit_interval_ms", options.commit_interval_ms);
    let rate = |name: &str| outcome.median(GROUP, name, Run::rate);
    let over = ratio(rate(OURS), rate(BY_HAND));
    outcome.figure("over by hand", over);
    outcome.at_least("sink over transactional producer", over, 0.9);
    Ok(outcome)
}

fn job(topic: &Topic, every: Duration, records: u64) -> Result<Run, BenchError> {
    let env = StreamEnvironment::new();
    let sink = KafkaSink::<Order>::json(&topic.bootstrap, &topic.name).property("linger.ms", LINGER_MS);
    env.source("orders", Datagen::new(Order::make).bounded(records)).sink("topic", sink);
    let setup = JobSetup { candidate: OURS, parallelism: 1, checkpoint_every: Some(every) };
    let (ends, mut failed) = (topic.ends(PARTITIONS)?, None);
    let count = || {
        topic.committed_behind(&ends, records).unwrap_or_else(|error| {
            failed = Some(error);
            0
        })
    };
    let run = run_job(env, setup, records, records, count);
    failed.map_or(run, Err)
}

fn by_hand(topic: &Topic, every: Duration, records: u64) -> Result<Run, BenchError> {
    let (ends, failed) = (topic.ends(PARTITIONS)?, kafka("producing by hand"));
    let watch = Stopwatch::start();
    let producer: ThreadedProducer<DefaultProducerContext> = ClientConfig::new()
        .set("bootstrap.servers", &topic.bootstrap)
        .set("transactional.id", format!("bench-by-hand-{}", std::process::id()))
        .set("linger.ms", LINGER_MS)
        .create()
        .map_err(&failed)?;
    producer.init_transactions(PATIENCE).map_err(&failed)?;
    producer.begin_transaction().map_err(&failed)?;
    let mut committed_at = watch.elapsed();
    for index in 0..records {
        send(&producer, &topic.name, &Order::make(index))?;
        if index % RECORDS_BETWEEN_LOOKS == 0 && watch.elapsed() - committed_at >= every {
            producer.commit_transaction(PATIENCE).map_err(&failed)?;
            producer.begin_transaction().map_err(&failed)?;
            committed_at = watch.elapsed();
        }
    }
    producer.commit_transaction(PATIENCE).map_err(&failed)?;
    let run = watch.stop(records);
    match topic.committed_behind(&ends, records)? {
        got if got == records => Ok(run),
        got => Err(BenchError::WrongResult { candidate: BY_HAND.to_owned(), got, expected: records }),
    }
}

fn send(
    producer: &ThreadedProducer<DefaultProducerContext>,
    topic: &str,
    order: &Order,
) -> Result<(), BenchError> {
    let payload = serde_json::to_vec(order).unwrap_or_default();
    let mut record = BaseRecord::<(), [u8]>::to(topic).payload(&payload);
    while let Err((error, back)) = producer.send(record) {
        if error != KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) {
            return Err(kafka("producing by hand")(error));
        }
        producer.poll(Duration::from_millis(5));
        record = back;
    }
    Ok(())
}
