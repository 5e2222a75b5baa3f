//! The jobs of `benches snapshot`: keyed sums at full speed under frequent checkpoints, then a restore.
//!
//! Owns: the graphs, when a job is ended. Does not own: the checkpoints. Runs on: the main thread.

use std::path::Path;
use std::time::Duration;

use tidegate_connectors::datagen::Datagen;
use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::checkpoint::stats::CheckpointStats;
use tidegate_engine::clock::{Moment, SystemClock};
use tidegate_engine::execution::ExecutionNotice;
use tidegate_engine::jobmanager::MasterNotice;
use tidegate_engine::operator::Output;
use tidegate_state::{map, value};

use super::STRIDE;
use crate::error::BenchError;
use crate::harness::{Run, Samples};
use crate::live_job::LiveJob;
use crate::stopwatch::Stopwatch;
use crate::timed_sink::TimedSink;

/// Slots, each with a source, a keyed operator and a sink.
const PARALLELISM: u32 = 2;

/// What state a job keeps.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    ValuePerKey,
    MapOfOneKey,
}

/// What checkpoints and restores have cost, over all rounds.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs {
    pub(super) end_to_end: Samples,
    pub(super) sync: Samples,
    pub(super) steps: Samples,
    pub(super) restores: Samples,
    parts: Parts,
    bytes: u64,
}

/// Where the time from trigger to entry goes.
#[derive(Clone, Debug, Default)]
struct Parts {
    /// From the trigger to the last acknowledgement.
    acks: Samples,
    /// From there to the log entry.
    entry: Samples,
    /// Of the slowest subtask: from its freeze to its acknowledgement.
    uploads: Samples,
    /// Of the slowest subtask: from the trigger to its freeze.
    barriers: Samples,
}

impl Parts {
    fn add(&mut self, stats: &CheckpointStats) {
        let Some(slowest) = &stats.slowest else { return };
        let costs = &slowest.costs;
        self.acks.add(slowest.after);
        self.entry.add(stats.end_to_end.saturating_sub(slowest.after));
        self.uploads.add(Duration::from_micros(costs.async_us));
        self.barriers.add(Duration::from_micros(costs.start_delay_us + costs.alignment_us));
    }
}

impl Costs {
    fn add(&mut self, stats: &CheckpointStats) {
        self.end_to_end.add(stats.end_to_end);
        self.sync.add(stats.longest_sync());
        self.steps.add(stats.longest_step());
        self.parts.add(stats);
        self.bytes = self.bytes.max(stats.size_bytes);
    }

    fn add_all(&mut self, other: &Self) {
        self.end_to_end.add_all(&other.end_to_end);
        self.sync.add_all(&other.sync);
        self.steps.add_all(&other.steps);
        self.restores.add_all(&other.restores);
        self.bytes = self.bytes.max(other.bytes);
    }
}

/// A job under frequent checkpoints.
#[derive(Clone, Copy, Debug)]
pub(super) struct SnapshotJob {
    pub(super) candidate: &'static str,
    pub(super) kind: Kind,
    /// It is ended after so many that hold all keys.
    pub(super) checkpoints: u32,
    pub(super) every_ms: u64,
}

type Sum = (u64, i64);

impl SnapshotJob {
    /// Runs it, then starts it again on the same folder.
    pub(super) fn run(&self, keys: u64, all: &mut Costs) -> Result<Run, BenchError> {
        let folder = tempfile::tempdir().map_err(|source| BenchError::Folder { source })?;
        let (mut costs, mut taken) = (Costs::default(), 0);
        let (env, sink) = self.graph(keys);
        let watch = Stopwatch::start();
        self.live(folder.path()).run(env, |notice, cancel| {
            let ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) = notice else { return };
            if sink.records() < 2 * keys || taken == self.checkpoints {
                return;
            }
            costs.add(stats);
            taken += 1;
            if taken == self.checkpoints {
                cancel.cancel();
            }
        })?;
        let run = watch.stop(sink.records());
        let (built, restored) = self.restore(keys, folder.path())?;
        costs.restores.add(restored);
        let built_ms = built.elapsed.as_secs_f64() * 1e3;
        all.add_all(&costs);
        let ms = |figure: Option<f64>| figure.unwrap_or_default();
        let rate = run.rate();
        Ok(run
            .note("end_to_end_ms_p50", ms(costs.end_to_end.percentile_ms(50.0)))
            .note("end_to_end_ms_max", ms(costs.end_to_end.max_ms()))
            .note("barriers_ms_p50", ms(costs.parts.barriers.percentile_ms(50.0)))
            .note("upload_ms_p50", ms(costs.parts.uploads.percentile_ms(50.0)))
            .note("last_ack_ms_p50", ms(costs.parts.acks.percentile_ms(50.0)))
            .note("entry_ms_p50", ms(costs.parts.entry.percentile_ms(50.0)))
            .note("sync_ms_max", ms(costs.sync.max_ms()))
            .note("step_ms_p50", ms(costs.steps.percentile_ms(50.0)))
            .note("step_ms_max", ms(costs.steps.max_ms()))
            .note("checkpoint_mb", costs.bytes as f64 / 1e6)
            .note("restore_built_ms", built_ms)
            .note("restore_built_cpu_ms", built.cpu.as_secs_f64() * 1e3)
            .note("restore_ms", ms(costs.restores.max_ms()))
            .note("records_per_s", rate))
    }

    fn live<'a>(&self, folder: &'a Path) -> LiveJob<'a> {
        let checkpoints = Some((Duration::from_millis(self.every_ms), folder));
        LiveJob { candidate: self.candidate, parallelism: PARALLELISM, checkpoints, batch_age_ms: 5 }
    }

    /// From the start to where all subtasks are built, and to the first record at the sink.
    fn restore(&self, keys: u64, folder: &Path) -> Result<(Run, Moment), BenchError> {
        let (env, sink) = self.graph(keys);
        let (watch, mut built) = (Stopwatch::start(), None);
        self.live(folder).run(env, |notice, cancel| {
            if let ExecutionNotice::Started { restored: Some(_), .. } = notice {
                built = Some(watch.stop(keys));
            }
            if sink.first_at().is_some() {
                cancel.cancel();
            }
        })?;
        built.zip(sink.first_at()).ok_or(BenchError::Unmeasured { candidate: self.candidate })
    }

    /// The graph; its sink's clock starts now.
    fn graph(&self, keys: u64) -> (StreamEnvironment, TimedSink<Sum>) {
        let (env, sink) = (StreamEnvironment::new(), TimedSink::new(SystemClock::shared(), |_: &Sum| None));
        let source = Datagen::new(move |index: u64| (index.wrapping_mul(STRIDE) % keys, 1));
        let events = env.source("events", source);
        let sums = match self.kind {
            Kind::ValuePerKey => events.key_by(|event: &Sum| event.0).process(
                "sum",
                value::<i64>("sum"),
                |(key, value), sum, _context, out: &mut Output<Sum>| {
                    out.emit((key, *sum.update(|sum| *sum += value)?));
                    Ok(())
                },
            ),
            Kind::MapOfOneKey => events.key_by(|_event: &Sum| 7_u64).process(
                "sums",
                map::<u64, i64>("sums"),
                |(key, value), sums, _context, out: &mut Output<Sum>| {
                    sums.insert(key, value)?;
                    out.emit((key, value));
                    Ok(())
                },
            ),
        };
        sums.sink("sink", sink.clone());
        (env, sink)
    }
}
