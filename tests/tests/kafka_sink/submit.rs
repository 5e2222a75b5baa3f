//! What is looked at before a job runs: brokers that are too old, rights that are missing, a topic that a broker does not know yet.

use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::messages::ApiKey;
use tidegate::connectors::kafka::wire::WireClient;
use tidegate::connectors::kafka::{BadRecord, KafkaSink, KafkaSource, StoppingOffsets};
use tidegate::engine::api::{ClaimWatch, ConnectorContext};
use tidegate::engine::clock::SystemClock;
use tidegate::engine::io::{NoWake, TokioIo};
use tidegate::prelude::*;
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_tests::Ended;

use crate::fake_broker::{FakeBroker, Offered};
use crate::run::{patient, run_job};
use crate::topic::Topic;

/// What Kafka 2.3 offers of the requests that are needed, in its versions.
const KAFKA_2_3: Offered = &[
    (ApiKey::Produce, 0, 7),
    (ApiKey::ListOffsets, 0, 5),
    (ApiKey::Metadata, 0, 8),
    (ApiKey::OffsetFetch, 0, 5),
    (ApiKey::FindCoordinator, 0, 2),
    (ApiKey::ApiVersions, 0, 2),
    (ApiKey::InitProducerId, 0, 1),
    (ApiKey::EndTxn, 0, 1),
    (ApiKey::DescribeConfigs, 0, 2),
];
/// What Kafka 2.8 offers: topics have ids, and transactions cannot be listed.
const KAFKA_2_8: Offered = &[
    (ApiKey::Metadata, 0, 11),
    (ApiKey::ApiVersions, 0, 3),
    (ApiKey::InitProducerId, 0, 4),
    (ApiKey::AddOffsetsToTxn, 0, 3),
    (ApiKey::TxnOffsetCommit, 0, 3),
    (ApiKey::OffsetFetch, 0, 7),
    (ApiKey::EndTxn, 0, 3),
];
/// No version of Kafka: one without idempotent producers that knows topics' ids.
const NOT_IDEMPOTENT: Offered = &[(ApiKey::Metadata, 0, 11), (ApiKey::ApiVersions, 0, 3)];

fn numbers_into(topic: &Topic, is_exact: bool) -> StreamEnvironment {
    let env = StreamEnvironment::new();
    let numbers = env.source("numbers", Datagen::new(|index| index).bounded(10));
    let sink = KafkaSink::<u64>::json(&topic.bootstrap, &topic.name);
    let sink = sink.transaction_timeout(Duration::from_secs(40)).longest_outage(Duration::from_secs(5));
    let _ = if is_exact {
        numbers.sink("numbers_topic", sink)
    } else {
        numbers.sink("numbers_topic", sink.at_least_once())
    };
    env
}

