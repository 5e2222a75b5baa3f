//! The job of `benches subtasks`, in the process that is measured.
//!
//! Owns: the graph, and the reading of this process's memory. Does not own: the process. Runs on: the main thread.

use std::time::Duration;

use serde_json::{Map, Value};
use tidegate_connectors::blackhole::BlackholeSink;
use tidegate_connectors::datagen::Datagen;
use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::execution::ExecutionNotice;
use tidegate_engine::jobmanager::MasterNotice;

use super::SubtasksOptions;
use crate::error::BenchError;
use crate::harness::Samples;
use crate::live_job::LiveJob;
use crate::stopwatch::Stopwatch;

/// From one checkpoint to the next.
const EVERY: Duration = Duration::from_millis(200);

/// Runs the job to its last checkpoint.
pub(super) fn run(options: &SubtasksOptions) -> Result<Map<String, Value>, BenchError> {
    let folder = tempfile::tempdir().map_err(|source| BenchError::Folder { source })?;
    let job = LiveJob {
        candidate: "tidegate job",
        parallelism: options.parallelism,
        checkpoints: Some((EVERY, folder.path())),
        batch_age_ms: 5,
    };
    let before = memory("VmRSS:");
    let watch = Stopwatch::start();
    let mut figures = Map::new();
    let (mut end_to_end, mut last_ack, mut taken) = (Samples::default(), Samples::default(), 0);
    let mut running: Option<Stopwatch> = None;
    job.run(graph(options), |notice, cancel| match notice {
        ExecutionNotice::Master(MasterNotice::Recovered { .. }) => {
            figures.insert("start_ms".to_owned(), (watch.elapsed().as_secs_f64() * 1e3).into());
            figures.insert("memory_mib_started".to_owned(), (memory("VmRSS:") - before).into());
            running = Some(Stopwatch::start());
        }
        ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) if taken < options.checkpoints => {
            taken += 1;
            end_to_end.add(stats.end_to_end);
            last_ack.add(stats.slowest.map_or(Duration::ZERO, |s| s.after));
            if taken == options.checkpoints {
                let run = running.take().map(|watch| watch.stop(0));
                let cpu = run.map(|run| run.cpu.as_secs_f64() / run.elapsed.as_secs_f64() * 100.0);
                figures.insert("memory_mib".to_owned(), (memory("VmRSS:") - before).into());
                figures.insert("memory_mib_peak".to_owned(), (memory("VmHWM:") - before).into());
                figures.insert("cpu_percent_of_a_core".to_owned(), cpu.into());
                cancel.cancel();
            }
        }
        _ => {}
    })?;
    figures.insert("checkpoint_ms_p50".to_owned(), end_to_end.percentile_ms(50.0).into());
    figures.insert("checkpoint_ms_max".to_owned(), end_to_end.max_ms().into());
    figures.insert("last_ack_ms_p50".to_owned(), last_ack.percentile_ms(50.0).into());
    Ok(figures)
}

/// A source, then operators that each spread their input over all subtasks; the last one is a sink.
fn graph(options: &SubtasksOptions) -> StreamEnvironment {
    let env = StreamEnvironment::new();
    let mut stream = env.source("source", Datagen::new(|index: u64| index).rate_per_second(options.rate));
    for _ in 1..options.vertices {
        stream = stream.rebalance().map(|record| record.wrapping_add(1));
    }
    stream.sink("sink", BlackholeSink::new());
    env
}

/// MiB of this process, as the kernel counts them; 0 where it does not say.
fn memory(field: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.unwrap_or(0.0) / 1024.0
}
