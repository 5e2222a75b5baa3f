//! What one seed runs: input, graph and sizes.
//!
//! Owns: the drawing of a scenario. Does not own: faults. Runs on: the simulation's thread.

use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex};

use tidegate_state::value;

use super::broker_sink::BrokerSink;
use super::coverage::SharedCoverage;
use super::database::{CommittedRows, Row};
use super::file_sink::FileSink;
use super::functions::{Failures, TIMER_AFTER_MS, Tally, Total, Totals};
use super::judge::{Cut, on_the_line};
use super::line::Line;
use super::options::SimOptions;
use super::rng::Rng;
use super::server::Server;
use super::sink::SimSink;
use super::source::{Partitions, Reading, Record, SimSource};
use super::subject::Subject;
use super::xa_sink::XaSink;
use crate::api::{DataStream, StreamEnvironment};
use crate::checkpoint::CheckpointConfig;
use crate::element::Batch;
use crate::error::{EngineError, JobError};
use crate::execution::ExecutionConfig;
use crate::graph::JobGraph;
use crate::ids::CheckpointId;
use crate::jobmanager::RestartStrategy;
use crate::operator::TransactionName;
use crate::operator::watermarks::Watermarks;

/// Uid of the sink that logs each record.
pub const LOG_SINK: &str = "log_sink";
/// Uid of the sink of the tally.
pub const TALLY_SINK: &str = "tally_sink";
/// Uid of the sink of totals and timers.
pub const TOTAL_SINK: &str = "total_sink";
/// Uid of the sink that adds to rows in place.
pub const ADD_SINK: &str = "add_sink";

/// One seed's job.
#[derive(Debug)]
pub struct Scenario {
    /// All records of the input.
    pub input: Vec<Record>,
    /// The input of each source.
    pub inputs: Vec<Partitions<Record>>,
    /// Settings.
    pub config: ExecutionConfig,
    /// How much of each partition has been written so far, in thousandths.
    pub written: Arc<AtomicU64>,
    /// The server.
    pub server: Server,
    pending_one_in: u64,
    pending_us_max: u64,
    parallelism_max: u64,
    has_log_sink: bool,
    has_map: bool,
    /// Adds to rows in place: only over XA, instead of the log-like sink.
    has_add_sink: bool,
    /// Subtasks of the tally; fixed, like those in front of it, since a partly ended one restores at no other parallelism.
    tally: u32,
    /// Draws the parallelism in front of the tally, the same at each start.
    front: Rng,
    failures: Failures,
}

impl Scenario {
    /// Draws a scenario.
    pub fn draw(
        rng: &mut Rng,
        options: &SimOptions,
        calm: Arc<AtomicBool>,
        coverage: SharedCoverage,
    ) -> Self {
        let sources = rng.between(1, 2);
        let batch_records = match rng.below(4) {
            0 => rng.between(13, 32),
            1 => rng.between(5, 12),
            _ => rng.between(1, 4),
        };
        // Enough records, or few enough channels, that the channel in the middle carries twenty batches.
        let records = if batch_records > 4 { rng.between(1_400, 2_400) } else { rng.between(1_000, 1_500) };
        let parallelism_max = (records / (20 * batch_records)).isqrt().clamp(1, 4);
        let records = records.min(options.records_max);
        let keys = rng.between(1, 60);
        let mut id = 0;
        let drawn: Vec<Vec<Vec<Record>>> =
            (0..sources).map(|_| draw_partitions(rng, records / sources + 1, keys, &mut id)).collect();
        let input = drawn.iter().flatten().flatten().copied().collect();
        let batches = |source: Vec<Vec<Record>>| source.into_iter().map(Batch::of).collect();
        let inputs = drawn.into_iter().map(|source| Partitions::of(batches(source))).collect();
        let server = Server::draw(rng, options.server);
        let has_add_sink = rng.one_in(2) && matches!(server, Server::Xa(_));
        let mut config = draw_config(rng, batch_records);
        if matches!(server, Server::Files(..)) {
            // Each part costs several calls of a slow disk: what is in flight in front of a barrier must fit into the timeout.
            config.checkpoints.timeout_ms *= 3;
        }
        let server = server.for_job(&config.checkpoints);
        let failures = Failures {
            rng: Arc::new(Mutex::new(rng.fork())),
            one_in: rng.between(300, 4_000),
            left: Arc::new(AtomicU64::new(if rng.one_in(3) && options.function_faults { 1 } else { 0 })),
            calm,
            coverage,
        };
        Self {
            input,
            inputs,
            config,
            written: Arc::new(AtomicU64::new(0)),
            server,
            pending_one_in: rng.between(3, 40),
            pending_us_max: if rng.one_in(4) { 60_000 } else { 6_000 },
            parallelism_max,
            // One source alone would leave a job of two vertices.
            has_log_sink: !rng.one_in(4) || sources == 1,
            has_map: rng.one_in(2),
            has_add_sink,
            tally: u32::try_from(rng.below(4)).unwrap_or(0),
            front: rng.fork(),
            failures,
        }
    }

