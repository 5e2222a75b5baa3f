//! Whole jobs in this process: restarts, what is refused at submit, at least once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate::connectors::kafka::{KafkaSink, KafkaSource};
use tidegate::engine::execution::JobOutcome;
use tidegate::engine::jobmanager::RestartStrategy;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::{Until, checkpoints_every, run};

use crate::topic::Topic;

const NUMBERS: u64 = 6_000;

/// Numbers, with a failure at each of `failures` the first time it comes by.
fn numbers(env: &StreamEnvironment, failures: &'static [u64]) -> DataStream<u64> {
    let failed = Arc::new(AtomicU64::new(0));
    let source = Datagen::new(|index| index).bounded(NUMBERS).rate_per_second(4_000);
    env.source("numbers", source).map(move |number: u64| {
        let so_far = failed.load(Ordering::Relaxed);
        let is_due = failures.get(usize::try_from(so_far).unwrap()).is_some_and(|failure| number >= *failure);
        if is_due && failed.compare_exchange(so_far, so_far + 1, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            panic!("{number} fails once");
        }
        number
    })
}

fn config() -> tidegate::engine::execution::ExecutionConfig {
    let restart = RestartStrategy::FixedDelay { attempts: 10, delay_ms: 10 };
    tidegate::engine::execution::ExecutionConfig { restart, ..checkpoints_every(100) }
}

fn exactly_once(parallelism: u32) {
    let (topic, storage) = (Topic::new(3), CheckpointStorage::open("memory://").unwrap());
    let env = StreamEnvironment::new();
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name).key(|number| number.to_string());
    let _ = numbers(&env, &[1_000, 2_500, 4_000]).sink("numbers_topic", sink);
    let outcome = run(env, parallelism, config(), Some(storage), Until::End).unwrap();
    assert_eq!(outcome, JobOutcome::Finished);
    topic.expect(0..NUMBERS);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

#[test]
fn a_job_that_restarts_writes_every_number_exactly_once() {
    exactly_once(1);
}

#[test]
fn a_parallel_job_that_restarts_writes_every_number_exactly_once() {
    exactly_once(3);
}

#[test]
fn the_sink_without_transactions_loses_nothing_and_may_double() {
    let (topic, storage) = (Topic::new(2), CheckpointStorage::open("memory://").unwrap());
    let env = StreamEnvironment::new();
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name).at_least_once();
    let _ = numbers(&env, &[1_000, 2_500]).sink("numbers_topic", sink);
    assert_eq!(run(env, 2, config(), Some(storage), Until::End).unwrap(), JobOutcome::Finished);
    let (all, mut distinct) = (topic.numbers(), topic.numbers());
    distinct.dedup();
    assert_eq!(distinct, (0..NUMBERS).collect::<Vec<_>>(), "nothing is lost");
    assert!(all.len() > distinct.len(), "it did go back");
}

#[test]
fn five_checkpoints_without_records_complete_and_leave_no_marker() {
    let (silent, topic) = (Topic::new(1), Topic::new(2));
    let env = StreamEnvironment::new();
    let source = KafkaSource::<u64>::json(&silent.bootstrap, &silent.name);
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name);
    let _ = env.source("silent", source).sink("numbers_topic", sink);
    let mut config = checkpoints_every(50);
    config.restart = RestartStrategy::None;
    config.checkpoints.tolerable_failures = 0;
    let storage = CheckpointStorage::open("memory://").unwrap();
    let outcome = run(env, 2, config, Some(storage), Until::Checkpoints(5)).unwrap();
    assert_eq!(outcome, JobOutcome::Canceled);
    assert_eq!(topic.entries(), 0);
}

fn refused(sink: KafkaSink<u64>) -> String {
    let env = StreamEnvironment::new();
    let _ = env.source("numbers", Datagen::new(|index| index).bounded(10)).sink("numbers_topic", sink);
    let storage = CheckpointStorage::open("memory://").unwrap();
    let error = run(env, 1, config(), Some(storage), Until::End).unwrap_err();
    tidegate::error_text(&error)
}

#[test]
fn a_timeout_above_the_brokers_maximum_is_refused_at_submit_with_both_numbers() {
    let topic = Topic::new(1);
    let sink = KafkaSink::json(&topic.bootstrap, &topic.name).transaction_timeout(Duration::from_secs(1_200));
    let error = refused(sink);
    assert!(error.contains("1200000 ms") && error.contains("900000 ms"), "{error}");
    assert!(error.contains("transaction.max.timeout.ms"), "{error}");
}

#[test]
fn a_timeout_that_an_outage_may_outlast_is_refused_at_submit() {
    let topic = Topic::new(1);
    let sink = KafkaSink::json(&topic.bootstrap, &topic.name).transaction_timeout(Duration::from_secs(60));
    let error = refused(sink);
    assert!(error.contains("60000 ms is too short"), "{error}");
}

#[test]
fn a_topic_that_is_not_there_is_refused_at_submit() {
    let topic = Topic::new(1);
    let error = refused(KafkaSink::json(&topic.bootstrap, "tidegate_nowhere"));
    assert!(error.contains("has no topic tidegate_nowhere") && error.contains("help"), "{error}");
}

#[test]
fn brokers_that_are_not_there_are_named() {
    let error = refused(KafkaSink::json("127.0.0.1:1", "tidegate_nowhere"));
    assert!(error.contains("127.0.0.1:1"), "{error}");
}
