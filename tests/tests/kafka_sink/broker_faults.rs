//! Brokers that are killed, that forget ids, that give a transaction up.

use std::time::Duration;

use tidegate::connectors::kafka::wire::WireClient;
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::engine::io::TokioIo;
use tidegate::engine::operator::CommitOutcome;
use tidegate_jobs::services::{Service, ServiceKind};

use crate::subtask::{Subtask, sink};
use crate::topic::{PATIENCE, Topic};

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
    assert_eq!(next.recovered, [CommitOutcome::AlreadyCommitted]);
    let last = next.prepared(2, 100..110).await;
    assert_eq!(next.commit(&last).await, CommitOutcome::Committed);
    assert_eq!(topic.numbers(), (0..110).collect::<Vec<_>>());
    assert_eq!(topic.open_transactions(&topic.name), [""; 0]);
    drop(broker);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_that_the_broker_has_forgotten_is_committed_or_lost_by_the_ledger_and_never_asked_for_ever() {
    let forgetful = "transactional.id.expiration.ms=1000\ntransaction.remove.expired.transaction.cleanup.interval.ms=500\n\
                     producer.id.expiration.ms=1000";
    let broker = Service::own(ServiceKind::Kafka, "ksink-expiry", &[("KAFKA_PROPS", forgetful)]).unwrap();
    let topic = Topic::at(broker.bootstrap().unwrap(), 1);
    let short = sink(&topic).transaction_timeout(Duration::from_secs(2));
    let mut subtask = Subtask::recover(short.clone(), &topic, (0, 1), 1, &[]).await.unwrap();
    let committed = subtask.prepared(1, [1]).await;
    assert_eq!(subtask.commit(&committed).await, CommitOutcome::Committed);
    let pending = subtask.prepared(2, [2]).await;
    forgotten(&topic, &[committed.committable.slot, pending.committable.slot]).await;
    let restored = [committed, pending];
    let next = Subtask::recover(short, &topic, (0, 1), 2, &restored).await.unwrap();
    assert_eq!(next.recovered[0], CommitOutcome::AlreadyCommitted, "the ledger outlives the id");
    let CommitOutcome::Lost { reason } = &next.recovered[1] else { panic!("{:?}", next.recovered) };
    assert!(reason.contains("49"), "{reason}");
    assert_eq!(topic.numbers(), [1]);
}

/// Waits until the broker knows nothing of these slots of attempt 1.
async fn forgotten(topic: &Topic, slots: &[u32]) {
    let io = TokioIo::shared(tokio::runtime::Handle::current());
    let (mut wire, clock) = (WireClient::new(&topic.bootstrap, io), SystemClock::new());
    for slot in slots {
        let id = format!("tidegate.{}.0b8d.1.sink.0.{slot}.1", topic.name);
        while wire.describe_transaction(&id).await.unwrap().is_some() {
            assert!(clock.now() < PATIENCE, "{id} is still known");
            wire.sleep(Duration::from_millis(100)).await;
        }
    }
}
