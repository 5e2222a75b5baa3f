//! Records that a topic does not take: the job ends at once and says which one, why, and what helps.

use rdkafka::message::Timestamp;
use tidegate::connectors::kafka::KafkaSink;
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::prelude::*;
use tidegate_tests::Ended;

use crate::run::{patient, run_job};
use crate::topic::{Topic, shared_broker};

const HOUR_MS: i64 = 3_600_000;

/// Its last words are how many it has seen; they have no moment of their own.
#[derive(Clone)]
struct Tally {
    seen: u64,
}

impl ProcessFunction<u64, u64> for Tally {
    type State = u64;
    const HAS_ON_END: bool = true;

    fn process(&mut self, record: u64, _: Option<i64>, out: &mut Output<u64>) -> Result<()> {
        self.seen += 1;
        out.emit(record);
        Ok(())
    }

    fn on_end(&mut self, out: &mut Output<u64>) -> Result<()> {
        out.emit(1_000_000 + self.seen);
        Ok(())
    }

    fn snapshot(&self) -> Vec<u64> {
        vec![self.seen]
    }

    fn restore(&mut self, state: Vec<u64>) {
        self.seen = state.into_iter().sum();
    }
}

/// Numbers with event times from `first_ms` on; the last words of a function behind them.
fn dated(topic: &Topic, first_ms: i64, is_exact: bool) -> Ended {
    let env = StreamEnvironment::new();
    let times = Watermarks::ascending();
    let times = times.event_time(move |number: &u64| first_ms.saturating_add_unsigned(*number));
    let numbers = env.source("numbers", Datagen::new(|index| index).bounded(100)).watermarks(times);
    let numbers = numbers.process_function("tally", Tally { seen: 0 });
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name).key(|number| number.to_string());
    let _ = if is_exact {
        numbers.sink("numbers_topic", sink)
    } else {
        numbers.sink("numbers_topic", sink.at_least_once())
    };
    run_job(topic, env, 1, patient())
}

#[test]
fn last_words_have_the_time_at_which_they_are_written_and_records_their_event_time() {
    let (topic, clock) = (Topic::new(1), SystemClock::new());
    let before_ms = clock.wall_ms();
    let first_ms = before_ms - HOUR_MS;
    dated(&topic, first_ms, true).unbroken();
    topic.expect((0..100).chain([1_000_100]));
    for (text, time) in topic.timestamps() {
        let Timestamp::CreateTime(time_ms) = time else { panic!("{time:?}") };
        match text.parse::<u64>().unwrap() {
            1_000_100 => assert!((before_ms..=clock.wall_ms()).contains(&time_ms), "{time_ms}"),
            number => assert_eq!(time_ms, first_ms.saturating_add_unsigned(number)),
        }
    }
}

#[test]
fn an_event_time_beyond_what_the_topic_allows_ends_the_job_once_with_record_limit_and_remedy() {
    for is_exact in [true, false] {
        let topic = Topic::new(1);
        let ended = dated(&topic, SystemClock::new().wall_ms() + 2 * HOUR_MS, is_exact);
        let said = ended.failure();
        let parts =
            ["record 1 (key \"0\"", "message.timestamp.after.max.ms, which is 3600000", &topic.name, "help:"];
        for part in parts {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(ended.restarts, [""; 0], "no restart mends it");
        assert_eq!(topic.committed(), [""; 0]);
    }
}

/// One record of so many bytes behind a small one, and others behind it.
fn large(topic: &Topic, bytes: usize, records: u64) -> Ended {
    let env = StreamEnvironment::new();
    let source = Datagen::new(|index| index).bounded(records).rate_per_second(20_000);
    let numbers = env.source("numbers", source);
    let texts = numbers.map(move |number| "x".repeat(if number == 1 { bytes } else { 1 }));
    let sink = KafkaSink::<String>::json(&topic.bootstrap, &topic.name).key(|text| text.len().to_string());
    let _ = texts.sink("texts_topic", sink);
    run_job(topic, env, 1, patient())
}

fn too_large(topic: &Topic, bytes: usize, records: u64, limit: &str) {
    let ended = large(topic, bytes, records);
    let said = ended.failure();
    for part in ["record 2 (key ", limit, &topic.name, "message.max.bytes", "help:"] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(ended.restarts, [""; 0], "no restart mends it");
    assert_eq!(topic.committed(), [""; 0]);
}

#[test]
fn a_record_that_is_larger_than_the_client_allows_ends_the_job_once() {
    too_large(&Topic::new(1), 2_000_000, 3, "max.message.bytes, which is 1048588");
}

#[test]
fn a_record_that_is_larger_than_its_topic_allows_ends_the_job_once() {
    let topic = Topic::with(&shared_broker(), 1, &[("max.message.bytes", "100000")]);
    too_large(&topic, 200_000, 3, "max.message.bytes, which is 100000");
}

/// The library tells of the refused record a moment after it takes no more: the records behind it are not to blame.
#[test]
fn a_record_that_its_topic_does_not_take_ends_the_job_once_also_with_many_behind_it() {
    let topic = Topic::with(&shared_broker(), 1, &[("max.message.bytes", "100000")]);
    too_large(&topic, 200_000, 200_000, "max.message.bytes, which is 100000");
}

#[test]
fn a_record_without_a_key_for_a_compacted_topic_ends_the_job_once() {
    let topic = Topic::with(&shared_broker(), 1, &[("cleanup.policy", "compact")]);
    let env = StreamEnvironment::new();
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name);
    let _ = env.source("numbers", Datagen::new(|index| index).bounded(3)).sink("numbers_topic", sink);
    let ended = run_job(&topic, env, 1, patient());
    let said = ended.failure();
    assert!(said.contains("cleanup.policy=compact") && said.contains(".key(..)"), "{said}");
    assert_eq!(ended.restarts, [""; 0], "no restart mends it");
}
