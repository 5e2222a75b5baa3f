//! A broker, topics of one test's own, and records in them.
//!
//! Owns: what a test does to the broker beside the job. Does not own: the job. Runs on: the test's thread.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::live_job::eventually;
use rdkafka::admin::{AdminClient, AdminOptions, NewPartitions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer};
use rdkafka::message::OwnedHeaders;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tidegate_jobs::services::{Service, ServiceKind};
use tidegate_jobs::tcp_proxy::TcpProxy;

const LIMIT: Duration = Duration::from_secs(20);

static SHARED: OnceLock<Service> = OnceLock::new();
static TOPICS: AtomicU32 = AtomicU32::new(0);

/// One test at a time has the place in front of the shared broker.
static PLACE: Mutex<()> = Mutex::new(());

fn service() -> &'static Service {
    SHARED.get_or_init(|| Service::shared(ServiceKind::Kafka).unwrap())
}

/// The broker that all tests share.
pub(crate) fn shared() -> &'static str {
    service().bootstrap().unwrap()
}

/// The place in front of the shared broker where a proxy can stand.
pub(crate) struct Place {
    /// Where clients come to.
    pub(crate) listen: SocketAddr,
    target: SocketAddr,
    _taken: MutexGuard<'static, ()>,
}

impl Place {
    /// Waits until it is free.
    pub(crate) fn take() -> Self {
        let taken = PLACE.lock().unwrap_or_else(PoisonError::into_inner);
        let address = |name| service().variable(name).unwrap().parse().unwrap();
        Self { listen: address("KAFKA_PROXY_LISTEN"), target: address("KAFKA_PROXY_TARGET"), _taken: taken }
    }

    /// The test before may have left the address a moment ago.
    pub(crate) fn proxy(&self) -> TcpProxy {
        let mut proxy = None;
        eventually("the proxy listens", || {
            proxy = TcpProxy::start_at(self.listen, self.target).ok();
            proxy.is_some()
        });
        proxy.unwrap()
    }
}

/// A record to be written.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub(crate) partition: i32,
    pub(crate) key: Option<&'static str>,
    pub(crate) value: Option<String>,
    pub(crate) time_ms: Option<i64>,
    pub(crate) header: Option<(&'static str, &'static str)>,
}

/// A topic at a broker.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) bootstrap: String,
    pub(crate) name: String,
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn options() -> AdminOptions {
    AdminOptions::new().operation_timeout(Some(LIMIT)).request_timeout(Some(LIMIT))
}

impl Topic {
    /// A new topic at the shared broker.
    pub(crate) fn new(partitions: i32) -> Self {
        Self::at(shared(), partitions)
    }

    pub(crate) fn at(bootstrap: &str, partitions: i32) -> Self {
        let topic = Self::named(bootstrap);
        topic.create(partitions);
        topic
    }

    /// A new one of one partition, at the shared broker, with a setting.
    pub(crate) fn with(name: &str, value: &str) -> Self {
        let topic = Self::named(shared());
        topic.create_with(1, &[(name, value)]);
        topic
    }

    fn named(bootstrap: &str) -> Self {
        let number = TOPICS.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate_source_{}_{number}", std::process::id());
        Self { bootstrap: bootstrap.to_owned(), name }
    }

    fn client(&self) -> ClientConfig {
        let mut client = ClientConfig::new();
        client.set("bootstrap.servers", &self.bootstrap);
        client
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        self.client().create().unwrap()
    }

    pub(crate) fn create(&self, partitions: i32) {
        self.create_with(partitions, &[]);
    }

    fn create_with(&self, partitions: i32, settings: &[(&str, &str)]) {
        let topic = NewTopic::new(&self.name, partitions, TopicReplication::Fixed(1))
            // Records of tests are of 1970: the broker would delete them as soon as it looks.
            .set("retention.ms", "-1");
        let topic = settings.iter().fold(topic, |topic, (name, value)| topic.set(name, value));
        let admin = self.admin();
        let made = block_on(admin.create_topics([&topic], &options())).unwrap();
        made.into_iter().for_each(|made| drop(made.unwrap()));
        // The controller has it; the broker learns of it a little later.
        eventually("the topic at the broker", || {
            let told = admin.inner().fetch_metadata(Some(&self.name), LIMIT).unwrap();
            told.topics().iter().any(|topic| topic.partitions().len() == usize::try_from(partitions).unwrap())
        });
    }

