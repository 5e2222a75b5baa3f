//! `benches kafka-source`: a topic read to its end and decoded from JSON, beside a bare consumer loop of librdkafka with the
//! same decoding.
//!
//! The loop by hand runs twice: with librdkafka's own settings, which pause a partition for a second whenever its queue is full, and with
//! those of the source. The target is measured against the second, the faster one.
//!
//! All read the same topic, four partitions, read_committed, from the beginning to where it ended when the run began (the slow loop with
//! librdkafka's own settings reads an eighth of it); the loop by hand on as many threads as the job has subtasks.
//!
//! A run is some seconds long, so that the tenth of a second that a job takes to start and to end does not count.
//!
//! Owns: the candidates. Does not own: the source. Runs on: the main thread, and on threads of the loop by hand.

use std::time::Duration;

use clap::Args;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::{ClientConfig, Message, Offset, TopicPartitionList};
use tidegate_connectors::blackhole::BlackholeSink;
use tidegate_connectors::kafka::{KafkaSource, StoppingOffsets};
use tidegate_engine::api::StreamEnvironment;

use super::topic::{Topic, kafka};
use super::{Order, Server, ServerOptions};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, ratio};
use crate::job::{JobSetup, run_job};
use crate::options::{CommonOptions, machine_load};
use crate::stopwatch::Stopwatch;

/// Flags of `benches kafka-source`.
#[derive(Clone, Debug, Args)]
pub(crate) struct KafkaSourceOptions {
    /// Records in the topic
    #[arg(long, default_value_t = 6_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    #[command(flatten)]
    pub(crate) servers: ServerOptions,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const PARTITIONS: u64 = 4;
const BY_HAND: &str = "consumer loop by hand, the source's settings";
const UNTUNED: &str = "consumer loop by hand, librdkafka's settings";
const OURS: &str = "tidegate source";
/// What the source sets where its user does not.
const TUNED: [(&str, &str); 4] = [
    ("queued.max.messages.kbytes", "16384"),
    ("fetch.max.bytes", "8388608"),
    ("fetch.wait.max.ms", "100"),
    ("fetch.queue.backoff.ms", "5"),
];
const GROUPS: [(&str, u32); 2] = [("one thread", 1), ("two threads", 2)];
/// A consumer that is told nothing for so long has failed.
const SILENCE: Duration = Duration::from_secs(30);

/// Runs it.
///
/// # Errors
/// The first candidate that fails, or a broker that does.
pub(crate) fn run(options: &KafkaSourceOptions) -> Result<Outcome, BenchError> {
    let broker = Server::kafka(&options.servers)?;
    let topic = Topic::make(&broker.address, &format!("bench-source-{}", std::process::id()), 4)?;
    eprintln!("filling a topic with {} records", options.records);
    topic.fill(options.records, PARTITIONS)?;
    let load = machine_load();
    let records = options.records;
    let untuned = part_of(records);
    let mut candidates = Vec::new();
    for (group, threads) in GROUPS {
        let topic = &topic;
        candidates.push(Candidate::new(group, UNTUNED, move |_| by_hand(topic, threads, untuned, &[])));
        candidates.push(Candidate::new(group, BY_HAND, move |_| by_hand(topic, threads, records, &TUNED)));
        candidates.push(Candidate::new(group, OURS, move |_| job(topic, threads, records)));
    }
    let measured = options.common.rounds(records).measure(candidates)?;
    let mut outcome = options.common.outcome("kafka-source", measured, load).setting("records", records);
    for (group, _) in GROUPS {
        let rate = |name: &str| outcome.median(group, name, Run::rate);
        let over = ratio(rate(OURS), rate(BY_HAND));
        outcome.figure(&format!("{group}: over by hand"), over);
        outcome.at_least(&format!("{group}: source over consumer loop"), over, 0.9);
    }
    Ok(outcome)
}

/// An eighth, the same of each partition; to read all of them without tuning would take longer than everything else together.
fn part_of(records: u64) -> u64 {
    let part = records / 8 / PARTITIONS * PARTITIONS;
    if part == 0 { records } else { part }
}

fn job(topic: &Topic, parallelism: u32, records: u64) -> Result<Run, BenchError> {
    let (env, sink) = (StreamEnvironment::new(), BlackholeSink::<Order>::new());
    let source = KafkaSource::<Order>::json(&topic.bootstrap, &topic.name).bounded(StoppingOffsets::Latest);
    env.source("orders", source).sink("blackhole", sink.clone());
    let setup = JobSetup { candidate: OURS, parallelism, checkpoint_every: None };
    run_job(env, setup, records, records, || sink.records())
}

fn by_hand(
    topic: &Topic,
    threads: u32,
    records: u64,
    settings: &'static [(&str, &str)],
) -> Result<Run, BenchError> {
    let watch = Stopwatch::start();
    let consumed = std::thread::scope(|scope| {
        let share = records.div_ceil(u64::from(threads));
        let parts =
            (0..threads).map(|thread| scope.spawn(move || consume(topic, thread, threads, share, settings)));
        let parts: Vec<_> = parts.collect();
        let counts = parts.into_iter().map(|part| part.join().unwrap_or(Ok(0)));
        counts.sum::<Result<u64, BenchError>>()
    })?;
    let run = watch.stop(records);
    if consumed != records {
        let candidate = BY_HAND.to_owned();
        return Err(BenchError::WrongResult { candidate, got: consumed, expected: records });
    }
    Ok(run)
}

/// One consumer with its share of the partitions, from their beginning to their end, or until it has its share of the records.
fn consume(
    topic: &Topic,
    thread: u32,
    threads: u32,
    share: u64,
    settings: &[(&str, &str)],
) -> Result<u64, BenchError> {
    let failed = kafka("consuming by hand");
    let mut client = ClientConfig::new();
    for (key, value) in settings {
        client.set(*key, *value);
    }
    let consumer: BaseConsumer = client
        .set("bootstrap.servers", &topic.bootstrap)
        .set("group.id", "bench-by-hand")
        .set("enable.auto.commit", "false")
        .set("isolation.level", "read_committed")
        .create()
        .map_err(&failed)?;
    let (mut list, mut ends) = (TopicPartitionList::new(), Vec::new());
    for partition in (0..4_i32).filter(|partition| partition.unsigned_abs() % threads == thread) {
        list.add_partition_offset(&topic.name, partition, Offset::Beginning).map_err(&failed)?;
        let (_, end) = consumer.fetch_watermarks(&topic.name, partition, SILENCE).map_err(&failed)?;
        ends.push((partition, end));
    }
    consumer.assign(&list).map_err(&failed)?;
    let mut count = 0;
    while !ends.is_empty() && count < share {
        let Some(message) = consumer.poll(SILENCE) else {
            return Err(BenchError::Server { tried: "consuming by hand", said: "no record came".to_owned() });
        };
        let message = message.map_err(&failed)?;
        let order: Order = serde_json::from_slice(message.payload().unwrap_or_default())
            .map_err(|error| BenchError::Server { tried: "decoding by hand", said: error.to_string() })?;
        std::hint::black_box(&order);
        count += 1;
        let (partition, next) = (message.partition(), message.offset() + 1);
        ends.retain(|(own, end)| *own != partition || next < *end);
    }
    Ok(count)
}
