//! Brokers that are killed, that forget ids, that give a transaction up.

use std::time::Duration;

use tidegate::connectors::kafka::KafkaSink;
use tidegate::connectors::kafka::wire::WireClient;
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::engine::execution::JobOutcome;
use tidegate::engine::io::TokioIo;
use tidegate::engine::operator::CommitOutcome;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_tests::{Until, checkpoints_every, run};

use crate::proxy::{INIT_PRODUCER_ID, LossyProxy, Place};
use crate::subtask::{Subtask, Transaction, sink};
use crate::topic::{PATIENCE, Topic, eventually};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_killed_inside_a_transaction_and_before_its_commit_loses_and_doubles_nothing() {
    let mut broker = Service::own(ServiceKind::Kafka, "ksink-kill", &[]).unwrap();
    let topic = Topic::at(broker.bootstrap().unwrap(), 1);
    let mut subtask = Subtask::first(&topic).await;
    subtask.write(0..50).await.unwrap();
    broker.kill().unwrap();
    let meanwhile = subtask.write(50..100).await;
    broker.start().unwrap();
    // The transaction goes on, or the subtask fails and is done over: both are right.
    let mut listed = Vec::new();
    match meanwhile.and(subtask.prepare(1).await) {
        Ok(transaction) => listed.extend(transaction),
        Err(error) => assert!(error.restartable, "{}", error.full_text()),
    }
    if listed.is_empty() {
        subtask = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &[]).await.unwrap();
        listed.push(subtask.prepared(1, 0..100).await);
    }
    broker.kill().unwrap();
    let mut next = {
        let starting = tokio::task::spawn_blocking(move || {
            broker.start().unwrap();
            broker
        });
        // Asked while the broker is away.
        let outcome = subtask.commit(&listed[0]).await;
        broker = starting.await.unwrap();
        assert!(matches!(outcome, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted), "{outcome:?}");
        Subtask::recover(sink(&topic), &topic, (0, 1), 3, &listed).await.unwrap()
    };
    // A ledger follows its commit when the markers are written; until then a second commit is answered as the first.
    let done = [CommitOutcome::Committed, CommitOutcome::AlreadyCommitted];
    assert!(done.contains(&next.recovered[0]), "{:?}", next.recovered);
    let last = next.prepared(2, 100..110).await;
    assert_eq!(next.commit(&last).await, CommitOutcome::Committed);
    topic.expect(0..110);
    assert_eq!(topic.open_transactions(), [""; 0]);
    drop(broker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_the_broker_has_forgotten_is_committed_or_lost_by_the_ledger_and_never_asked_for_ever() {
    let forgetful = "transactional.id.expiration.ms=1000\ntransaction.remove.expired.transaction.cleanup.interval.ms=500\n\
                     producer.id.expiration.ms=1000";
    let broker = Service::own(ServiceKind::Kafka, "ksink-expiry", &[("KAFKA_PROPS", forgetful)]).unwrap();
    let topic = Topic::at(broker.bootstrap().unwrap(), 1);
    let mut patient = Subtask::recover(sink(&topic), &topic, (0, 2), 1, &[]).await.unwrap();
    let committed = patient.prepared(1, [1]).await;
    assert_eq!(patient.commit(&committed).await, CommitOutcome::Committed);
    topic.expect([1]);
    let short = sink(&topic).transaction_timeout(Duration::from_secs(5));
    let mut left = Subtask::recover(short, &topic, (1, 2), 1, &[]).await.unwrap();
    let pending = left.prepared(2, [2]).await;
    forgotten(&topic, [(0, &committed), (1, &pending)]).await;
    let next = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &[committed, pending]).await.unwrap();
    assert_eq!(next.recovered[0], CommitOutcome::AlreadyCommitted, "the ledger outlives the id");
    let CommitOutcome::Lost { reason } = &next.recovered[1] else { panic!("{:?}", next.recovered) };
    assert!(reason.contains("49"), "{reason}");
    topic.expect([1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_producer_whose_initialisation_was_repeated_without_an_answer_is_not_written_with() {
    let place = Place::take().await;
    let topic = Topic::new(1);
    let proxied = Topic { bootstrap: place.listen.to_string(), ..topic.clone() };
    let proxy = LossyProxy::at(place, INIT_PRODUCER_ID);
    let mut subtask = Subtask::first(&proxied).await;
    let error = subtask.write([1]).await.unwrap_err();
    assert!(proxy.has_lost(), "an answer was lost");
    let text = error.full_text();
    assert!(error.restartable && text.contains("could still abort"), "{text}");
    // The next attempt has ids of its own.
    let mut next = Subtask::recover(sink(&proxied), &proxied, (0, 1), 2, &[]).await.unwrap();
    let transaction = next.prepared(1, [1]).await;
    assert_eq!(next.commit(&transaction).await, CommitOutcome::Committed);
    topic.expect([1]);
}

#[test]
fn the_sink_without_transactions_loses_nothing_when_the_broker_is_killed_and_comes_back() {
    const NUMBERS: u64 = 6_000;
    let mut broker = Service::own(ServiceKind::Kafka, "ksink-plain", &[]).unwrap();
    let topic = Topic::at(broker.bootstrap().unwrap(), 2);
    let job = || {
        let env = StreamEnvironment::new();
        let source = Datagen::new(|index| index).bounded(NUMBERS).rate_per_second(2_000);
        let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name).at_least_once();
        let _ = env.source("numbers", source).sink("numbers_topic", sink);
        let storage = CheckpointStorage::open("memory://").unwrap();
        run(env, 2, checkpoints_every(100), Some(storage), Until::End)
    };
    let outcome = std::thread::scope(|scope| {
        let job = scope.spawn(job);
        eventually("the job writes", || topic.written().len() > 500);
        broker.kill().unwrap();
        assert!(!job.is_finished(), "the broker is killed under the job");
        broker.start().unwrap();
        job.join().unwrap()
    });
    assert_eq!(outcome.unwrap(), JobOutcome::Finished);
    let mut distinct = topic.numbers();
    distinct.dedup();
    assert_eq!(distinct, (0..NUMBERS).collect::<Vec<_>>());
}

/// Waits until the broker knows nothing of these transactions' ids.
async fn forgotten(topic: &Topic, transactions: [(u32, &Transaction); 2]) {
    let io = TokioIo::shared(tokio::runtime::Handle::current());
    let (mut wire, clock) = (WireClient::new(&topic.bootstrap, io), SystemClock::new());
    for (subtask, transaction) in transactions {
        let slot = transaction.committable.slot;
        let id = format!("tidegate.{}.0b8d.1.sink.{subtask}.{slot}.1", topic.name);
        while wire.describe_transaction(&id).await.unwrap().is_some() {
            assert!(clock.now() < 3 * PATIENCE, "{id} is still known");
            wire.sleep(Duration::from_millis(100)).await;
        }
    }
}
