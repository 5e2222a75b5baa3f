//! Transactions of single subtasks: their life, their slots, who may end them.

use std::time::Duration;

use futures::future::join_all;
use tidegate::connectors::kafka::wire::WireClient;
use tidegate::engine::api::{Committer, TwoPhaseWriter};
use tidegate::engine::broker::Producer;
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::engine::io::TokioIo;
use tidegate::engine::operator::CommitOutcome;

use crate::subtask::{PLACES, Subtask, sink};
use crate::topic::{Topic, eventually};

fn wire(topic: &Topic) -> WireClient {
    WireClient::new(&topic.bootstrap, TokioIo::shared(tokio::runtime::Handle::current()))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_are_visible_with_the_commit_and_not_before() {
    let topic = Topic::new(2);
    let mut subtask = Subtask::first(&topic).await;
    let first = subtask.prepared(1, 0..10).await;
    assert_eq!(topic.numbers(), [0; 0], "prepared is not committed");
    assert_eq!(topic.written().len(), 10);
    assert_eq!(topic.open_transactions().len(), 1);
    assert_eq!(subtask.commit(&first).await, CommitOutcome::Committed);
    // A commit may be asked for again. The ledger follows when its own marker is written, and the answer then is another.
    let again = subtask.commit(&first).await;
    assert!(matches!(again, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted), "{again:?}");
    topic.expect(0..10);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_checkpoint_without_records_makes_no_transaction() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    for id in 1..=5 {
        assert_eq!(subtask.prepare(id).await.unwrap(), None);
    }
    let after = subtask.prepared(6, [7]).await;
    assert_eq!(subtask.commit(&after).await, CommitOutcome::Committed);
    topic.expect([7]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_barrier_right_after_the_first_record_loses_none() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    for number in 0..10 {
        let transaction = subtask.prepared(number + 1, [number]).await;
        assert_eq!(subtask.commit(&transaction).await, CommitOutcome::Committed);
    }
    topic.expect(0..10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn as_many_transactions_as_there_are_slots_wait_for_their_commit_side_by_side() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    let mut waiting = Vec::new();
    for id in 1..=PLACES as u64 {
        waiting.push(subtask.prepared(id, [id]).await);
    }
    let slots: std::collections::BTreeSet<_> = waiting.iter().map(|it| it.committable.slot).collect();
    assert_eq!(slots.len(), PLACES, "each has a slot of its own");
    let (name, io) = (subtask.context.name.clone(), subtask.context.connector.io.clone());
    let next = tidegate::engine::element::Batch::of(vec![100]);
    let (blocked, freed) = tokio::join!(subtask.writer.write(&name, next), async {
        io.sleep(std::time::Duration::from_millis(50)).await;
        subtask.committer.commit(&waiting[0]).await
    });
    blocked.unwrap();
    assert_eq!(freed.unwrap(), CommitOutcome::Committed, "a writer without a slot waits for this one");
    for transaction in &waiting[1..] {
        assert_eq!(subtask.commit(transaction).await, CommitOutcome::Committed);
    }
    let last = subtask.prepare(PLACES as u64 + 1).await.unwrap().unwrap();
    assert_eq!(subtask.commit(&last).await, CommitOutcome::Committed);
    topic.expect([1, 2, 3, 4, 100]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_later_attempt_commits_what_is_listed_and_aborts_the_rest() {
    let topic = Topic::new(2);
    let mut subtask = Subtask::first(&topic).await;
    let listed = [subtask.prepared(1, 0..3).await, subtask.prepared(2, 3..6).await];
    let unlisted = subtask.prepared(3, 6..9).await;
    subtask.write(9..12).await.unwrap();
    let mut next = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &listed).await.unwrap();
    assert_eq!(next.recovered, [CommitOutcome::Committed, CommitOutcome::Committed]);
    assert!(next.rolled_back >= 2, "the unlisted one, the open one: {}", next.rolled_back);
    topic.expect(0..6);
    // The old attempt is still there, and can do nothing more.
    let zombie = async { subtask.write(12..15).await.and(subtask.prepare(4).await.map(drop)) };
    assert!(zombie.await.is_err(), "a fenced writer prepares nothing");
    let CommitOutcome::Lost { reason } = subtask.commit(&unlisted).await else {
        panic!("it was rolled back")
    };
    assert!(reason.contains("ledger"), "{reason}");
    let again = next.prepared(3, 6..12).await;
    assert_eq!(next.commit(&again).await, CommitOutcome::Committed);
    topic.expect(0..12);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lower_parallelism_aborts_what_all_old_subtasks_left_open() {
    let topic = Topic::new(1);
    let mut old = Vec::new();
    for subtask in 0..3 {
        let mut it = Subtask::recover(sink(&topic), &topic, (subtask, 3), 1, &[]).await.unwrap();
        it.prepared(1, [u64::from(subtask)]).await;
        old.push(it);
    }
    assert_eq!(topic.open_transactions().len(), 3);
    let mut only = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &[]).await.unwrap();
    assert!(only.rolled_back >= 3, "{}", only.rolled_back);
    assert_eq!(topic.open_transactions(), [""; 0]);
    let transaction = only.prepared(1, [0, 1, 2]).await;
    assert_eq!(only.commit(&transaction).await, CommitOutcome::Committed);
    topic.expect([0, 1, 2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_fences_twenty_ids_that_an_older_attempt_left_open_within_ten_seconds() {
    const SUBTASKS: u32 = 5;
    let (ids, bound) = (SUBTASKS as usize * PLACES, Duration::from_secs(10));
    let topic = Topic::new(1);
    let old = (0..SUBTASKS).map(|subtask| {
        let topic = topic.clone();
        async move {
            let place = (subtask, SUBTASKS);
            let mut it = Subtask::recover(sink(&topic), &topic, place, 1, &[]).await.unwrap();
            for id in 1..=PLACES as u64 {
                it.prepared(id, [id]).await;
            }
            it
        }
    });
    let old = join_all(old).await;
    assert_eq!(topic.open_transactions().len(), ids);
    let clock = SystemClock::new();
    let next = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &[]).await.unwrap();
    assert!(clock.now() < bound, "a start with {ids} left-overs took {:?}", clock.now());
    assert!(next.rolled_back >= ids, "{}", next.rolled_back);
    assert_eq!(topic.open_transactions(), [""; 0]);
    drop(old);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_id_under_which_nothing_was_begun_is_fenced_too() {
    let topic = Topic::new(1);
    let idle = Subtask::first(&topic).await;
    eventually("its writer has made a producer", || topic.transactional_ids() > 0);
    let id = format!("tidegate.{}.0b8d.1.sink.0.0.1", topic.name);
    let mut wire = wire(&topic);
    let before = wire.describe_transaction(&id).await.unwrap().unwrap();
    assert_eq!(before.state, "Empty");
    let next = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &[]).await.unwrap();
    assert_eq!(next.rolled_back, 1);
    let after = wire.describe_transaction(&id).await.unwrap().unwrap();
    assert!(after.producer.epoch > before.producer.epoch, "{before:?} {after:?}");
    drop(idle);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_that_somebody_aborted_is_lost_and_one_that_somebody_committed_is_not() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    let (aborted, committed) = (subtask.prepared(1, [1]).await, subtask.prepared(2, [2]).await);
    let id = |slot: u32| format!("tidegate.{}.0b8d.1.sink.0.{slot}.1", topic.name);
    let mut wire = wire(&topic);
    for (transaction, commit) in [(&aborted, false), (&committed, true)] {
        let Producer { id: producer_id, epoch } = transaction.committable.producer();
        let producer = Producer { id: producer_id, epoch };
        wire.end_txn(&id(transaction.committable.slot), producer, commit, 4).await.unwrap();
    }
    let CommitOutcome::Lost { reason } = subtask.commit(&aborted).await else { panic!("it was aborted") };
    assert!(!reason.contains("by hand"), "nothing is noted about it: {reason}");
    assert_eq!(subtask.commit(&committed).await, CommitOutcome::AlreadyCommitted);
    topic.expect([2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_orderly_cancel_leaves_no_transaction_open() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    let prepared = subtask.prepared(1, [1]).await;
    subtask.write([2]).await.unwrap();
    subtask.writer.discard().await.unwrap();
    subtask.committer.roll_back(&prepared.name).await.unwrap();
    assert_eq!(topic.open_transactions(), [""; 0]);
    assert_eq!(topic.numbers(), [0; 0]);
}
