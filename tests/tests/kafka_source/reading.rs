//! What comes out of a topic.

use std::collections::BTreeSet;

use rdkafka::producer::Producer;
use tidegate::connectors::kafka::{KafkaSource, StartingOffsets, StoppingOffsets};
use tidegate::engine::execution::JobOutcome;
use tidegate::prelude::*;

use crate::broker::{Topic, Written};
use crate::live_job::{LiveJob, eventually};
use tidegate_tests::checkpoints_every;

/// Partition, offset and number of each record.
pub(crate) type Placed = (i32, i64, u64);

pub(crate) fn numbers(topic: &Topic) -> KafkaSource<Placed> {
    KafkaSource::new(&topic.bootstrap, &topic.name, |record| {
        let number = std::str::from_utf8(record.value.unwrap_or_default())?.parse()?;
        Ok(Some((record.partition, record.offset, number)))
    })
}

/// Runs a bounded read to its end.
pub(crate) fn read_all<T: Clone + Send + 'static>(source: KafkaSource<T>, parallelism: u32) -> Vec<T> {
    let sink = CollectSink::new();
    let out = sink.clone();
    let build = move |env: &StreamEnvironment| drop(env.source("topic", source).sink("out", out));
    let job = LiveJob::start(build, parallelism, checkpoints_every(50), None);
    assert_eq!(job.end().unwrap(), JobOutcome::Finished);
    sink.records()
}

fn values(records: &[Placed]) -> Vec<u64> {
    let mut values: Vec<u64> = records.iter().map(|(_, _, number)| *number).collect();
    values.sort_unstable();
    values
}

#[test]
fn a_bounded_read_brings_every_record_once_at_any_parallelism() {
    let topic = Topic::new(3);
    topic.write_numbers(3, 0, 5_000);
    for parallelism in [1, 3, 4] {
        let records = read_all(numbers(&topic).bounded(StoppingOffsets::Latest), parallelism);
        assert_eq!(values(&records), (0..5_000).collect::<Vec<u64>>(), "parallelism {parallelism}");
        let places: BTreeSet<(i32, i64)> =
            records.iter().map(|(partition, offset, _)| (*partition, *offset)).collect();
        assert_eq!(places.len(), 5_000);
        for partition in 0..3 {
            let of = records.iter().filter(|record| record.0 == partition).map(|record| record.1);
            assert!(of.is_sorted(), "the order of a partition is kept");
        }
    }
}

/// How many are taken at a time goes by what the last ones were: here small ones first, then those of which a chunk holds three.
#[test]
fn small_records_and_large_ones_come_whole_and_in_order() {
    let topic = Topic::new(1);
    topic.write_numbers(1, 0, 3_000);
    let large =
        |number: usize| Written { value: Some(number.to_string().repeat(70_000)), ..Written::default() };
    topic.write((10_000..10_030).map(large));
    let source = KafkaSource::new(&topic.bootstrap, &topic.name, |record| {
        let value = std::str::from_utf8(record.value.unwrap_or_default())?;
        Ok(Some((value.get(..5).unwrap_or(value).parse::<u64>()?, value.len())))
    });
    let records = read_all(source.bounded(StoppingOffsets::Latest), 1);
    let small = (0..3_000_u64).map(|number| (number, number.to_string().len()));
    let large = (10_000..10_030).map(|number| (number, 350_000));
    assert_eq!(records, small.chain(large).collect::<Vec<_>>());
}

#[test]
fn a_record_comes_with_key_headers_and_time() {
    let topic = Topic::new(1);
    let written = Written {
        key: Some("k"),
        value: Some("v".to_owned()),
        time_ms: Some(1_700_000_000_123),
        header: Some(("h", "x")),
        ..Written::default()
    };
    topic.write([written]);
    let source = KafkaSource::new(&topic.bootstrap, &topic.name, |record| {
        let headers: Vec<(String, Option<Vec<u8>>)> = record
            .headers()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value.map(<[u8]>::to_vec)))
            .collect();
        Ok(Some((record.key.map(<[u8]>::to_vec), record.timestamp_ms, headers)))
    });
    let records = read_all(source.bounded(StoppingOffsets::Latest), 1);
    let headers = vec![("h".to_owned(), Some(b"x".to_vec()))];
    assert_eq!(records, [(Some(b"k".to_vec()), Some(1_700_000_000_123), headers)]);
}

/// Field case 78.
#[test]
fn a_tombstone_is_none_or_left_out_and_the_position_moves() {
    let topic = Topic::new(1);
    let of = |value: Option<&str>| Written {
        key: Some("k"),
        value: value.map(str::to_owned),
        ..Written::default()
    };
    topic.write([of(Some("1")), of(None), of(Some("3")), of(None)]);
    let optional =
        KafkaSource::<Option<u64>>::json(&topic.bootstrap, &topic.name).bounded(StoppingOffsets::Latest);
    assert_eq!(read_all(optional, 1), [Some(1), None, Some(3), None]);
    let plain = KafkaSource::<u64>::json(&topic.bootstrap, &topic.name).bounded(StoppingOffsets::Latest);
    let counters = plain.counters();
    assert_eq!(read_all(plain, 1), [1, 3]);
    assert_eq!((counters.left_out(), counters.lag()), (2, 0));
}

#[test]
fn only_committed_records_are_read_and_those_of_an_open_transaction_when_it_commits() {
    let topic = Topic::new(1);
    topic.write_transaction(0, 0..10, true);
    topic.write_transaction(0, 10..20, false);
    let number = |number: u64| Written { value: Some(number.to_string()), ..Written::default() };
    let open = topic.begin((20..25).map(number));
    topic.write_numbers(1, 100, 5);
    let bounded = read_all(numbers(&topic).bounded(StoppingOffsets::Latest), 1);
    assert_eq!(values(&bounded), (0..10).collect::<Vec<u64>>());

    let sink = CollectSink::new();
    let (source, out) = (numbers(&topic), sink.clone());
    let build = move |env: &StreamEnvironment| drop(env.source("topic", source).sink("out", out));
    let job = LiveJob::start(build, 1, checkpoints_every(50), None);
    eventually("the first transaction", || sink.records().len() >= 10);
    open.commit_transaction(std::time::Duration::from_secs(20)).unwrap();
    eventually("the second transaction", || sink.records().len() >= 20);
    job.cancel();
    assert_eq!(
        values(&sink.records()),
        [(0..10).collect::<Vec<u64>>(), (20..25).collect(), (100..105).collect()].concat()
    );
}

#[test]
fn a_transaction_that_is_open_at_a_latest_start_is_read_when_it_commits() {
    let topic = Topic::new(1);
    topic.write_numbers(1, 0, 3);
    let number = |number: u64| Written { value: Some(number.to_string()), ..Written::default() };
    let open = topic.begin((10..13).map(number));
    let sink = CollectSink::new();
    let source = numbers(&topic).starting(StartingOffsets::Latest);
    let (counters, out) = (source.counters(), sink.clone());
    let build = move |env: &StreamEnvironment| drop(env.source("topic", source).sink("out", out));
    let job = LiveJob::start(build, 1, checkpoints_every(50), None);
    eventually("the first look", || counters.discoveries() > 0);
    open.commit_transaction(std::time::Duration::from_secs(20)).unwrap();
    eventually("the transaction", || sink.records().len() >= 3);
    job.cancel();
    assert_eq!(values(&sink.records()), [10, 11, 12]);
}
