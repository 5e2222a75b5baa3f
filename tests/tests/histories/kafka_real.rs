//! `kafka_transactions.json` on a real broker, by wire: equal answers, or the model is wrong.
//!
//! Every run of a case has partitions, ids and groups of its own, so that runs go side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use futures::StreamExt;
use kafka_protocol::messages::add_partitions_to_txn_request::AddPartitionsToTxnTopic;
use kafka_protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use kafka_protocol::messages::{
    AddPartitionsToTxnRequest, AddPartitionsToTxnResponse, ProduceRequest, ProducerId, TopicName,
    TransactionalId,
};
use kafka_protocol::protocol::StrBytes;
use kafka_protocol::records::{Compression, Record, RecordBatchEncoder, RecordEncodeOptions, TimestampType};
use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tidegate::connectors::kafka::wire::{CoordinatorKind, WireClient, WireError};
use tidegate_engine::broker::{BrokerCode, Producer};
use tidegate_engine::clock::{Clock, SystemClock};
use tidegate_engine::io::TokioIo;
use tidegate_jobs::services::{Service, ServiceKind};

use super::kafka::{Case, Codes, DEFAULT_TIMEOUT_MS, History, Step, VERSIONS, Version};

/// Nothing here takes as long, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Between two questions.
const AGAIN: Duration = Duration::from_millis(20);
/// Partitions of a run: `t-0` and `t-1`.
const PARTITIONS: usize = 2;
/// The partition was made just now, and its leader does not know yet.
const NOT_LEADER: i16 = 6;
/// Runs side by side.
const RUNS_AT_ONCE: usize = 8;

struct Replay {
    wire: WireClient,
    bootstrap: Arc<str>,
    topic: Arc<str>,
    run: usize,
    version: i16,
    /// Transactional id, identity and next sequence number by partition.
    producers: BTreeMap<String, (String, Producer, BTreeMap<i32, i32>)>,
    ids: BTreeSet<String>,
    clock: SystemClock,
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn code(answer: Result<(), WireError>) -> i16 {
    match answer {
        Ok(()) => 0,
        Err(error) => error.code().unwrap_or_else(|| panic!("{error:?}")).0,
    }
}

impl Replay {
    /// An id or a group, of this run only.
    fn own(&self, name: &str) -> String {
        format!("{}.{}.{name}", self.topic, self.run)
    }

    fn partition(&self, name: &str) -> i32 {
        let number: usize = name.strip_prefix("t-").unwrap().parse().unwrap();
        assert!(number < PARTITIONS);
        i32::try_from(self.run * PARTITIONS + number).unwrap()
    }

    fn expect(&self, asked: &str, code: i16, expect: &Codes) {
        let allowed = match expect {
            Codes::Any(codes) => codes,
            Codes::ByVersion(codes) => &codes[&self.version.to_string()],
        };
        assert!(
            allowed.contains(&code),
            "{asked} is answered with {}, expected one of {allowed:?}",
            BrokerCode(code)
        );
    }

    async fn pause(&self) {
        assert!(self.clock.now() < PATIENCE, "run {} takes too long", self.run);
        self.wire.sleep(AGAIN).await;
    }

    async fn initialise(&mut self, id: &str, timeout_ms: u64) -> Result<Producer, i16> {
        loop {
            match self.wire.initialise(id, i32::try_from(timeout_ms).unwrap()).await {
                Ok(producer) => return Ok(producer),
                Err(error) if error.is_transient() => self.pause().await,
                Err(error) => return Err(code(Err(error))),
            }
        }
    }

    async fn begin(&mut self, producer: &str, partition: i32) -> i16 {
        let (id, Producer { id: producer_id, epoch }, _) = &self.producers[producer];
        let mut topic = AddPartitionsToTxnTopic::default();
        topic.name = TopicName(text(&self.topic));
        topic.partitions = vec![partition];
        let mut request = AddPartitionsToTxnRequest::default();
        request.v3_and_below_transactional_id = TransactionalId(text(id));
        request.v3_and_below_producer_id = ProducerId(*producer_id);
        request.v3_and_below_producer_epoch = *epoch;
        request.v3_and_below_topics = vec![topic];
        let of = |answer: &AddPartitionsToTxnResponse| {
            answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code
        };
        let kind = CoordinatorKind::Transaction;
        code(self.wire.call_coordinator(kind, id, 0..=3, &request, of).await.map(drop))
    }

