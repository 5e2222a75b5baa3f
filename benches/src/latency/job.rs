//! The jobs of `benches latency`.
//!
//! Owns: both graphs and their measuring. Does not own: how fast they go. Runs on: the main thread.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::Duration;

use tidegate_connectors::datagen::Datagen;
use tidegate_engine::api::{DataStream, StreamEnvironment};
use tidegate_engine::clock::{Moment, SharedClock, SystemClock};
use tidegate_engine::execution::ExecutionNotice;
use tidegate_engine::jobmanager::MasterNotice;
use tidegate_engine::operator::Output;
use tidegate_state::value;

use crate::error::BenchError;
use crate::harness::Run;
use crate::live_job::{LiveJob, after, pause};
use crate::stopwatch::Stopwatch;
use crate::timed_sink::TimedSink;

/// Distinct keys.
const KEYS: u64 = 100_000;
/// An idle job is left alone so long before it is measured.
const SETTLE: Duration = Duration::from_millis(300);

/// A key, and nanoseconds of the clock when the record was made.
type Stamped = (u64, u64);

/// A job whose records carry the moment of their making.
pub(super) struct LatencyJob {
    pub(super) candidate: &'static str,
    pub(super) batch_age_ms: u64,
    /// Records per second; `None`: as fast as it goes.
    pub(super) rate: Option<u64>,
}

impl LatencyJob {
    /// Runs it to the end of `records`.
    pub(super) fn run(&self, records: u64) -> Result<Run, BenchError> {
        let clock = SystemClock::shared();
        let sink = TimedSink::new(Arc::clone(&clock), made_at);
        let env = StreamEnvironment::new();
        let source = stamps(clock).bounded(records);
        let source = match self.rate {
            Some(rate) => source.rate_per_second(rate),
            None => source,
        };
        counted(&env.source("records", source)).sink("sink", sink.clone());
        let job = LiveJob {
            candidate: self.candidate,
            parallelism: 2,
            checkpoints: None,
            batch_age_ms: self.batch_age_ms,
        };
        let watch = Stopwatch::start();
        job.run(env, |_, _| {})?;
        let run = watch.stop(records);
        let (samples, candidate) = (sink.samples(), self.candidate.to_owned());
        if samples.count() != records {
            return Err(BenchError::WrongResult { candidate, got: samples.count(), expected: records });
        }
        let at = |percent| samples.percentile_ms(percent).unwrap_or_default();
        Ok(run
            .note("p50_ms", at(50.0))
            .note("p90_ms", at(90.0))
            .note("p99_ms", at(99.0))
            .note("p999_ms", at(99.9))
            .note("max_ms", samples.max_ms().unwrap_or_default())
            .note("records_per_s", sink.records() as f64 / watch.elapsed().as_secs_f64()))
    }
}

fn made_at(record: &Stamped) -> Option<Moment> {
    Some(Moment::from_nanos(record.1))
}

fn stamps(clock: SharedClock) -> Datagen<Stamped, impl Fn(u64) -> Stamped + Clone + Send + 'static> {
    Datagen::new(move |index: u64| {
        let made = u64::try_from(clock.now().as_nanos()).unwrap_or(u64::MAX);
        (index.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS, made)
    })
}

fn counted(records: &DataStream<Stamped>) -> DataStream<Stamped> {
    records.key_by(|record: &Stamped| record.0).process(
        "count",
        value::<u64>("count"),
        |record, count, _context, out: &mut Output<Stamped>| {
            count.update(|count| *count += 1)?;
            out.emit(record);
            Ok(())
        },
    )
}

/// A job that gets one record a second: CPU time of the whole process.
pub(super) fn idle(
    candidate: &'static str,
    checkpoint_every_s: Option<u64>,
    seconds: u64,
) -> Result<Run, BenchError> {
    let folder = tempfile::tempdir().map_err(|source| BenchError::Folder { source })?;
    let checkpoints = checkpoint_every_s.map(|s| (Duration::from_secs(s), folder.path()));
    let clock = SystemClock::shared();
    let (env, sink) = (StreamEnvironment::new(), TimedSink::new(Arc::clone(&clock), made_at));
    counted(&env.source("records", stamps(clock).rate_per_second(1))).sink("sink", sink.clone());
    let (measured_tx, measured) = mpsc::sync_channel(1);
    let (mut measured_tx, mut waiting) = (Some(measured_tx), None);
    let job = LiveJob { candidate, parallelism: 2, checkpoints, batch_age_ms: 5 };
    job.run(env, |notice, cancel| {
        let ExecutionNotice::Master(MasterNotice::Recovered { .. }) = notice else { return };
        let (cancel, tx) = (cancel.clone(), measured_tx.take());
        waiting = Some(after(SETTLE, move || {
            let watch = Stopwatch::start();
            pause(Duration::from_secs(seconds), &AtomicBool::new(false));
            let _ = tx.map(|tx| tx.send(watch.stop(seconds)));
            cancel.cancel();
        }));
    })?;
    drop(waiting);
    let run = measured.recv().map_err(|_| BenchError::Unmeasured { candidate })?;
    let percent = run.cpu.as_secs_f64() / run.elapsed.as_secs_f64() * 100.0;
    Ok(run.note("cpu_percent_of_a_core", percent))
}