    /// The graph, with parallelism drawn anew: each start may rescale. Its second part names the parallelism of the sinks.
    ///
    /// # Errors
    /// Never, unless the engine refuses its own graph.
    fn draw_graph(&self, rng: &mut Rng, line: &Line) -> Result<JobGraph, EngineError> {
        let most = self.parallelism_max;
        let subtasks = |rng: &mut Rng| u32::try_from(rng.between(1, most)).unwrap_or(1);
        let mut front = if self.tally > 0 { self.front.clone() } else { rng.fork() };
        let env = StreamEnvironment::new();
        let mut streams = Vec::new();
        for (index, partitions) in self.inputs.iter().enumerate() {
            let reading = Reading {
                rng: Arc::new(Mutex::new(rng.fork())),
                pending_one_in: self.pending_one_in,
                pending_us_max: self.pending_us_max,
                written: Arc::clone(&self.written),
            };
            let source = SimSource { partitions: partitions.clone(), reading };
            let subtasks = subtasks(&mut front);
            let stream = env.source(&format!("source_{index}"), source).parallelism(subtasks);
            let marks = Watermarks::bounded_out_of_orderness(std::time::Duration::from_millis(20 * 4_096));
            streams.push(stream.watermarks(marks.event_time(|r: &Record| r.time)).parallelism(subtasks));
        }
        let mut records = streams[0].clone();
        for other in &streams[1..] {
            records = records.union(other);
        }
        if self.has_map {
            records = records.map(|r| r).parallelism(subtasks(&mut front));
        }
        if self.has_add_sink
            && let Server::Xa(xa) = &self.server
        {
            let rows = records.map(|r| Row::Add { key: r.key, value: r.value }).parallelism(subtasks(rng));
            let sink = XaSink::new(xa.clone(), line.clone(), true);
            let by_key = rows.key_by(|row| if let Row::Add { key, .. } = row { *key } else { 0 });
            let _ = by_key.sink(ADD_SINK, sink).parallelism(subtasks(rng));
        } else if self.has_log_sink {
            let mut rows = records.map(|r| Row::Event { id: r.id }).parallelism(subtasks(rng));
            if self.inputs.len() == 1 {
                rows = rows.rebalance();
            }
            self.sink(&rows, LOG_SINK, line, subtasks(rng));
        }
        if self.tally > 0 {
            let tally = records.process_function("tally", Tally { records: 0 }).parallelism(self.tally);
            self.sink(&tally, TALLY_SINK, line, subtasks(rng));
        }
        let function = Totals { failures: self.failures.clone() };
        let totals = records.key_by(|r| r.key).process_with("totals", value::<Total>("total"), function);
        self.sink(&totals.parallelism(subtasks(rng)), TOTAL_SINK, line, subtasks(rng));
        env.into_graph("simulated", 1, 16)
    }

    fn sink(&self, rows: &DataStream<Row>, uid: &str, line: &Line, subtasks: u32) {
        let _ = match &self.server {
            Server::Staged(database) => {
                rows.sink(uid, SimSink::new(database.clone(), line.clone())).parallelism(subtasks)
            }
            Server::Xa(xa) => {
                rows.sink(uid, XaSink::new(xa.clone(), line.clone(), false)).parallelism(subtasks)
            }
            Server::Files(files, settings) => {
                rows.sink(uid, FileSink::new(files.clone(), line.clone(), *settings)).parallelism(subtasks)
            }
            Server::Broker(broker) => {
                rows.sink(uid, BrokerSink::new(broker.clone(), line.clone())).parallelism(subtasks)
            }
        };
    }

