//! `benches chain-latency`: from a record's making, through a Kafka topic and the job, to the moment at which another connection sees its
//! row, committed by XA.
//!
//! A producer writes orders at a steady rate, each with the time of its making; a reader asks the table for new rows again and
//! again. A row is visible once the checkpoint behind it is complete and its branch is committed, so it waits for half an interval on average and
//! for a whole one at worst; what comes on top is ours.
//!
//! Owns: producer, reader, the job. Does not own: source and sink. Runs on: the main thread, a producer and a reader.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use mysql_async::prelude::Queryable;
use rdkafka::ClientConfig;
use rdkafka::producer::{BaseRecord, DefaultProducerContext, Producer, ThreadedProducer};
use tidegate_connectors::kafka::KafkaSource;
use tidegate_connectors::mysql::MysqlSink;
use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::clock::{Clock, Moment, SystemClock};
use tidegate_engine::execution::ExecutionNotice;
use tidegate_engine::ids::CheckpointId;
use tidegate_engine::jobmanager::MasterNotice;

use super::tables::{Table, connect, mysql};
use super::topic::{Topic, kafka};
use super::{Order, Server, ServerOptions, block_on};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, Samples};
use crate::live_job::{LiveJob, pause};
use crate::options::{CommonOptions, machine_load};
use crate::stopwatch::Stopwatch;

/// Flags of `benches chain-latency`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChainLatencyOptions {
    /// Checkpoint interval
    #[arg(long, value_name = "MS", default_value_t = 200, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) interval_ms: u64,
    /// Records per second
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) rate: u64,
    /// Seconds of each run; the first is a warm-up
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(2..=120))]
    pub(crate) seconds: u64,
    #[command(flatten)]
    pub(crate) servers: ServerOptions,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const GROUP: &str = "Kafka to a visible row, XA";
const OURS: &str = "tidegate job";
const PARTITIONS: i32 = 2;
/// What may come on top of the interval.
const ON_TOP_MS: f64 = 100.0;
/// Between two looks at the table.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Between two bursts of the producer.
const BURST_EVERY: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(60);
/// Records of the first second are not measured: the source still looks for its leaders, the first sessions are still being opened.
const WARM_UP_S: u64 = 1;

/// Runs it.
///
/// # Errors
/// The first run that fails, or a server that does.
pub(crate) fn run(options: &ChainLatencyOptions) -> Result<Outcome, BenchError> {
    let (broker, database) = (Server::kafka(&options.servers)?, Server::mysql(&options.servers)?);
    let (load, records) = (machine_load(), options.rate * options.seconds);
    let mut round = 0;
    let ours = Candidate::new(GROUP, OURS, |records| {
        round += 1;
        let name = format!("bench_latency_{}_{round}", std::process::id());
        let topic = Topic::make(&broker.address, &name, PARTITIONS)?;
        let table = Table::make(&database.address, &name)?;
        measure(options, &topic, &table, records)
    });
    let measured = options.common.rounds(records).measure(vec![ours])?;
    let outcome = options
        .common
        .outcome("chain-latency", measured, load)
        .setting("interval_ms", options.interval_ms)
        .setting("records_per_s", options.rate);
    let mut outcome = outcome.showing(&["p50_ms", "p99_ms", "stored_p50_ms", "committed_p50_ms"]);
    let p99 = outcome.note(GROUP, OURS, "p99_ms").map(|spread| spread.median);
    outcome.figure("p99_ms", p99);
    outcome.at_most("p99 from making to visible row, ms", p99, options.interval_ms as f64 + ON_TOP_MS);
    Ok(outcome)
}

fn measure(
    options: &ChainLatencyOptions,
    topic: &Topic,
    table: &Table,
    records: u64,
) -> Result<Run, BenchError> {
    let folder = tempfile::tempdir().map_err(|source| BenchError::Folder { source })?;
    let env = StreamEnvironment::new();
    let sink = MysqlSink::table(&table.url, &table.name)
        .column("order_id", |order: &Order| order.order_id)
        .column("user_id", |order| order.user_id)
        .column("amount_cents", |order| order.amount_cents)
        .text("status", |order| &order.status)
        .column("event_time_ms", |order| order.event_time_ms)
        .append();
    env.source("orders", KafkaSource::<Order>::json(&topic.bootstrap, &topic.name)).sink("table", sink);
    let job = LiveJob {
        candidate: OURS,
        parallelism: 2,
        checkpoints: Some((Duration::from_millis(options.interval_ms), folder.path())),
        batch_age_ms: 5,
    };
    let (ready, over) = (Arc::new(AtomicBool::new(false)), AtomicBool::new(false));
    let mut parts = Parts::new();
    // The harness's own first run is shorter.
    let warm_up = (options.rate * WARM_UP_S).min(records / 2);
    let watch = Stopwatch::start();
    let samples = std::thread::scope(|scope| {
        let producer = scope.spawn(|| produce(topic, options.rate, records, &ready, &over));
        let (cancel_tx, cancel_rx) = std::sync::mpsc::sync_channel(1);
        let over_now = &over;
        let reader = scope.spawn(move || {
            let seen = block_on(look(table, records, warm_up, over_now));
            if let Ok(cancel) = cancel_rx.recv_timeout(PATIENCE) {
                let cancel: tidegate_engine::execution::CancelHandle = cancel;
                cancel.cancel();
            }
            seen
        });
        let ran = job.run(env, |notice, cancel| {
            parts.note(notice);
            if let ExecutionNotice::Master(MasterNotice::Recovered { .. }) = notice
                && !ready.swap(true, Ordering::AcqRel)
            {
                let _ = cancel_tx.send(cancel.clone());
            }
        });
        over.store(true, Ordering::Release);
        // A reader that waits for a job that was never ready need not wait on.
        drop(cancel_tx);
        ran?;
        let ended = |_| BenchError::Unmeasured { candidate: OURS };
        producer.join().map_err(ended)??;
        reader.join().map_err(ended)??
    })?;
    let run = watch.stop(records);
    let expected = records - warm_up;
    if samples.count() != expected {
        let (candidate, got) = (OURS.to_owned(), samples.count());
        return Err(BenchError::WrongResult { candidate, got, expected });
    }
    let at = |percent| samples.percentile_ms(percent).unwrap_or_default();
    Ok(run
        .note("p50_ms", at(50.0))
        .note("p90_ms", at(90.0))
        .note("p99_ms", at(99.0))
        .note("max_ms", samples.max_ms().unwrap_or_default())
        .note("stored_p50_ms", parts.stored.percentile_ms(50.0).unwrap_or_default())
        .note("stored_max_ms", parts.stored.max_ms().unwrap_or_default())
        .note("committed_p50_ms", parts.committed.percentile_ms(50.0).unwrap_or_default())
        .note("committed_max_ms", parts.committed.max_ms().unwrap_or_default()))
}