/// The job is over before a record was read, and says this.
fn refused(ended: &Ended, parts: &[&str]) {
    let said = ended.failure();
    for part in parts.iter().chain(&["help:"]) {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(ended.restarts, [""; 0], "{said}");
}

#[test]
fn brokers_that_are_too_old_are_refused_at_submit_by_source_and_sinks() {
    let cases = [(KAFKA_2_3, true), (KAFKA_2_3, false), (KAFKA_2_8, true), (NOT_IDEMPOTENT, false)];
    for (offered, is_exact) in cases {
        let broker = FakeBroker::start(offered, 1, Vec::new());
        let address = broker.address().to_string();
        let topic = Topic { bootstrap: address.clone(), name: "numbers".to_owned(), partitions: 1 };
        let ended = run_job(&topic, numbers_into(&topic, is_exact), 1, patient());
        refused(&ended, &["does not offer", &address, "version 3.0 or later"]);
    }
    let broker = FakeBroker::start(KAFKA_2_3, 1, Vec::new());
    let address = broker.address().to_string();
    let topic = Topic { bootstrap: address.clone(), name: "numbers".to_owned(), partitions: 1 };
    let env = StreamEnvironment::new();
    let source = KafkaSource::<u64>::json(&address, "numbers").bounded(StoppingOffsets::Latest);
    let _ = env.source("numbers", source).sink("out", CollectSink::new());
    let ended = run_job(&topic, env, 1, patient());
    refused(&ended, &["does not offer Metadata", &address, "version 3.0 or later"]);
}

#[test]
fn a_right_that_is_missing_is_named_at_submit_with_the_rule_that_gives_it() {
    let authorizer = "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer\n\
                      allow.everyone.if.no.acl.found=true\n\
                      transaction.max.timeout.ms=45000";
    let broker = Service::own(ServiceKind::Kafka, "ksink-rights", &[("KAFKA_PROPS", authorizer)]).unwrap();
    let bootstrap = broker.bootstrap().unwrap();
    let rule = |args: &[&str]| {
        let command = ["tools.AclCommand", "--bootstrap-server", bootstrap, "--add", "--force"];
        broker.run("run", &[&command, args].concat()).unwrap();
    };
    let [read_only, no_ids, no_groups, free, hidden, seen_only] = [(); 6].map(|()| Topic::at(bootstrap, 1));
    let prefixed = ["--resource-pattern-type", "prefixed", "--deny-principal", "User:ANONYMOUS"];
    rule(&["--allow-principal", "User:ANONYMOUS", "--operation", "Read", "--topic", &read_only.name]);
    let ids = format!("tidegate.{}.", no_ids.name);
    rule(&[&["--operation", "Write", "--transactional-id", &ids], &prefixed[..]].concat());
    let groups = format!("tidegate-ledger.{}.", no_groups.name);
    rule(&[&["--operation", "Read", "--group", &groups], &prefixed[..]].concat());

    rule(&["--deny-principal", "User:ANONYMOUS", "--operation", "Describe", "--topic", &hidden.name]);
    rule(&["--allow-principal", "User:ANONYMOUS", "--operation", "Describe", "--topic", &seen_only.name]);

    let mut config = patient();
    config.checkpoints.timeout_ms = 5_000;
    let run = |topic: &Topic, is_exact| run_job(topic, numbers_into(topic, is_exact), 1, config.clone());
    let write = format!("--operation write --topic {}", read_only.name);
    for is_exact in [true, false] {
        refused(&run(&read_only, is_exact), &["write the topic", &write]);
    }
    let rule = format!("--operation write --transactional-id {ids} --resource-pattern-type prefixed");
    refused(&run(&no_ids, true), &["transactional id", &rule]);
    let rule = format!("--operation read --group {groups} --resource-pattern-type prefixed");
    refused(&run(&no_groups, true), &["consumer group", &rule]);
    let rule = format!("--operation write --topic {}", hidden.name);
    for is_exact in [true, false] {
        refused(&run(&hidden, is_exact), &["see the topic", &rule]);
    }
    let read = |topic: &Topic, policy| {
        let env = StreamEnvironment::new();
        let source = KafkaSource::<u64>::json(bootstrap, &topic.name).on_bad_record(policy);
        let _ =
            env.source("numbers", source.bounded(StoppingOffsets::Latest)).sink("out", CollectSink::new());
        run_job(topic, env, 1, config.clone())
    };
    for topic in [&hidden, &seen_only] {
        let rule = format!("--operation read --topic {}", topic.name);
        refused(&read(topic, BadRecord::Fail), &["do not let this client", "read the topic", &rule]);
    }
    for letters in [&hidden, &read_only] {
        let rule = format!("--operation write --topic {}", letters.name);
        let policy = BadRecord::DeadLetter(letters.name.clone());
        refused(&read(&free, policy), &["do not let this client", &rule]);
    }
    // Rights of transactions are none of a sink without them.
    for (topic, is_exact) in [(&no_ids, false), (&no_groups, false), (&free, true)] {
        run(topic, is_exact).unbroken();
        topic.expect(0..10);
    }
    // A dead-letter topic that it may write into.
    read(&free, BadRecord::DeadLetter(no_ids.name.clone())).unbroken();
}

fn context() -> ConnectorContext {
    ConnectorContext {
        claim: ClaimWatch::unclaimed(),
        checkpoint_timeout: Duration::from_secs(60),
        clock: SystemClock::shared(),
        io: TokioIo::shared(tokio::runtime::Handle::current()),
        waker: Arc::new(NoWake),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_topic_that_a_broker_does_not_know_yet_is_looked_for_again_before_the_job_ends() {
    let opened = |broker: &FakeBroker| {
        KafkaSink::<u64>::json(broker.address().to_string(), "numbers").at_least_once().open(context(), 0)
    };
    let late = FakeBroker::start(KAFKA_2_8, 4, Vec::new());
    drop(opened(&late).await.unwrap());
    assert_eq!(late.looks(), 4);
    let never = FakeBroker::start(KAFKA_2_8, usize::MAX, Vec::new());
    let Err(error) = opened(&never).await else { panic!("it has no topic") };
    assert!(!error.restartable && error.message.contains("has no topic numbers"), "{}", error.message);
    assert_eq!(never.looks(), 4);
}

#[test]
fn a_topic_that_a_broker_does_not_know_yet_is_looked_for_again_by_a_source() {
    let never = FakeBroker::start(KAFKA_2_8, usize::MAX, Vec::new());
    let address = never.address().to_string();
    let topic = Topic { bootstrap: address.clone(), name: "numbers".to_owned(), partitions: 1 };
    let env = StreamEnvironment::new();
    let source = KafkaSource::<u64>::json(&address, "numbers").bounded(StoppingOffsets::Latest);
    let _ = env.source("numbers", source).sink("out", CollectSink::new());
    refused(&run_job(&topic, env, 1, patient()), &["numbers does not exist", &address]);
    assert_eq!(never.looks(), 4);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_whose_only_given_broker_is_gone_is_asked_by_the_others_that_it_told_of() {
    let other = FakeBroker::start(KAFKA_2_8, 1, Vec::new());
    let given = FakeBroker::start(KAFKA_2_8, 1, vec![other.address()]);
    let io = TokioIo::shared(tokio::runtime::Handle::current());
    let mut wire = WireClient::new(&given.address().to_string(), io);
    assert_eq!(wire.brokers().await.unwrap().len(), 2);
    drop(given);
    assert!(wire.describe_topic("numbers").await.unwrap().is_some());
    assert_eq!(other.looks(), 1);
}
