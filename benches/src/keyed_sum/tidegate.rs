//! Our job: datagen → `key_by` → running sum in a `ValueState` → blackhole.
//!
//! Owns: the graph. Does not own: running it. Runs on: the main thread.

use std::time::Duration;

use tidegate_connectors::blackhole::BlackholeSink;
use tidegate_connectors::datagen::Datagen;
use tidegate_engine::api::StreamEnvironment;
use tidegate_engine::operator::Output;
use tidegate_state::value;

use super::event::{BenchKey, Event, Workload};
use crate::error::BenchError;
use crate::harness::Run;
use crate::job::{JobSetup, run_job};

/// Runs the job; `checkpoint_every` makes it exactly-once.
pub(super) fn job<K: BenchKey>(
    load: Workload,
    parallelism: u32,
    checkpoint_every: Option<Duration>,
) -> Result<Run, BenchError> {
    let (env, sink) = (StreamEnvironment::new(), BlackholeSink::<Event<K>>::new());
    env.source("events", Datagen::new(move |index| load.event::<K>(index)).bounded(load.events))
        .key_by(|event: &Event<K>| event.0.clone())
        .process("sum", value::<i64>("sum"), |(key, value), sum, _context, out: &mut Output<Event<K>>| {
            let sum = *sum.update(|sum| *sum += value)?;
            out.emit((key, sum));
            Ok(())
        })
        .sink("blackhole", sink.clone());
    let setup = JobSetup { candidate: "keyed-sum", parallelism, checkpoint_every };
    run_job(env, setup, load.events, load.events, || sink.records())
}
