//! Brokers that are away for a while, or for too long.

use std::time::Duration;

use tidegate::engine::execution::ExecutionConfig;
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_jobs::tcp_proxy::Direction;

use crate::broker::{Place, Topic};
use crate::live_job::{LiveJob, eventually, memory};
use crate::reading::numbers;
use tidegate_tests::checkpoints_every;

#[test]
fn a_broker_that_is_killed_and_comes_back_costs_no_record_and_one_that_stays_away_ends_the_attempt() {
    let mut broker = Service::own(ServiceKind::Kafka, "source-outage", &[]).unwrap();
    let topic = Topic::at(broker.bootstrap().unwrap(), 2);
    topic.write_numbers(2, 0, 1_000);
    let source = numbers(&topic)
        .discovery_interval(Duration::from_millis(300))
        .longest_outage(Duration::from_secs(60));
    let sink = CollectSink::new();
    let out = sink.clone();
    let build =
        move |env: &StreamEnvironment| drop(env.source("topic", source).uid("topic").sink("out", out));
    let config = ExecutionConfig { restart: RestartStrategy::None, ..checkpoints_every(50) };
    let storage = memory();
    let job = LiveJob::start(build, 2, config.clone(), Some(storage.clone()));
    eventually("the first records", || sink.records().len() >= 1_000);
    broker.kill().unwrap();
    job.wait_for_checkpoints(5);
    broker.start().unwrap();
    topic.write_numbers(2, 1_000, 1_000);
    eventually("the records after the outage", || sink.records().len() >= 2_000);
    job.cancel();
    let mut seen: Vec<u64> = sink.records().iter().map(|record| record.2).collect();
    seen.sort_unstable();
    assert_eq!(seen, (0..2_000).collect::<Vec<u64>>());

    let source = numbers(&topic).without_discovery().longest_outage(Duration::from_secs(2));
    let counters = source.counters();
    let build = move |env: &StreamEnvironment| {
        drop(env.source("topic", source).uid("topic").sink("out", CollectSink::new()))
    };
    let job = LiveJob::start(build, 2, config, Some(storage));
    eventually("a look", || counters.discoveries() > 0);
    job.wait_for_checkpoints(3);
    broker.kill().unwrap();
    let text = job.failure();
    assert!(text.contains("no broker of") && text.contains("could be reached"), "{text}");
}

/// Five times a batch is written, and the network cut in the middle of reading it.
#[test]
fn a_network_that_is_cut_again_and_again_and_is_a_second_late_costs_no_record_and_doubles_none() {
    const BATCH: u64 = 400;
    const CUTS: u64 = 5;
    for late in [Duration::ZERO, Duration::from_secs(1)] {
        let (topic, place) = (Topic::new(2), Place::take());
        let proxy = place.proxy();
        let proxied = Topic { bootstrap: place.listen.to_string(), ..topic.clone() };
        let source = numbers(&proxied).rate_per_second(2_000);
        let (sink, counters) = (CollectSink::new(), source.counters());
        let out = sink.clone();
        let build =
            move |env: &StreamEnvironment| drop(env.source("topic", source).uid("topic").sink("out", out));
        let config = ExecutionConfig { restart: RestartStrategy::None, ..checkpoints_every(50) };
        let job = LiveJob::start(build, 2, config, Some(memory()));
        proxy.delay(Direction::ToServer, late);
        proxy.delay(Direction::ToClient, late);
        for cut in 0..CUTS {
            topic.write_numbers(2, cut * BATCH, BATCH);
            eventually("some of the batch", || counters.records() > cut * BATCH + BATCH / 10);
            proxy.cut_all();
        }
        eventually("all records", || counters.records() >= CUTS * BATCH);
        // What is read goes to the sink with the next checkpoint.
        job.wait_for_checkpoints(2);
        job.cancel();
        let mut seen: Vec<u64> = sink.records().iter().map(|record| record.2).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..CUTS * BATCH).collect::<Vec<u64>>());
        assert!(proxy.counts().cut >= CUTS, "{:?}", proxy.counts());
        proxy.refuse().unwrap();
    }
}
