//! The same sum in Renoir and in timely, as their users would write it.
//!
//! Owns: both programs. Does not own: events. Runs on: threads of theirs.

use std::hint::black_box;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use renoir::{RuntimeConfig, StreamContext};
use std::hash::BuildHasher;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::Operator;
use timely::dataflow::operators::{Inspect, ToStream};

use super::event::{BenchKey, Event, Workload};
use crate::error::BenchError;
use crate::harness::Run;
use crate::stopwatch::Stopwatch;

/// Renoir: `group_by` and `rich_map`, whose closure holds the sum of one key.
pub(super) fn renoir<K: BenchKey>(load: Workload, parallelism: u32) -> Result<Run, BenchError> {
    let config = RuntimeConfig::local(u64::from(parallelism))
        .map_err(|e| BenchError::Peer { peer: "renoir", message: e.to_string() })?;
    let watch = Stopwatch::start();
    let context = StreamContext::new(config);
    let mut sum = 0;
    context
        .stream_par_iter(move |maker: u64, makers: u64| load.share::<K>(maker, makers))
        .group_by(|event: &Event<K>| event.0.clone())
        .rich_map(move |(_, event): (&K, Event<K>)| {
            sum += event.1;
            sum
        })
        .for_each(|keyed| {
            black_box(keyed);
        });
    context.execute_blocking();
    Ok(watch.stop(load.events))
}

/// timely: an operator behind an exchange, with the table in its closure.
pub(super) fn timely<K: BenchKey>(load: Workload, parallelism: u32) -> Result<Run, BenchError> {
    let failed = |message: String| BenchError::Peer { peer: "timely", message };
    let watch = Stopwatch::start();
    let config = timely::Config::process(parallelism as usize);
    let guards = timely::execute(config, move |worker| {
        let (maker, makers) = (worker.index() as u64, worker.peers() as u64);
        worker.dataflow::<u64, _, _>(|scope| {
            let hasher = FixedState::default();
            let by_key = Exchange::new(move |event: &Event<K>| hasher.hash_one(&event.0));
            load.share::<K>(maker, makers)
                .to_stream(scope)
                .container::<Vec<_>>()
                .unary(by_key, "sum", |_, _| {
                    let mut sums = HashMap::<K, i64, FixedState>::default();
                    move |input, output| {
                        input.for_each_stamp(|time, batches| {
                            let mut session = output.session(&time);
                            for (key, value) in batches.flat_map(|batch| batch.drain(..)) {
                                let sum = match sums.get_mut(&key) {
                                    Some(sum) => sum,
                                    None => sums.entry(key.clone()).or_insert(0),
                                };
                                *sum += value;
                                session.give((key, *sum));
                            }
                        });
                    }
                })
                .container::<Vec<_>>()
                .inspect(|sum| {
                    black_box(sum);
                });
        });
    })
    .map_err(failed)?;
    for worker in guards.join() {
        worker.map_err(failed)?;
    }
    Ok(watch.stop(load.events))
}
