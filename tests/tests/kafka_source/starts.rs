//! Where reading begins.

use std::collections::BTreeMap;

use tidegate::connectors::kafka::{StartingOffsets, StoppingOffsets};
use tidegate::prelude::*;

use crate::broker::{Topic, Written};
use crate::live_job::{LiveJob, eventually, memory};
use crate::reading::{Placed, numbers, read_all};
use tidegate_tests::checkpoints_every;

fn from(topic: &Topic, starting: StartingOffsets) -> Vec<Placed> {
    let mut records = read_all(numbers(topic).starting(starting).bounded(StoppingOffsets::Latest), 2);
    records.sort_unstable();
    records
}

/// The group is told at the end, so each group begins only once.
fn from_group(topic: &Topic, group: &str) -> Vec<Placed> {
    let source = numbers(topic).group(group).starting(StartingOffsets::Group);
    let mut records = read_all(source.bounded(StoppingOffsets::Latest), 2);
    records.sort_unstable();
    records
}

#[test]
fn reading_begins_where_it_is_told() {
    let topic = Topic::new(2);
    let record = |partition, number: u64, time| Written {
        partition,
        value: Some(number.to_string()),
        time_ms: Some(time),
        ..Written::default()
    };
    topic.write([record(0, 1, 1_000), record(0, 2, 2_000), record(0, 3, 3_000), record(1, 4, 1_000)]);
    let all = [(0, 0, 1), (0, 1, 2), (0, 2, 3), (1, 0, 4)];
    assert_eq!(from(&topic, StartingOffsets::Earliest), all);
    assert_eq!(from(&topic, StartingOffsets::Latest), []);
    assert_eq!(from(&topic, StartingOffsets::Timestamp(1_500)), all[1..3]);
    assert_eq!(from(&topic, StartingOffsets::Explicit(BTreeMap::from([(0, 2)]))), all[2..]);
    let new = format!("{}-new", topic.name);
    assert_eq!(from_group(&topic, &new), all, "a group without offsets begins at the beginning");
    let moved = format!("{}-moved", topic.name);
    topic.move_group(&moved, 0, 1);
    assert_eq!(from_group(&topic, &moved), all[1..]);
}

#[test]
fn a_start_that_is_not_in_the_partition_is_refused_with_what_is() {
    let topic = Topic::new(1);
    topic.write_numbers(1, 0, 5);
    let refusal = |starting| {
        let source = numbers(&topic).starting(starting);
        let build =
            move |env: &StreamEnvironment| drop(env.source("topic", source).sink("out", CollectSink::new()));
        LiveJob::start(build, 1, checkpoints_every(50), None).failure()
    };
    let text = refusal(StartingOffsets::Explicit(BTreeMap::from([(0, 6)])));
    assert!(text.contains("[0] at offset 6") && text.contains("from 0 to 5"), "{text}");
    let text = refusal(StartingOffsets::Explicit(BTreeMap::from([(3, 0)])));
    assert!(text.contains("no partition 3"), "{text}");
}

/// Field case 75 (flink-connector-kafka#52): "latest" is a number from the first look on.
#[test]
fn latest_on_an_empty_partition_is_kept_over_a_restore() {
    let topic = Topic::new(1);
    let storage = memory();
    let sink = CollectSink::new();
    let run = || {
        let (source, out) = (numbers(&topic).starting(StartingOffsets::Latest), sink.clone());
        let build =
            move |env: &StreamEnvironment| drop(env.source("topic", source).uid("topic").sink("out", out));
        LiveJob::start(build, 1, checkpoints_every(30), Some(storage.clone()))
    };
    let first = run();
    first.wait_for_checkpoints(2);
    first.cancel();
    topic.write_numbers(1, 7, 1);
    let second = run();
    eventually("the record written in between", || !sink.records().is_empty());
    second.cancel();
    assert_eq!(sink.records(), [(0, 0, 7)]);
}
