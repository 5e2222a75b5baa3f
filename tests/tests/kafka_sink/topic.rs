//! A topic of a test's own, read as a read_committed consumer reads it.
//!
//! Owns: making it, reading it, waiting with a deadline. Does not own: what is written. Runs on: the test's threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::Message;
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tidegate::connectors::kafka::wire::WireClient;
use tidegate::engine::clock::{Clock, SystemClock};
use tidegate::engine::io::TokioIo;
use tidegate_jobs::services::{Service, ServiceKind};

/// Nothing here takes as long, also on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

static TOPICS: AtomicU32 = AtomicU32::new(0);

/// The broker that tests share which leave it alone.
pub(crate) fn shared_broker() -> String {
    Service::shared(ServiceKind::Kafka).unwrap().bootstrap().unwrap().to_owned()
}

/// See the module.
#[derive(Clone, Debug)]
pub(crate) struct Topic {
    pub(crate) bootstrap: String,
    pub(crate) name: String,
    partitions: i32,
}

impl Topic {
    /// A new one, on the shared broker.
    pub(crate) fn new(partitions: i32) -> Self {
        Self::at(&shared_broker(), partitions)
    }

    /// A new one.
    pub(crate) fn at(bootstrap: &str, partitions: i32) -> Self {
        let name = format!("tidegate_{:x}_{}", std::process::id(), TOPICS.fetch_add(1, Ordering::Relaxed));
        let admin: AdminClient<DefaultClientContext> =
            ClientConfig::new().set("bootstrap.servers", bootstrap).create().unwrap();
        let topic = NewTopic::new(&name, partitions, TopicReplication::Fixed(1));
        let made = futures::executor::block_on(admin.create_topics([&topic], &AdminOptions::new())).unwrap();
        assert!(made[0].is_ok(), "{made:?}");
        let topic = Self { bootstrap: bootstrap.to_owned(), name, partitions };
        // Its leaders are elected when it can be read.
        eventually("the topic is there", || topic.try_read("read_uncommitted").is_ok());
        topic
    }

    /// What a reader of committed records sees, up to the last stable offset, in the order of each partition.
    pub(crate) fn committed(&self) -> Vec<String> {
        self.read("read_committed")
    }

    /// Committed numbers, sorted.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        let mut numbers: Vec<u64> = self.committed().iter().map(|text| text.parse().unwrap()).collect();
        numbers.sort_unstable();
        numbers
    }

    /// Everything, aborted records too.
    pub(crate) fn written(&self) -> Vec<String> {
        self.read("read_uncommitted")
    }

    fn read(&self, isolation: &str) -> Vec<String> {
        self.try_read(isolation).unwrap()
    }

    fn try_read(&self, isolation: &str) -> Result<Vec<String>, KafkaError> {
        let consumer: BaseConsumer = ClientConfig::new()
            .set("bootstrap.servers", &self.bootstrap)
            .set("group.id", "audit")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("isolation.level", isolation)
            .set("fetch.wait.max.ms", "20")
            .create()?;
        let mut all = TopicPartitionList::new();
        for partition in 0..self.partitions {
            all.add_partition_offset(&self.name, partition, Offset::Beginning)?;
        }
        consumer.assign(&all)?;
        let (mut records, mut ends, clock) = (Vec::new(), 0, SystemClock::new());
        while ends < self.partitions {
            assert!(clock.now() < PATIENCE, "{self:?} is not read to its end");
            match consumer.poll(Duration::from_millis(200)) {
                Some(Ok(message)) => {
                    records.push(String::from_utf8(message.payload().unwrap().to_vec()).unwrap());
                }
                Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Ok(records)
    }

    /// Transactional ids of a job that are open or being ended.
    pub(crate) fn open_transactions(&self, job: &str) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let io = TokioIo::shared(tokio::runtime::Handle::current());
            let mut wire = WireClient::new(&self.bootstrap, io);
            let listed = wire.list_transactions().await.unwrap();
            let open = listed.into_iter().filter(|it| {
                !matches!(it.state.as_str(), "Empty" | "CompleteCommit" | "CompleteAbort" | "Dead")
            });
            let prefix = format!("tidegate.{job}.");
            open.map(|it| it.id).filter(|id| id.starts_with(&prefix)).collect()
        })
    }
}

/// Waits until it is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while !is_so() {
        assert!(clock.now() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
