//! What one seed runs: input, graph and sizes.
//!
//! Owns: the drawing of a scenario. Does not own: faults. Runs on: the simulation's thread.

use std::sync::{Arc, Mutex};

use tidegate_state::value;

use super::database::{Database, Row};
use super::rng::Rng;
use super::sink::{Line, SimSink};
use super::source::{Record, SimSource};
use crate::api::StreamEnvironment;
use crate::checkpoint::CheckpointConfig;
use crate::error::{EngineError, JobError};
use crate::execution::ExecutionConfig;
use crate::graph::JobGraph;
use crate::operator::Output;
use crate::operator::keyed_process::{KeyedContext, KeyedFunction};
use crate::operator::process_function::ProcessFunction;
use crate::operator::watermarks::Watermarks;

/// Timers fire this long after their record.
pub const TIMER_AFTER_MS: i64 = 10;
/// Uid of the sink that logs each record.
pub const LOG_SINK: &str = "log_sink";
/// Uid of the sink of the tally.
pub const TALLY_SINK: &str = "tally_sink";
/// Uid of the sink of totals and timers.
pub const TOTAL_SINK: &str = "total_sink";

/// One seed's job.
#[derive(Debug)]
pub struct Scenario {
    /// The input of each source, by partition.
    pub inputs: Vec<Arc<Vec<Vec<Record>>>>,
    /// Settings.
    pub config: ExecutionConfig,
    /// Subtasks of each kind of vertex at the first start.
    pub pending_one_in: u64,
    has_log_sink: bool,
    has_map: bool,
    /// Subtasks of the tally; fixed, like those in front of it, since a partly ended one restores at no other parallelism.
    tally: u32,
    /// Draws the parallelism in front of the tally, the same at each start.
    front: Rng,
}

/// Running totals with a timer per record time.
#[derive(Clone, Debug)]
struct Totals;

#[derive(Clone, Debug, Default, tidegate_state::StateType)]
struct Total {
    count: u64,
    sum: u64,
}

type TotalState = tidegate_state::ValueDeclaration<Total>;

impl KeyedFunction<u64, Record, TotalState, Row> for Totals {
    fn process(
        &mut self,
        record: Record,
        state: &mut tidegate_state::ValueState<'_, Total>,
        context: &mut KeyedContext<'_, u64>,
        out: &mut Output<Row>,
    ) -> Result<(), JobError> {
        let total = state.update(|t| {
            t.count += 1;
            t.sum += record.value;
        })?;
        out.emit(Row::Total { key: record.key, count: total.count, sum: total.sum });
        context.register_event_timer(record.time + TIMER_AFTER_MS);
        Ok(())
    }

    fn on_timer(
        &mut self,
        at_ms: i64,
        _state: &mut tidegate_state::ValueState<'_, Total>,
        context: &mut KeyedContext<'_, u64>,
        out: &mut Output<Row>,
    ) -> Result<(), JobError> {
        out.emit(Row::Timer { key: *context.key(), at: at_ms });
        Ok(())
    }
}

/// Counts the records of its subtask and says so at the end.
#[derive(Clone, Debug)]
struct Tally {
    records: u64,
}

impl ProcessFunction<Record, Row> for Tally {
    type State = u64;
    const HAS_ON_END: bool = true;

    fn process(
        &mut self,
        _record: Record,
        _time: Option<i64>,
        _out: &mut Output<Row>,
    ) -> Result<(), JobError> {
        self.records += 1;
        Ok(())
    }

    fn on_end(&mut self, out: &mut Output<Row>) -> Result<(), JobError> {
        out.emit(Row::Tally { records: self.records });
        Ok(())
    }

    fn snapshot(&self) -> Vec<u64> {
        vec![self.records]
    }

    fn restore(&mut self, state: Vec<u64>) {
        self.records = state.into_iter().sum();
    }
}

impl Scenario {
    /// Draws a scenario.
    pub fn draw(rng: &mut Rng) -> Self {
        let sources = rng.between(1, 2);
        let records = rng.between(1_000, 1_400);
        let keys = rng.between(1, 60);
        let mut id = 0;
        let inputs = (0..sources)
            .map(|_| Arc::new(draw_partitions(rng, records / sources + 1, keys, &mut id)))
            .collect();
        let checkpoints = CheckpointConfig {
            interval_ms: rng.between(4, 25),
            timeout_ms: rng.between(1_000, 3_000),
            max_concurrent: u32::try_from(rng.between(1, 2)).unwrap_or(1),
            tolerable_failures: u32::try_from(rng.between(1, 4)).unwrap_or(1),
            retained: u32::try_from(rng.between(1, 3)).unwrap_or(1),
            ..CheckpointConfig::default()
        };
        let config = ExecutionConfig {
            batch_records: usize::try_from(rng.between(1, 32)).unwrap_or(1),
            batch_age_ms: rng.between(0, 3),
            channel_batches: u32::try_from(rng.between(1, 8)).unwrap_or(1),
            checkpoints,
            ..ExecutionConfig::default()
        };
        Self {
            inputs,
            config,
            pending_one_in: rng.between(3, 40),
            has_log_sink: !rng.one_in(4),
            has_map: rng.one_in(2),
            tally: u32::try_from(rng.below(4)).unwrap_or(0),
            front: rng.fork(),
        }
    }

    /// The graph, with parallelism drawn anew: each start may rescale.
    ///
    /// # Errors
    /// Never, unless the engine refuses its own graph.
    pub fn graph(&self, rng: &mut Rng, database: &Database, line: &Line) -> Result<JobGraph, EngineError> {
        let subtasks = |rng: &mut Rng| u32::try_from(rng.between(1, 4)).unwrap_or(1);
        let mut front = if self.tally > 0 { self.front.clone() } else { rng.fork() };
        let env = StreamEnvironment::new();
        let mut streams = Vec::new();
        for (index, partitions) in self.inputs.iter().enumerate() {
            let source = SimSource {
                partitions: Arc::clone(partitions),
                rng: Arc::new(Mutex::new(rng.fork())),
                pending_one_in: self.pending_one_in,
            };
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
        let sink = SimSink::new(database.clone(), line.clone());
        if self.has_log_sink {
            let rows = records.map(|r| Row::Event { id: r.id }).parallelism(subtasks(rng));
            let _ = rows.sink(LOG_SINK, sink.clone()).parallelism(subtasks(rng));
        }
        if self.tally > 0 {
            let tally = records.process_function("tally", Tally { records: 0 }).parallelism(self.tally);
            let _ = tally.sink(TALLY_SINK, sink.clone()).parallelism(subtasks(rng));
        }
        let totals = records.key_by(|r| r.key).process_with("totals", value::<Total>("total"), Totals);
        let _ = totals.parallelism(subtasks(rng)).sink(TOTAL_SINK, sink).parallelism(subtasks(rng));
        env.into_graph("simulated", 1, 16)
    }

    /// Compares what the database holds with the oracle.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, database: &Database) -> Result<(), String> {
        let input: Vec<Record> = self.inputs.iter().flat_map(|p| p.iter().flatten().copied()).collect();
        if self.has_log_sink {
            super::oracle::check_events(&input, &database.rows(LOG_SINK))?;
        }
        if self.tally > 0 {
            super::oracle::check_tally(&input, &database.rows(TALLY_SINK), self.tally)?;
        }
        super::oracle::check_totals(&input, &database.rows(TOTAL_SINK), TIMER_AFTER_MS)
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
