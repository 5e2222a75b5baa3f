//! The same three steps in Renoir and in timely, as their users would write them, on one thread.
//!
//! Owns: both programs. Does not own: the steps. Runs on: threads of theirs.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use renoir::{RuntimeConfig, StreamContext};
use timely::dataflow::operators::vec::{Filter, Map};
use timely::dataflow::operators::{Inspect, ToStream};

use super::by_hand::check;
use super::records::{ChainRecord, kept};
use crate::error::BenchError;
use crate::harness::Run;
use crate::stopwatch::Stopwatch;

/// Renoir: a source that is an iterator, map → filter → map, and a sink that counts.
pub(super) fn renoir<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    let config =
        RuntimeConfig::local(1).map_err(|e| BenchError::Peer { peer: "renoir", message: e.to_string() })?;
    let written = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&written);
    let watch = Stopwatch::start();
    let context = StreamContext::new(config);
    context
        .stream_par_iter(move |_maker: u64, _makers: u64| (0..records).map(R::make))
        .map(R::first)
        .filter(|record: &R| record.keep())
        .map(R::second)
        .for_each(move |record| {
            black_box(&record);
            counter.fetch_add(1, Ordering::Relaxed);
        });
    context.execute_blocking();
    let run = watch.stop(records);
    check("renoir", written.load(Ordering::Relaxed), kept::<R>(records)).map(|()| run)
}

/// timely: three operators of a dataflow, and an inspection at its end that counts.
pub(super) fn timely<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    let failed = |message: String| BenchError::Peer { peer: "timely", message };
    let written = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&written);
    let watch = Stopwatch::start();
    let guards = timely::execute(timely::Config::process(1), move |worker| {
        let counter = Arc::clone(&counter);
        worker.dataflow::<u64, _, _>(|scope| {
            (0..records)
                .map(R::make)
                .to_stream(scope)
                .container::<Vec<_>>()
                .map(R::first)
                .filter(|record: &R| record.keep())
                .map(R::second)
                .container::<Vec<_>>()
                .inspect(move |record| {
                    black_box(record);
                    counter.fetch_add(1, Ordering::Relaxed);
                });
        });
    })
    .map_err(failed)?;
    for worker in guards.join() {
        worker.map_err(failed)?;
    }
    let run = watch.stop(records);
    check("timely", written.load(Ordering::Relaxed), kept::<R>(records)).map(|()| run)
}
