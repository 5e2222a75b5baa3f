//! A topic that changes under a job: it grows, is deleted, is made again, forgets records.

use std::time::Duration;

use tidegate::connectors::kafka::KafkaSource;
use tidegate::engine::execution::ExecutionConfig;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;

use crate::broker::{Place, Topic, shared};
use crate::live_job::{LiveJob, eventually, memory};
use crate::reading::{Placed, numbers};
use tidegate_tests::checkpoints_every;

fn start(source: KafkaSource<Placed>, storage: &CheckpointStorage) -> (LiveJob, CollectSink<Placed>) {
    start_with(source, storage, checkpoints_every(30))
}

fn start_with(
    source: KafkaSource<Placed>,
    storage: &CheckpointStorage,
    config: ExecutionConfig,
) -> (LiveJob, CollectSink<Placed>) {
    let sink = CollectSink::new();
    let out = sink.clone();
    let build =
        move |env: &StreamEnvironment| drop(env.source("topic", source).uid("topic").sink("out", out));
    (LiveJob::start(build, 2, config, Some(storage.clone())), sink)
}

/// Field case 77 (flink-connector-kafka#136). Nothing is set: the next look at the topic comes after 10 s.
#[test]
fn a_new_partition_is_read_from_its_beginning_also_after_a_latest_start() {
    let topic = Topic::new(1);
    topic.write_numbers(1, 0, 3);
    let source = numbers(&topic).starting(tidegate::connectors::kafka::StartingOffsets::Latest);
    let (counters, storage) = (source.counters(), memory());
    let (job, sink) = start(source.clone(), &storage);
    eventually("the first look", || counters.discoveries() >= 1);
    topic.grow(3);
    topic.write_numbers(3, 100, 9);
    eventually("the records of the new partitions", || sink.records().len() >= 9);
    job.wait_for_checkpoints(1);
    job.cancel();
    let mut records: Vec<u64> = sink.records().iter().map(|record| record.2).collect();
    records.sort_unstable();
    assert_eq!(records, (100..109).collect::<Vec<u64>>());
    topic.write_numbers(3, 200, 3);
    let (job, sink) = start(source, &storage);
    eventually("what came later", || sink.records().len() >= 3);
    job.cancel();
    assert_eq!(sink.records().len(), 3, "no partition is handed out twice");
}

#[test]
fn a_topic_that_was_made_again_stops_the_job_before_a_record_of_the_new_one_is_read() {
    let topic = Topic::new(1);
    topic.write_numbers(1, 0, 10);
    // The source finds out by itself, not by the next look at the topic.
    let source = numbers(&topic).discovery_interval(Duration::from_secs(600));
    let (job, sink) = start(source, &memory());
    eventually("the old records", || sink.records().len() >= 10);
    topic.delete();
    eventually("the topic's end", || std::panic::catch_unwind(|| topic.create(1)).is_ok());
    topic.write_numbers(1, 1_000, 500);
    let text = job.failure();
    assert!(text.contains("deleted and created again"), "{text}");
    assert_eq!(sink.records().len(), 10);
}

/// Nothing but the client's log tells this one: when the source is back, the new topic has a record at its offset.
#[test]
fn a_topic_that_was_made_again_and_filled_while_the_source_was_away_is_not_read_at_the_old_offset() {
    let (topic, place) = (Topic::new(1), Place::take());
    topic.write_numbers(1, 0, 10);
    let proxy = place.proxy();
    let proxied = Topic { bootstrap: place.listen.to_string(), ..topic.clone() };
    let source = numbers(&proxied).discovery_interval(Duration::from_secs(600));
    let (job, sink) = start(source, &memory());
    eventually("the old records", || sink.records().len() >= 10);
    proxy.refuse().unwrap();
    proxy.cut_all();
    topic.delete();
    eventually("the topic's end", || std::panic::catch_unwind(|| topic.create(1)).is_ok());
    topic.write_numbers(1, 1_000, 500);
    proxy.accept().unwrap();
    let text = job.failure();
    assert!(text.contains("deleted and created again"), "{text}");
    assert_eq!(sink.records().len(), 10);
}

#[test]
fn a_restore_over_a_topic_that_was_made_again_is_refused() {
    let topic = Topic::new(1);
    topic.write_numbers(1, 0, 10);
    let storage = memory();
    let (job, sink) = start(numbers(&topic), &storage);
    eventually("the old records", || sink.records().len() >= 10);
    job.wait_for_checkpoints(1);
    job.cancel();
    topic.delete();
    eventually("the topic's end", || std::panic::catch_unwind(|| topic.create(1)).is_ok());
    topic.write_numbers(1, 1_000, 500);
    let (job, sink) = start(numbers(&topic), &storage);
    let text = job.failure();
    assert!(text.contains("deleted and created again"), "{text}");
    assert!(sink.records().is_empty());
}

#[test]
fn a_topic_that_is_gone_stops_the_job() {
    let topic = Topic::new(1);
    topic.write_numbers(1, 0, 10);
    let (job, sink) = start(numbers(&topic).discovery_interval(Duration::from_millis(200)), &memory());
    eventually("the records", || sink.records().len() >= 10);
    topic.delete();
    let text = job.failure();
    assert!(text.contains("was deleted while it was read"), "{text}");
}

#[test]
fn a_position_that_retention_has_deleted_fails_the_job_and_is_not_reset() {
    let topic = Topic::new(2);
    topic.write_numbers(2, 0, 100);
    let storage = memory();
    let (job, sink) = start(numbers(&topic), &storage);
    eventually("the records", || sink.records().len() >= 100);
    job.wait_for_checkpoints(1);
    job.cancel();
    topic.write_numbers(2, 100, 100);
    topic.forget_before(1, 80);
    let (job, _sink) = start(numbers(&topic), &storage);
    let text = job.failure();
    assert!(text.contains("[1] no longer has offset 50: it has 80 to 100"), "{text}");
}

#[test]
fn an_unknown_topic_and_a_broker_that_is_not_there_are_told_before_the_job_runs() {
    let source = KafkaSource::<Placed>::json(shared(), "tidegate_no_such_topic");
    let (job, _sink) = start(source, &memory());
    let text = job.failure();
    assert!(text.contains("tidegate_no_such_topic does not exist") && text.contains("create it"), "{text}");
    let source = KafkaSource::<Placed>::json("127.0.0.1:1", "numbers");
    let (job, _sink) = start(source, &memory());
    let text = job.failure();
    assert!(text.contains("127.0.0.1:1") && text.contains("is a Kafka broker running there"), "{text}");
}