    async fn produce(&mut self, producer: &str, partition: i32, values: &[String]) -> i16 {
        let (id, identity, sequences) = self.producers.get_mut(producer).unwrap();
        let sequence = sequences.entry(partition).or_default();
        let record = |(index, value): (usize, &String)| Record {
            transactional: true,
            control: false,
            delete_horizon: false,
            partition_leader_epoch: -1,
            producer_id: identity.id,
            producer_epoch: identity.epoch,
            timestamp_type: TimestampType::Creation,
            offset: i64::try_from(index).unwrap(),
            sequence: *sequence + i32::try_from(index).unwrap(),
            timestamp: 0,
            key: None,
            value: Some(value.clone().into_bytes().into()),
            headers: Default::default(),
        };
        let records: Vec<Record> = values.iter().enumerate().map(record).collect();
        *sequence += i32::try_from(values.len()).unwrap();
        let options = RecordEncodeOptions { version: 2, compression: Compression::None };
        let mut bytes = BytesMut::new();
        RecordBatchEncoder::encode(&mut bytes, &records, &options).unwrap();
        let mut data = PartitionProduceData::default();
        data.index = partition;
        data.records = Some(bytes.freeze());
        let mut topic = TopicProduceData::default();
        topic.name = TopicName(text(&self.topic));
        topic.partition_data = vec![data];
        let mut request = ProduceRequest::default();
        request.transactional_id = Some(TransactionalId(text(id)));
        request.acks = -1;
        request.timeout_ms = 5_000;
        request.topic_data = vec![topic];
        loop {
            // As librdkafka: version 11 says 120 for 48, and from 12 on a produce adds its partition to the transaction.
            let answer = self.wire.call(&self.bootstrap, 7..=10, &request).await.unwrap();
            match answer.responses[0].partition_responses[0].error_code {
                NOT_LEADER => self.pause().await,
                code => return code,
            }
        }
    }

    /// Waits until no id of this run is in one of these states.
    async fn outlive(&mut self, states: &[&str]) {
        for id in self.ids.clone() {
            while let Some(it) = self.wire.describe_transaction(&id).await.unwrap() {
                if !states.contains(&it.state.as_str()) {
                    break;
                }
                self.pause().await;
            }
        }
    }

    async fn step(&mut self, step: Step) {
        let asked = format!("{step:?}");
        match step {
            Step::Init { producer, id, timeout_ms, code, expect } => {
                let id = self.own(&id);
                match (self.initialise(&id, timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS)).await, code) {
                    (Err(is), Some(code)) => assert_eq!(is, code, "{asked}"),
                    (Ok(is), None) => {
                        assert_eq!(is.epoch, expect.epoch.unwrap_or(is.epoch), "{asked}");
                        self.ids.insert(id.clone());
                        self.producers.insert(producer, (id, is, BTreeMap::new()));
                    }
                    (other, _) => panic!("{asked}: {other:?}"),
                }
            }
            Step::Begin { producer, partition, expect } => {
                let is = self.begin(&producer, self.partition(&partition)).await;
                self.expect(&asked, is, &expect);
            }
            Step::Produce { producer, partition, records, expect } => {
                let is = self.produce(&producer, self.partition(&partition), &records).await;
                self.expect(&asked, is, &expect);
            }
            Step::Ledger { producer, group, offset } => {
                let (group, topic) = (self.own(&group), Arc::clone(&self.topic));
                let (id, producer, _) = self.producers[&producer].clone();
                self.wire.add_offsets(&id, producer, &group).await.unwrap();
                let offsets = BTreeMap::from([(0, i64::try_from(offset).unwrap())]);
                self.wire.commit_offsets(&id, producer, &group, &topic, &offsets, "").await.unwrap();
            }
            Step::End { producer, commit, version, id, epoch_plus, producer_id_plus, expect } => {
                let (own, mut producer, _) = self.producers[&producer].clone();
                producer.epoch += epoch_plus;
                producer.id += producer_id_plus;
                let version = match version {
                    Version::Number(version) => version,
                    Version::Each(_) => self.version,
                };
                let id = id.map_or(own, |id| self.own(&id));
                let is = code(self.wire.end_txn(&id, producer, commit, version).await);
                self.expect(&asked, is, &expect);
            }
            Step::Settle => self.outlive(&["PrepareCommit", "PrepareAbort", "PrepareEpochFence"]).await,
            Step::Outlast { .. } => {
                self.outlive(&["Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"]).await;
            }
            Step::Offset { group, stable, code: refused, expect } => {
                let (group, topic) = (self.own(&group), Arc::clone(&self.topic));
                match (self.wire.ledger_offset(&group, &topic, stable).await, refused) {
                    (Ok(is), None) => assert_eq!(is, expect, "{asked}"),
                    (Err(error), Some(refused)) => assert_eq!(code(Err(error)), refused, "{asked}"),
                    (other, _) => panic!("{asked}: {other:?}"),
                }
            }
            Step::Read { partition, expect } => {
                let (bootstrap, topic, partition) =
                    (Arc::clone(&self.bootstrap), Arc::clone(&self.topic), self.partition(&partition));
                let read = move || read_committed(&bootstrap, &topic, partition);
                assert_eq!(tokio::task::spawn_blocking(read).await.unwrap(), expect, "{asked}");
            }
            Step::List { expect } => {
                let listed = self.wire.list_transactions().await.unwrap();
                let own = self.own("");
                let of_run = listed
                    .into_iter()
                    .filter_map(|it| it.id.strip_prefix(&own).map(|id| (id.to_owned(), it.state.clone())));
                assert_eq!(of_run.collect::<BTreeMap<_, _>>(), expect, "{asked}");
            }
        }
    }
}

