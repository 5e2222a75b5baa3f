//! A topic of a test's own, read as a read_committed consumer reads it.
//!
//! Owns: making it, reading it, waiting with a deadline. Does not own: what is written. Runs on: the test's threads.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{Message, OwnedMessage, Timestamp};
use rdkafka::producer::{BaseProducer, BaseRecord, Producer};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use tidegate::connectors::kafka::wire::WireClient;
use tidegate::connectors::kafka::{JobTransaction, TransactionAdmin};
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
    pub(crate) partitions: i32,
}

impl Topic {
    /// A new one, on the shared broker.
    pub(crate) fn new(partitions: i32) -> Self {
        Self::at(&shared_broker(), partitions)
    }

    /// A new one.
    pub(crate) fn at(bootstrap: &str, partitions: i32) -> Self {
        Self::with(bootstrap, partitions, &[])
    }

    /// A new one with settings.
    pub(crate) fn with(bootstrap: &str, partitions: i32, settings: &[(&str, &str)]) -> Self {
        let name = format!("tidegate_{:x}_{}", std::process::id(), TOPICS.fetch_add(1, Ordering::Relaxed));
        let topic = Self { bootstrap: bootstrap.to_owned(), name, partitions };
        topic.create(settings);
        topic
    }

    fn admin(&self) -> AdminClient<DefaultClientContext> {
        ClientConfig::new().set("bootstrap.servers", &self.bootstrap).create().unwrap()
    }

    pub(crate) fn create(&self, settings: &[(&str, &str)]) {
        let new = NewTopic::new(&self.name, self.partitions, TopicReplication::Fixed(1));
        let new = settings.iter().fold(new, |new, (name, value)| new.set(name, value));
        let made = apart(async { self.admin().create_topics([&new], &AdminOptions::new()).await.unwrap() });
        assert!(made[0].is_ok(), "{made:?}");
        // Its leaders are elected when it can be read.
        eventually("the topic is there", || self.try_read("read_uncommitted").is_ok());
    }

    pub(crate) fn delete(&self) {
        let names = [self.name.as_str()];
        let gone = apart(async { self.admin().delete_topics(&names, &AdminOptions::new()).await.unwrap() });
        assert!(gone[0].is_ok(), "{gone:?}");
    }

    /// Another one of the same name.
    pub(crate) fn make_again(&self) {
        let was = self.id();
        self.delete();
        self.create(&[]);
        eventually("the broker has another topic", || self.id().is_some_and(|id| Some(id) != was));
        eventually("that can be read", || self.try_read("read_uncommitted").is_ok());
    }

    /// So many numbers, each once and without transactions.
    pub(crate) fn fill(&self, numbers: u64) {
        let producer: BaseProducer =
            ClientConfig::new().set("bootstrap.servers", &self.bootstrap).create().unwrap();
        for number in 0..numbers {
            let text = number.to_string();
            let record = BaseRecord::to(&self.name).key(&text).payload(&text);
            producer.send(record).map_err(|(error, _)| error).unwrap();
        }
        producer.flush(PATIENCE).unwrap();
    }

    /// Its id; none while it is not there.
    pub(crate) fn id(&self) -> Option<String> {
        let found = apart(async {
            let io = TokioIo::shared(tokio::runtime::Handle::current());
            WireClient::new(&self.bootstrap, io).describe_topic(&self.name).await.unwrap()
        });
        found.map(|found| found.id)
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

    /// These numbers are committed, each once, and no others. (A commit is answered before its markers are written.)
    pub(crate) fn expect(&self, numbers: impl IntoIterator<Item = u64>) {
        let numbers: Vec<u64> = numbers.into_iter().collect();
        eventually("as many numbers are committed", || self.committed().len() >= numbers.len());
        assert_eq!(self.numbers(), numbers);
    }

    /// Everything, aborted records too.
    pub(crate) fn written(&self) -> Vec<String> {
        self.read("read_uncommitted")
    }

    /// Committed records with their timestamps.
    pub(crate) fn timestamps(&self) -> Vec<(String, Timestamp)> {
        let messages = self.messages("read_committed").unwrap();
        messages.iter().map(|message| (text(message), message.timestamp())).collect()
    }

    fn read(&self, isolation: &str) -> Vec<String> {
        self.try_read(isolation).unwrap()
    }

    fn try_read(&self, isolation: &str) -> Result<Vec<String>, KafkaError> {
        Ok(self.messages(isolation)?.iter().map(text).collect())
    }

    fn messages(&self, isolation: &str) -> Result<Vec<OwnedMessage>, KafkaError> {
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
                Some(Ok(message)) => records.push(message.detach()),
                Some(Err(KafkaError::PartitionEOF(_))) => ends += 1,
                Some(Err(error)) => return Err(error),
                None => {}
            }
        }
        Ok(records)
    }

    /// Records and markers in all partitions.
    pub(crate) fn entries(&self) -> i64 {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", &self.bootstrap).set("group.id", "audit");
        let consumer: BaseConsumer = config.create().unwrap();
        let ends =
            (0..self.partitions).map(|it| consumer.fetch_watermarks(&self.name, it, PATIENCE).unwrap().1);
        ends.sum()
    }

    /// How many transactional ids the broker knows of the job that is named as this topic.
    pub(crate) fn transactional_ids(&self) -> usize {
        let listed = apart(async {
            let io = TokioIo::shared(tokio::runtime::Handle::current());
            TransactionAdmin::new(&self.bootstrap, io).list(false).await.unwrap()
        });
        listed.iter().filter(|it| it.owner.job == self.name).count()
    }

    /// Transactional ids that are open in this topic.
    pub(crate) fn open_transactions(&self) -> Vec<String> {
        let listed = apart(async {
            let io = TokioIo::shared(tokio::runtime::Handle::current());
            TransactionAdmin::new(&self.bootstrap, io).list(true).await.unwrap()
        });
        let of_topic = |it: &JobTransaction| {
            it.state == "Ongoing" && it.partitions.iter().any(|(topic, _)| *topic == self.name)
        };
        listed.into_iter().filter(of_topic).map(|it| it.id).collect()
    }
}

fn text(message: &OwnedMessage) -> String {
    String::from_utf8(message.payload().unwrap().to_vec()).unwrap()
}

/// Runs on a thread and a runtime of its own, whether or not there is one here.
pub(crate) fn apart<T: Send>(work: impl Future<Output = T> + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
        });
        thread.join().unwrap()
    })
}

/// Waits until it is so.
pub(crate) fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let clock = SystemClock::new();
    while !is_so() {
        assert!(clock.now() < PATIENCE, "{what}: not within {PATIENCE:?}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}
