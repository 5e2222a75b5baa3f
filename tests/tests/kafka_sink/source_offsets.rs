//! Offsets of a Kafka source inside the transactions of a Kafka sink of the same chain.

use tidegate::connectors::kafka::wire::WireClient;
use tidegate::connectors::kafka::{
    JobTransaction, KafkaSink, KafkaSource, StoppingOffsets, TransactionAdmin,
};
use tidegate::engine::io::TokioIo;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_tests::{Until, checkpoints_every, run};

use crate::kills::Run;
use crate::topic::{Topic, apart, eventually};
use crate::txn::txn;

const NUMBERS: u64 = 2_000;

/// Numbers in a topic, each once and without transactions: offsets count records.
fn filled() -> Topic {
    let topic = Topic::new(3);
    topic.fill(NUMBERS);
    topic
}

/// How many records the group of this topic counts as done.
fn done(topic: &Topic) -> u64 {
    let offsets = apart(async {
        let io = TokioIo::shared(tokio::runtime::Handle::current());
        let partitions = (0..topic.partitions).collect();
        WireClient::new(&topic.bootstrap, io)
            .group_offsets(&topic.name, &topic.name, partitions)
            .await
            .unwrap()
    });
    offsets.values().map(|offset| offset.unsigned_abs()).sum()
}

/// The open transaction that began first: the one that the newest checkpoint lists.
fn oldest_open(topic: &Topic) -> String {
    let listed = apart(async {
        let io = TokioIo::shared(tokio::runtime::Handle::current());
        TransactionAdmin::new(&topic.bootstrap, io).list(true).await.unwrap()
    });
    let of_topic = |it: &JobTransaction| it.partitions.iter().any(|(name, _)| *name == topic.name);
    listed.into_iter().filter(of_topic).min_by_key(|it| it.started_ms).unwrap().id
}

#[test]
fn the_group_of_the_source_moves_with_the_records_that_become_visible_and_by_nothing_else() {
    let (source, topic, folder) = (filled(), Topic::new(3), tempfile::tempdir().unwrap());
    let run = Run { topic: &topic, folder: folder.path(), parallelism: 1, from: Some(&source) };
    // The second checkpoint is complete, and its transaction is not committed.
    assert!(!run.run(NUMBERS, "sink.commit.before:2"));
    eventually("what is visible is what the group says", || done(&source) == topic.numbers().len() as u64);
    let before = done(&source);
    assert!(0 < before && before < NUMBERS, "{before}");
    // Whoever commits the transaction moves the group.
    assert!(txn(&topic, "commit", &[&oldest_open(&topic)]).status.success());
    eventually("the group has moved", || done(&source) > before);
    eventually("with the records", || done(&source) == topic.numbers().len() as u64);
    assert!(run.run(NUMBERS, ""));
    topic.expect(0..NUMBERS);
    eventually("the group stands at the end", || done(&source) == NUMBERS);
    assert_eq!(topic.open_transactions(), [""; 0]);
}

/// From a topic into that of another cluster, with the source's offsets in the transactions.
fn copied_elsewhere(source: &Topic, topic: &Topic) -> String {
    let env = StreamEnvironment::new();
    let numbers = KafkaSource::<u64>::json(&source.bootstrap, &source.name);
    let numbers = numbers.group(&source.name).bounded(StoppingOffsets::Latest);
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name).source_offsets();
    let _ = env.source("numbers", numbers).sink("numbers_topic", sink);
    let storage = CheckpointStorage::open("memory://").unwrap();
    let error = run(env, 1, checkpoints_every(100), Some(storage), Until::End).unwrap_err();
    tidegate::error_text(&error)
}

#[test]
fn a_cluster_that_does_not_have_the_sources_topic_takes_no_offsets_of_it() {
    let other = Service::own(ServiceKind::Kafka, "ksink-other", &[]).unwrap();
    let (source, topic) = (filled(), Topic::at(other.bootstrap().unwrap(), 1));
    let refused = |said: String| {
        assert!(said.contains("does not have the topic") && said.contains(&source.name), "{said}");
        assert!(said.contains(&topic.bootstrap) && said.contains("leave .source_offsets() away"), "{said}");
        assert_eq!(topic.committed(), [""; 0]);
        assert_eq!(done(&source), 0);
    };
    refused(copied_elsewhere(&source, &topic));
    // Another topic of the same name is not the source's.
    Topic { bootstrap: topic.bootstrap.clone(), ..source.clone() }.create(&[]);
    refused(copied_elsewhere(&source, &topic));
}

#[test]
fn each_reader_of_a_parallel_job_tells_its_own_partitions() {
    let (source, topic, folder) = (filled(), Topic::new(3), tempfile::tempdir().unwrap());
    let run = |parallelism| Run { topic: &topic, folder: folder.path(), parallelism, from: Some(&source) };
    assert!(!run(3).run(NUMBERS, "sink.commit.after:2"));
    assert!(run(2).run(NUMBERS, ""));
    topic.expect(0..NUMBERS);
    eventually("the group stands at the end", || done(&source) == NUMBERS);
}