fn read_committed(bootstrap: &str, topic: &str, partition: i32) -> Vec<String> {
    let consumer: BaseConsumer = ClientConfig::new()
        .set("bootstrap.servers", bootstrap)
        .set("group.id", "audit")
        .set("enable.auto.commit", "false")
        .set("enable.partition.eof", "true")
        .set("isolation.level", "read_committed")
        .set("fetch.wait.max.ms", "20")
        .create()
        .unwrap();
    let mut all = TopicPartitionList::new();
    all.add_partition_offset(topic, partition, Offset::Beginning).unwrap();
    consumer.assign(&all).unwrap();
    let (mut records, clock) = (Vec::new(), SystemClock::new());
    loop {
        assert!(clock.now() < PATIENCE, "partition {partition} is not read to its end");
        match consumer.poll(Duration::from_millis(100)) {
            Some(Ok(message)) => {
                records.push(String::from_utf8(message.payload().unwrap().to_vec()).unwrap())
            }
            Some(Err(KafkaError::PartitionEOF(_))) => return records,
            Some(Err(error)) => panic!("{error}"),
            None => {}
        }
    }
}

async fn create_topic(bootstrap: &str, topic: &str, partitions: usize) {
    let admin: AdminClient<DefaultClientContext> =
        ClientConfig::new().set("bootstrap.servers", bootstrap).create().unwrap();
    let topic = NewTopic::new(topic, i32::try_from(partitions).unwrap(), TopicReplication::Fixed(1));
    let made = admin.create_topics([&topic], &AdminOptions::new()).await.unwrap();
    assert!(made[0].is_ok(), "{made:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_broker_answers_as_its_model_does() {
    let history: History = super::read("kafka_transactions.json");
    let bootstrap: Arc<str> = Arc::from(Service::shared(ServiceKind::Kafka).unwrap().bootstrap().unwrap());
    let topic: Arc<str> = Arc::from(format!("tidegate_history_{:x}", std::process::id()));
    let versions = |case: &Case| if case.each_version { &VERSIONS[..] } else { &VERSIONS[5..] };
    let runs: Vec<(usize, Case, i16)> = history
        .cases
        .iter()
        .flat_map(|case| versions(case).iter().map(|version| (case.clone(), *version)))
        .enumerate()
        .map(|(run, (case, version))| (run, case, version))
        .collect();
    create_topic(&bootstrap, &topic, runs.len() * PARTITIONS).await;
    let count = runs.len();
    let replays = futures::stream::iter(runs).map(|(run, case, version)| {
        let io = TokioIo::shared(tokio::runtime::Handle::current());
        let mut replay = Replay {
            wire: WireClient::new(&bootstrap, io),
            bootstrap: Arc::clone(&bootstrap),
            topic: Arc::clone(&topic),
            run,
            version,
            producers: BTreeMap::new(),
            ids: BTreeSet::new(),
            clock: SystemClock::new(),
        };
        let name = format!("{} (version {version})", case.name);
        let replayed = tokio::spawn(async move {
            for step in case.steps {
                replay.step(step).await;
            }
        });
        async move { replayed.await.map_err(|panic| format!("{name}: {panic}")) }
    });
    let failed: Vec<String> =
        replays.buffer_unordered(RUNS_AT_ONCE).filter_map(|run| async { run.err() }).collect().await;
    assert!(failed.is_empty(), "{} of {count} runs:\n{}", failed.len(), failed.join("\n"));
    assert!(count > 100, "{count} runs");
}