/// What a row waits for beside the next trigger.
struct Parts {
    clock: SystemClock,
    /// From a checkpoint's trigger to its entry in the log: barriers, XA PREPARE, files.
    stored: Samples,
    /// From the entry to the last branch's commit.
    committed: Samples,
    /// Complete, and not yet reported as committed.
    complete: BTreeMap<CheckpointId, Moment>,
}

impl Parts {
    fn new() -> Self {
        let (stored, committed) = (Samples::default(), Samples::default());
        Self { clock: SystemClock::new(), stored, committed, complete: BTreeMap::new() }
    }

    fn note(&mut self, notice: &ExecutionNotice) {
        match notice {
            ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) => {
                self.stored.add(stats.end_to_end);
                self.complete.insert(stats.id, self.clock.now());
            }
            ExecutionNotice::Master(MasterNotice::Committed { up_to }) => {
                let (later, now) = (self.complete.split_off(&up_to.next()), self.clock.now());
                for at in std::mem::replace(&mut self.complete, later).into_values() {
                    self.committed.add(now.saturating_sub(at));
                }
            }
            _ => {}
        }
    }
}

/// Writes orders at a steady rate, once the job is ready.
fn produce(
    topic: &Topic,
    rate: u64,
    records: u64,
    ready: &AtomicBool,
    over: &AtomicBool,
) -> Result<(), BenchError> {
    let producer: ThreadedProducer<DefaultProducerContext> = ClientConfig::new()
        .set("bootstrap.servers", &topic.bootstrap)
        .set("linger.ms", "0")
        .create()
        .map_err(kafka("making a producer"))?;
    while !ready.load(Ordering::Acquire) {
        if !pause(BURST_EVERY, over) {
            return Ok(());
        }
    }
    let (clock, mut sent) = (SystemClock::new(), 0);
    while sent < records {
        let due = (clock.now().as_secs_f64() * rate as f64) as u64;
        while sent < due.min(records) {
            let order = Order { event_time_ms: clock.wall_ms(), ..Order::make(sent) };
            let payload = serde_json::to_vec(&order).unwrap_or_default();
            let partition = i32::try_from(sent % 2).unwrap_or(0);
            let record = BaseRecord::<(), [u8]>::to(&topic.name).payload(&payload).partition(partition);
            producer.send(record).map_err(|(error, _)| kafka("producing")(error))?;
            sent += 1;
        }
        if !pause(BURST_EVERY, over) {
            return Ok(());
        }
    }
    producer.flush(PATIENCE).map_err(kafka("producing"))
}

/// Asks for rows that were not there before, until all are; the first `warm_up` of them are not measured.
async fn look(table: &Table, records: u64, warm_up: u64, over: &AtomicBool) -> Result<Samples, BenchError> {
    let failed = mysql("looking at the table");
    let (mut conn, clock) = (connect(&table.url).await?, SystemClock::new());
    let (mut samples, mut seen, mut low) = (Samples::default(), BTreeSet::new(), 0);
    let query = format!("SELECT order_id, event_time_ms FROM {} WHERE order_id >= ?", table.name);
    while low < records && pause(LOOK_EVERY, over) {
        let rows: Vec<(u64, i64)> = conn.exec(&query, (low,)).await.map_err(&failed)?;
        let now = clock.wall_ms();
        for (order, made_ms) in
            rows.into_iter().filter(|(order, _)| !seen.contains(order)).collect::<Vec<_>>()
        {
            seen.insert(order);
            if order >= warm_up {
                samples.add(Duration::from_millis(u64::try_from(now - made_ms).unwrap_or(0)));
            }
        }
        // What lies below is all there, and is not asked for again.
        while seen.remove(&low) {
            low += 1;
        }
    }
    conn.disconnect().await.map_err(&failed)?;
    Ok(samples)
}
