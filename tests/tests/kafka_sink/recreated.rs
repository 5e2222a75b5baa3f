//! A topic that was deleted and made again has lost what was committed into it: the sink says so, between runs and while it writes.

use tidegate::engine::api::{ConnectorContext, Sink, TwoPhaseSink, Writer};
use tidegate::engine::element::Batch;
use tidegate::engine::operator::CommitOutcome;

use crate::forget::{forget, remedy, text};
use crate::kills::Run;
use crate::subtask::{Subtask, sink};
use crate::topic::Topic;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_checkpoint_lists_is_lost_with_its_topic_whether_or_not_it_was_committed() {
    for committed in [true, false] {
        let topic = Topic::new(1);
        let mut subtask = Subtask::first(&topic).await;
        let listed = subtask.prepared(1, 0..10).await;
        if committed {
            assert_eq!(subtask.commit(&listed).await, CommitOutcome::Committed);
            topic.expect(0..10);
        }
        let was = topic.id().unwrap();
        topic.make_again();
        let next = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &[listed]).await.unwrap();
        let [CommitOutcome::Lost { reason }] = &next.recovered[..] else { panic!("{:?}", next.recovered) };
        assert!(reason.contains("deleted and created again"), "{reason}");
        assert!(reason.contains(&was) && reason.contains(&topic.id().unwrap()), "{was}: {reason}");
        assert_eq!(topic.written(), [""; 0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_in_the_topic_that_a_sink_wrote_into_before_is_committed_there() {
    let (before, now) = (Topic::new(1), Topic::new(1));
    let mut subtask = Subtask::first(&before).await;
    let listed = subtask.prepared(1, 0..10).await;
    // The ids are those of the same job; its sink has another topic.
    let next = Subtask::recover(sink(&now), &before, (0, 1), 2, &[listed]).await.unwrap();
    assert_eq!(next.recovered, [CommitOutcome::Committed]);
    before.expect(0..10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_older_version_stored_without_an_id_is_asked_of_its_coordinator_alone() {
    let topic = Topic::new(1);
    let mut subtask = Subtask::first(&topic).await;
    let mut listed = subtask.prepared(1, 0..10).await;
    assert!(listed.committable.topic_id.is_some());
    listed.committable.topic_id = None;
    let mut next = Subtask::recover(sink(&topic), &topic, (0, 1), 2, &[listed]).await.unwrap();
    assert_eq!(next.recovered, [CommitOutcome::Committed]);
    topic.expect(0..10);
    // Which does not tell that the topic went: this is what the id is for.
    let mut gone = next.prepared(2, 10..20).await;
    gone.committable.topic_id = None;
    topic.make_again();
    let next = Subtask::recover(sink(&topic), &topic, (0, 1), 3, &[gone]).await.unwrap();
    assert_eq!(next.recovered, [CommitOutcome::Committed]);
    assert_eq!(topic.written(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_under_which_the_topic_is_made_again_fails_for_good_and_so_does_its_next_attempt() {
    let topic = Topic::new(1);
    let sink = sink(&topic);
    let mut subtask = Subtask::recover(sink.clone(), &topic, (0, 1), 1, &[]).await.unwrap();
    let listed = subtask.prepared(1, 0..10).await;
    assert_eq!(subtask.commit(&listed).await, CommitOutcome::Committed);
    let was = topic.id().unwrap();
    topic.make_again();
    subtask.write(10..20).await.unwrap();
    let error = subtask.prepare(2).await.unwrap_err();
    let said = error.full_text();
    assert!(!error.restartable && said.contains("deleted and created again while the job wrote"), "{said}");
    assert!(
        said.contains(&was) && said.contains(&topic.id().unwrap()) && said.contains("--restore none"),
        "{said}"
    );
    // Also where the checkpoint to restore lists nothing.
    let again = sink.open_writer(subtask.context.clone()).await;
    let said = again.err().unwrap().full_text();
    assert!(said.contains("deleted and created again while the job wrote"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sink_without_transactions_says_so_when_it_is_flushed() {
    let topic = Topic::new(1);
    let subtask = Subtask::first(&topic).await;
    let connector: ConnectorContext = subtask.context.connector.clone();
    let plain = sink(&topic).at_least_once();
    let mut writer = plain.open(connector, 0).await.unwrap();
    writer.write(Batch::of((0..10).collect())).await.unwrap();
    writer.flush().await.unwrap();
    topic.make_again();
    writer.flush().await.unwrap();
    writer.write(Batch::of((10..20).collect())).await.unwrap();
    let error = writer.flush().await.unwrap_err();
    assert!(!error.restartable && error.full_text().contains("deleted and created again"), "{error}");
}

#[test]
fn a_job_started_over_a_topic_that_was_made_again_stops_until_somebody_decides() {
    let (topic, folder) = (Topic::new(3), tempfile::tempdir().unwrap());
    let run = Run { topic: &topic, folder: folder.path(), parallelism: 1, from: None };
    assert!(!run.run(2_000, "sink.commit.after:2"));
    topic.make_again();
    // The second checkpoint may still list the transaction of the first.
    let mut decided = 0;
    loop {
        let output = run.output(2_000, "");
        if output.status.success() {
            break;
        }
        let (transaction, said) = (remedy(&output), text(&output.stderr));
        assert!(said.contains("deleted and created again"), "{said}");
        assert_eq!(topic.written(), [""; 0], "nothing was written");
        assert!(forget(folder.path(), &transaction).status.success());
        decided += 1;
        assert!(decided <= 2, "{said}");
    }
    assert!(decided > 0, "what is lost stops the job");
    let numbers = topic.numbers();
    assert!(numbers.last() == Some(&1_999) && numbers.len() < 2_000, "{} are there", numbers.len());
    assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "nothing is there twice");
    assert_eq!(topic.open_transactions(), [""; 0]);
}
