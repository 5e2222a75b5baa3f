//! Whole jobs over a network that loses answers and is late, and with brokers that are away.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tidegate::connectors::kafka::{KafkaSink, KafkaSource, StoppingOffsets};
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::prelude::*;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_tests::Ended;

use crate::proxy::{ADD_OFFSETS_TO_TXN, END_TXN, LossyProxy, PRODUCE, Place, TXN_OFFSET_COMMIT};
use crate::run::{Once, patient, run_job};
use crate::topic::{Topic, apart, eventually};

/// Where clients of this topic go through the proxy.
fn proxied(topic: &Topic, place: &Place) -> Topic {
    Topic { bootstrap: place.listen.to_string(), ..topic.clone() }
}

/// From one topic into another, in transactions that hold the source's offsets too; `at` is called with each number.
fn copied(
    source: &Topic,
    topic: &Topic,
    per_second: u64,
    parallelism: u32,
    at: impl Fn(u64) + Clone + Send + 'static,
) -> Ended {
    let env = StreamEnvironment::new();
    let numbers = KafkaSource::<u64>::json(&source.bootstrap, &source.name).group(&source.name);
    let numbers = numbers.bounded(StoppingOffsets::Latest).rate_per_second(per_second);
    let numbers = env.source("numbers", numbers).map(move |number| {
        at(number);
        number
    });
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name).key(|number| number.to_string());
    let _ = numbers.sink("numbers_topic", sink.source_offsets());
    run_job(topic, env, parallelism, patient())
}

/// Each number is there once, and nothing is left open.
fn audit(topic: &Topic, numbers: u64) {
    topic.expect(0..numbers);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

/// The first request of this kind is executed, and its answer is lost with the connection.
fn lost_answer(key: i16) -> Ended {
    const NUMBERS: u64 = 2_000;
    let (place, source, topic) = (apart(Place::take()), Topic::new(2), Topic::new(2));
    source.fill(NUMBERS);
    let through = proxied(&topic, &place);
    let proxy = LossyProxy::at(place, key);
    let ended = copied(&source, &through, 4_000, 2, |_| ());
    assert!(proxy.has_lost(), "an answer was lost");
    ended.finished();
    audit(&topic, NUMBERS);
    ended
}

#[test]
fn a_lost_answer_to_records_costs_no_attempt_and_doubles_none() {
    assert_eq!(lost_answer(PRODUCE).restarts, [""; 0]);
}

#[test]
fn a_lost_answer_to_a_commit_costs_no_attempt_and_doubles_nothing() {
    assert_eq!(lost_answer(END_TXN).restarts, [""; 0]);
}

/// The request may be executed late, in a transaction that it does not belong to: it is not sent again.
#[test]
fn a_lost_answer_to_offsets_in_a_transaction_costs_the_attempt_and_no_record() {
    for key in [ADD_OFFSETS_TO_TXN, TXN_OFFSET_COMMIT] {
        let restarts = lost_answer(key).restarts;
        assert!(!restarts.is_empty() && restarts[0].contains("noting offsets"), "{restarts:?}");
    }
}

#[test]
fn a_broker_killed_in_the_middle_and_away_for_20_s_costs_source_and_sink_no_record_and_doubles_none() {
    const NUMBERS: u64 = 6_000;
    const AWAY: Duration = Duration::from_secs(20);
    let broker = Service::own(ServiceKind::Kafka, "ktok-away", &[]).unwrap();
    let bootstrap = broker.bootstrap().unwrap().to_owned();
    let (source, topic) = (Topic::at(&bootstrap, 2), Topic::at(&bootstrap, 2));
    source.fill(NUMBERS);
    let (broker, coming) = (Arc::new(Mutex::new(broker)), Arc::new(Mutex::new(None)));
    let strike = Once::new({
        let (broker, coming) = (Arc::clone(&broker), Arc::clone(&coming));
        move || {
            broker.lock().unwrap().kill().unwrap();
            let broker = Arc::clone(&broker);
            *coming.lock().unwrap() = Some(std::thread::spawn(move || {
                let clock = SystemClock::new();
                eventually("the broker has been away", || clock.now() >= AWAY);
                broker.lock().unwrap().start().unwrap();
            }));
        }
    });
    let ended = copied(&source, &topic, 3_000, 2, move |number| {
        if number == NUMBERS / 2 {
            strike.run();
        }
    });
    coming.lock().unwrap().take().unwrap().join().unwrap();
    ended.finished();
    audit(&topic, NUMBERS);
    drop(broker);
}