    pub(crate) fn delete(&self) {
        let gone = block_on(self.admin().delete_topics(&[&self.name], &options())).unwrap();
        gone.into_iter().for_each(|gone| drop(gone.unwrap()));
    }

    pub(crate) fn grow(&self, partitions: usize) {
        let more = NewPartitions::new(&self.name, partitions);
        let made = block_on(self.admin().create_partitions([&more], &options())).unwrap();
        made.into_iter().for_each(|made| drop(made.unwrap()));
    }

    /// What retention does: records before `offset` are gone.
    pub(crate) fn forget_before(&self, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.name, partition, Offset::Offset(offset)).unwrap();
        block_on(self.admin().delete_records(&list, &options())).unwrap();
    }

    /// Writes records and waits until they are there.
    pub(crate) fn write(&self, records: impl IntoIterator<Item = Written>) {
        let producer: BaseProducer = self.client().set("enable.idempotence", "true").create().unwrap();
        self.send(&producer, records);
        producer.flush(LIMIT).unwrap();
    }

    fn send(&self, producer: &BaseProducer, records: impl IntoIterator<Item = Written>) {
        for written in records {
            let mut record = BaseRecord::<str, str>::to(&self.name).partition(written.partition);
            record.key = written.key;
            record.payload = written.value.as_deref();
            record.timestamp = written.time_ms;
            if let Some((key, value)) = written.header {
                let header = rdkafka::message::Header { key, value: Some(value) };
                record.headers = Some(OwnedHeaders::new().insert(header));
            }
            producer.send(record).map_err(|(error, _)| error).unwrap();
            producer.poll(Duration::ZERO);
        }
    }

    /// `count` JSON numbers, the first of them `first`, dealt out to the partitions in turn.
    pub(crate) fn write_numbers(&self, partitions: i32, first: u64, count: u64) {
        self.write((first..first + count).map(|number| Written {
            partition: i32::try_from(number % u64::try_from(partitions).unwrap()).unwrap(),
            value: Some(number.to_string()),
            ..Written::default()
        }));
    }

    /// A producer with an open transaction that holds these records, flushed.
    pub(crate) fn begin(&self, records: impl IntoIterator<Item = Written>) -> BaseProducer {
        let id = format!("{}-{}", self.name, TOPICS.fetch_add(1, Ordering::Relaxed));
        let producer: BaseProducer = self.client().set("transactional.id", id).create().unwrap();
        producer.init_transactions(LIMIT).unwrap();
        producer.begin_transaction().unwrap();
        self.send(&producer, records);
        producer.flush(LIMIT).unwrap();
        producer
    }

    /// A transaction of numbers in one partition, committed or aborted.
    pub(crate) fn write_transaction(&self, partition: i32, numbers: std::ops::Range<u64>, commit: bool) {
        let number =
            |number: u64| Written { partition, value: Some(number.to_string()), ..Written::default() };
        let producer = self.begin(numbers.map(number));
        if commit {
            producer.commit_transaction(LIMIT).unwrap();
        } else {
            producer.abort_transaction(LIMIT).unwrap();
        }
    }

    fn consumer(&self, group: &str) -> BaseConsumer {
        let mut client = self.client();
        client
            .set("group.id", group)
            .set("enable.auto.commit", "false")
            .set("isolation.level", "read_committed");
        client.create().unwrap()
    }

    /// What a group has committed.
    pub(crate) fn group_offset(&self, group: &str, partition: i32) -> Option<i64> {
        let mut list = TopicPartitionList::new();
        list.add_partition(&self.name, partition);
        let told = self.consumer(group).committed_offsets(list, LIMIT).unwrap();
        match told.elements()[0].offset() {
            Offset::Offset(offset) => Some(offset),
            _ => None,
        }
    }

    /// Moves a group, as `kafka-consumer-groups.sh --reset-offsets` does.
    pub(crate) fn move_group(&self, group: &str, partition: i32, offset: i64) {
        let mut list = TopicPartitionList::new();
        list.add_partition_offset(&self.name, partition, Offset::Offset(offset)).unwrap();
        self.consumer(group).commit(&list, CommitMode::Sync).unwrap();
    }

    /// Behind the newest record and marker.
    pub(crate) fn end(&self, partition: i32) -> i64 {
        self.consumer("tidegate-ends").fetch_watermarks(&self.name, partition, LIMIT).unwrap().1
    }
}