    /// Compares what was committed with the oracle.
    ///
    /// # Errors
    /// The first difference.
    fn check_rows(&self, committed: &[CommittedRows]) -> Result<(), String> {
        let input = &self.input;
        let rows = |uid: &str| -> Vec<Row> {
            let of_sink = committed.iter().filter(|c| c.name.scope.uid.as_str() == uid);
            of_sink.flat_map(|c| c.rows.iter().cloned()).collect()
        };
        if self.has_add_sink {
            super::oracle::check_sums(input, &rows(ADD_SINK))?;
        } else if self.has_log_sink {
            super::oracle::check_events(input, &rows(LOG_SINK))?;
        }
        if self.tally > 0 {
            super::oracle::check_tally(input, &rows(TALLY_SINK), self.tally)?;
        }
        super::oracle::check_totals(input, &rows(TOTAL_SINK), TIMER_AFTER_MS)
    }
}

impl Subject for Scenario {
    fn records(&self) -> u64 {
        self.input.len() as u64
    }

    /// With the most channels that a start may draw.
    fn batches_per_channel(&self) -> u64 {
        let channels = self.parallelism_max * self.parallelism_max;
        self.records() / (channels * self.config.batch_records as u64).max(1)
    }

    fn config(&self) -> &ExecutionConfig {
        &self.config
    }

    fn written(&self) -> &AtomicU64 {
        &self.written
    }

    fn has_files(&self) -> bool {
        matches!(self.server, Server::Files(..))
    }

    /// Rows added in place cannot be told apart.
    fn may_restore_explicitly(&self) -> bool {
        !self.has_add_sink
    }

    fn may_be_tampered_with(&self) -> bool {
        true
    }

    fn graph(&self, rng: &mut Rng, line: &Line) -> Result<JobGraph, JobError> {
        Ok(self.draw_graph(rng, line)?)
    }

    fn check(&self, cuts: &[Cut]) -> Result<(), String> {
        self.check_rows(&on_the_line(self.server.committed(), cuts))
    }

    fn settle(&self, now: u64) {
        self.server.settle(now);
    }

    fn next_due(&self) -> Option<u64> {
        self.server.next_due()
    }

    fn hides_for_us(&self) -> Option<u64> {
        self.server.hides_for_us()
    }

    fn hidden(&self) -> usize {
        self.server.hidden()
    }

    fn committed_sizes(&self) -> Vec<(CheckpointId, usize)> {
        self.server.committed().iter().map(|c| (c.closed_by, c.rows.len())).collect()
    }

    fn left_overs(&self) -> Vec<TransactionName> {
        self.server.left_overs()
    }

    fn prepared(&self) -> Vec<TransactionName> {
        self.server.prepared()
    }

    fn roll_back_by_hand(&self, name: &TransactionName) {
        self.server.roll_back_by_hand(name);
    }
}

pub(super) fn draw_config(rng: &mut Rng, batch_records: u64) -> ExecutionConfig {
    let checkpoints = CheckpointConfig {
        interval_ms: rng.between(4, 25),
        timeout_ms: rng.between(1_000, 3_000),
        max_concurrent: u32::try_from(rng.between(1, 2)).unwrap_or(1),
        tolerable_failures: u32::try_from(rng.between(1, 4)).unwrap_or(1),
        retained: u32::try_from(rng.between(1, 3)).unwrap_or(1),
        ..CheckpointConfig::default()
    };
    ExecutionConfig {
        batch_records: usize::try_from(batch_records).unwrap_or(1),
        batch_age_ms: rng.between(0, 3),
        channel_batches: u32::try_from(rng.between(1, 8)).unwrap_or(1),
        checkpoints,
        restart: RestartStrategy::ExponentialDelay { initial_ms: 20, max_ms: 1_000, reset_after_ms: 600_000 },
        ..ExecutionConfig::default()
    }
}

fn draw_partitions(rng: &mut Rng, records: u64, keys: u64, id: &mut u64) -> Vec<Vec<Record>> {
    let count = rng.between(1, 5);
    let mut partitions = vec![Vec::new(); usize::try_from(count).unwrap_or(1)];
    for index in 0..records {
        *id += 1;
        // Unique, so that a timer of a late record is never one that has fired already.
        let time = i64::try_from((index + rng.below(20)) * 4_096 + *id).unwrap_or(0);
        let record = Record { id: *id, key: rng.below(keys), value: rng.below(1_000), time };
        let partition = usize::try_from(rng.below(count)).unwrap_or(0);
        partitions[partition].push(record);
    }
    partitions
}
