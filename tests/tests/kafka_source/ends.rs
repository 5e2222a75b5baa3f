//! Where bounded reading ends, and what a reader at the end says.

use std::collections::BTreeMap;

use tidegate::connectors::kafka::StoppingOffsets;
use tidegate::prelude::*;

use crate::broker::Topic;
use crate::live_job::{LiveJob, eventually};
use crate::reading::{numbers, read_all};
use tidegate_tests::checkpoints_every;

/// Field case 73 (flink-connector-kafka#100): positions are compared, not messages.
#[test]
fn a_bounded_read_ends_although_the_last_offset_is_a_commit_marker() {
    let topic = Topic::new(2);
    topic.write_transaction(0, 0..5, true);
    topic.write_transaction(1, 5..10, false);
    assert_eq!(topic.end(0), 6);
    let records = read_all(numbers(&topic).bounded(StoppingOffsets::Latest), 1);
    assert_eq!(records.len(), 5, "the other partition has aborted records and markers only");
    let stop = StoppingOffsets::Explicit(BTreeMap::from([(0, 6), (1, 6)]));
    assert_eq!(read_all(numbers(&topic).bounded(stop), 2).len(), 5);
    // A fetch that brings one batch of the log: the marker at the end comes alone, and no record with it.
    let one_by_one = numbers(&topic).property("fetch.message.max.bytes", "1");
    assert_eq!(read_all(one_by_one.bounded(StoppingOffsets::Latest), 1).len(), 5);
}

#[test]
fn an_empty_topic_and_an_explicit_end_end_at_once() {
    let topic = Topic::new(2);
    assert!(read_all(numbers(&topic).bounded(StoppingOffsets::Latest), 1).is_empty());
    topic.write_numbers(2, 0, 20);
    let stop = StoppingOffsets::Explicit(BTreeMap::from([(0, 4), (1, 0)]));
    let mut records = read_all(numbers(&topic).bounded(stop), 2);
    records.sort_unstable();
    assert_eq!(records, [(0, 0, 0), (0, 1, 2), (0, 2, 4), (0, 3, 6)]);
}

/// Field case 81 (flink-connector-kafka#293), and the offsets that tools see.
#[test]
fn the_lag_is_zero_at_the_end_of_a_transactional_topic_and_the_group_is_told() {
    let topic = Topic::new(1);
    topic.write_transaction(0, 0..50, true);
    let end = topic.end(0);
    let group = format!("{}-watch", topic.name);
    let source = numbers(&topic).group(&group);
    let (counters, sink) = (source.counters(), CollectSink::new());
    let out = sink.clone();
    let build =
        move |env: &StreamEnvironment| drop(env.source("topic", source).uid("topic").sink("out", out));
    let folder = tempfile::tempdir().unwrap();
    let storage = tidegate::state::CheckpointStorage::open(folder.path().to_str().unwrap()).unwrap();
    let job = LiveJob::start(build, 1, checkpoints_every(50), Some(storage));
    eventually("all records", || sink.records().len() >= 50);
    eventually("no lag", || counters.lag() == 0);
    eventually("the group's offset", || topic.group_offset(&group, 0) == Some(end));
    topic.write_transaction(0, 50..60, true);
    eventually("more records", || sink.records().len() >= 60);
    eventually("no lag", || counters.lag() == 0);
    job.cancel();
}
