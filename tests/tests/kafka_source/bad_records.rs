//! Records that are no records to the deserializer.

use tidegate::connectors::kafka::{BadRecord, KafkaSource, StoppingOffsets};
use tidegate::prelude::*;

use crate::broker::{Topic, Written};
use crate::live_job::LiveJob;
use crate::reading::read_all;
use tidegate_tests::checkpoints_every;

fn half_broken() -> Topic {
    let topic = Topic::new(1);
    let value = |value: &str| Written { key: Some("k"), value: Some(value.to_owned()), ..Written::default() };
    topic.write([value("1"), value("{broken"), value("3"), value("\"four\"")]);
    topic
}

fn source(topic: &Topic, policy: BadRecord) -> KafkaSource<u64> {
    let source = KafkaSource::json(&topic.bootstrap, &topic.name);
    source.on_bad_record(policy).bounded(StoppingOffsets::Latest)
}

#[test]
fn by_default_the_job_fails_with_topic_partition_and_offset() {
    let topic = half_broken();
    let sink = CollectSink::new();
    let (source, out) = (source(&topic, BadRecord::Fail), sink.clone());
    let build = move |env: &StreamEnvironment| drop(env.source("topic", source).sink("out", out));
    let text = LiveJob::start(build, 1, checkpoints_every(50), None).failure();
    assert!(text.contains(&format!("{}[0] offset 1: not a record", topic.name)), "{text}");
    assert!(text.contains("BadRecord::Skip"), "{text}");
    assert_eq!(sink.records(), [1], "what comes before it is read");
}

#[test]
fn skipped_records_are_counted() {
    let source = source(&half_broken(), BadRecord::Skip);
    let counters = source.counters();
    assert_eq!(read_all(source, 1), [1, 3]);
    assert_eq!((counters.records(), counters.bad_records(), counters.lag()), (2, 2, 0));
}

#[test]
fn dead_letters_are_kept_with_their_place_and_their_problem() {
    let (topic, letters) = (half_broken(), Topic::new(1));
    let source = source(&topic, BadRecord::DeadLetter(letters.name.clone()));
    let counters = source.counters();
    assert_eq!(read_all(source, 1), [1, 3]);
    assert_eq!(counters.dead_letters(), 2);
    let kept = KafkaSource::new(&letters.bootstrap, &letters.name, |record| {
        let value = String::from_utf8(record.value.unwrap_or_default().to_vec())?;
        let headers = record
            .headers()
            .into_iter()
            .map(|(key, value)| format!("{key}={}", String::from_utf8_lossy(value.unwrap_or_default())));
        Ok(Some((value, record.key.map(<[u8]>::to_vec), headers.collect::<Vec<_>>().join(";"))))
    });
    let kept = read_all(kept.bounded(StoppingOffsets::Latest), 1);
    assert_eq!(kept.len(), 2);
    assert_eq!(kept[0].0, "{broken");
    assert_eq!(kept[0].1.as_deref(), Some(&b"k"[..]));
    assert!(kept[0].2.contains("tidegate.partition=0;tidegate.offset=1;tidegate.problem="), "{}", kept[0].2);
    assert!(kept[1].2.contains("tidegate.offset=3"), "{}", kept[1].2);
}

#[test]
fn a_dead_letter_that_its_topic_refuses_is_not_counted_as_written_and_fails_the_attempt() {
    let (topic, letters) = (Topic::new(1), Topic::with("max.message.bytes", "1000"));
    topic.write([Written { value: Some("x".repeat(5_000)), ..Written::default() }]);
    let source = source(&topic, BadRecord::DeadLetter(letters.name.clone()));
    let counters = source.counters();
    let build =
        move |env: &StreamEnvironment| drop(env.source("topic", source).sink("out", CollectSink::new()));
    let restart = tidegate::engine::jobmanager::RestartStrategy::None;
    let config = tidegate::engine::execution::ExecutionConfig { restart, ..checkpoints_every(50) };
    let text = LiveJob::start(build, 1, config, None).failure();
    assert!(text.contains(&format!("to the dead-letter topic {}", letters.name)), "{text}");
    assert_eq!(counters.dead_letters(), 0);
}

#[test]
fn a_deserializer_that_panics_fails_the_job_with_its_words() {
    let topic = half_broken();
    let source = KafkaSource::<u64>::new(&topic.bootstrap, &topic.name, |record| {
        assert!(record.offset < 2, "no more than two");
        Ok(Some(1))
    });
    let build =
        move |env: &StreamEnvironment| drop(env.source("topic", source).sink("out", CollectSink::new()));
    let restart = tidegate::engine::jobmanager::RestartStrategy::None;
    let config = tidegate::engine::execution::ExecutionConfig { restart, ..checkpoints_every(50) };
    let text = LiveJob::start(build, 1, config, None).failure();
    assert!(text.contains("no more than two"), "{text}");
}
