//! `orders produce`: fills a topic with made-up orders, or with those of a folder.
//!
//! Owns: the record's form (key: the user as text; value: the order as JSON), the producer, and that every record was acknowledged.
//! Does not own: what an order looks like ([`crate::generate`], [`crate::order`]).
//! Runs on: the calling thread, which waits when the producer's queue is full.
//!
//! Deterministic: orders go out by their id, and a user's partition is a function of user and number of partitions (murmur2, as
//! Java's clients have it), so that the same flags make the same topic everywhere, offset by offset. The producer is idempotent: a
//! retry puts no record there twice.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use clap::Args;
use rdkafka::ClientContext;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::DeliveryResult;
use rdkafka::producer::{BaseProducer, BaseRecord, Producer, ProducerContext};

use super::TopicError;
use super::admin::{PATIENCE, client, create};
use crate::address::servers::{KafkaAddress, parse_bootstrap};
use crate::generate::order_of;
use crate::order::Order;
use crate::partitions::{MAX_PARTITIONS, orders_of_folder};
use tidegate::stdout;
use tidegate_jobs::digits::grouped;
use tidegate_jobs::stopwatch::Stopwatch;

/// How long the end waits for the last acknowledgements.
const FLUSH_PATIENCE: Duration = Duration::from_secs(60);
/// Records sent between two looks at what was acknowledged.
const POLL_EVERY: u64 = 256;

/// Flags of `orders produce`.
#[derive(Debug, Args)]
pub(crate) struct ProduceArgs {
    /// The cluster.
    #[arg(long, value_name = "HOST:PORT", value_parser = parse_bootstrap)]
    pub(crate) kafka: String,
    /// The topic; it is made, and must not have records.
    #[arg(long, value_name = "TOPIC", default_value = "orders")]
    pub(crate) topic: String,
    /// Partitions of the topic.
    #[arg(long, value_name = "P", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=MAX_PARTITIONS))]
    pub(crate) partitions: u32,
    /// Made-up orders: how many; their ids are 1..N.
    #[arg(long, value_name = "N", required_unless_present = "from")]
    pub(crate) orders: Option<u64>,
    /// Made-up orders: number of users.
    #[arg(long, value_name = "U", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) users: u64,
    /// Made-up orders: another seed gives other orders.
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub(crate) seed: u64,
    /// The orders of this folder, as generate and import write it, instead of made-up ones.
    #[arg(long, value_name = "DIR", conflicts_with = "orders")]
    pub(crate) from: Option<PathBuf>,
    /// At most this many orders a second: a topic that grows while a job reads it.
    #[arg(long, value_name = "ORDERS_PER_SECOND", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) rate: Option<u64>,
    /// Remove a topic of this name first.
    #[arg(long)]
    pub(crate) force: bool,
}

/// Fills the topic and says so.
///
/// # Errors
/// [`TopicError`]; then some of the orders may be in the topic.
pub(crate) fn produce(args: &ProduceArgs) -> Result<ExitCode, TopicError> {
    let address: KafkaAddress =
        format!("kafka://{}/{}", args.kafka, args.topic).parse().map_err(|problem| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, problem);
            TopicError::Name { source }
        })?;
    let orders: Box<dyn Iterator<Item = Order>> = match &args.from {
        Some(folder) => Box::new(read_folder(folder)?.into_iter()),
        None => {
            let ids = 1..=args.orders.unwrap_or_default();
            Box::new(ids.map(|order_id| order_of(args.seed, order_id, args.users)))
        }
    };
    create(&address, args.partitions, args.force)?;
    let mut feed = Feed::open(&address)?;
    let pace = Pace::of(args.rate);
    for (sent, order) in (0..).zip(orders) {
        pace.wait(&feed, sent);
        feed.send(&order)?;
    }
    let sent = feed.finish()?;
    stdout::line(format_args!("{} orders in {} partitions: {address}", grouped(sent), args.partitions));
    Ok(ExitCode::SUCCESS)
}

/// Makes the topic and puts the orders of a folder into it.
///
/// # Errors
/// As [`produce`].
pub(crate) fn fill_from(
    address: &KafkaAddress,
    folder: &Path,
    partitions: u32,
    force: bool,
) -> Result<u64, TopicError> {
    let orders = read_folder(folder)?;
    create(address, partitions, force)?;
    let mut feed = Feed::open(address)?;
    orders.iter().try_for_each(|order| feed.send(order))?;
    feed.finish()
}

fn read_folder(folder: &Path) -> Result<Vec<Order>, TopicError> {
    orders_of_folder(folder).map_err(|source| TopicError::Folder { path: folder.into(), source })
}

/// So many a second.
pub(crate) struct Pace {
    watch: Stopwatch,
    rate: Option<u64>,
}

impl Pace {
    /// Begins now.
    pub(crate) fn of(rate: Option<u64>) -> Self {
        Self { watch: Stopwatch::started(), rate }
    }

    /// Waits until record number `sent` is due; meanwhile the producer works.
    pub(crate) fn wait(&self, feed: &Feed, sent: u64) {
        let Some(rate) = self.rate else { return };
        let due = Duration::from_micros(sent.saturating_mul(1_000_000) / rate.max(1));
        while let Some(left) = due.checked_sub(self.watch.elapsed()).filter(|left| !left.is_zero()) {
            feed.producer.poll(left);
        }
    }
}

/// Counts what did not arrive.
#[derive(Debug, Clone, Default)]
struct Losses(Arc<AtomicU64>);

impl ClientContext for Losses {}

impl ProducerContext for Losses {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if result.is_err() {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A topic being filled.
pub(crate) struct Feed {
    producer: BaseProducer<Losses>,
    losses: Losses,
    address: KafkaAddress,
    sent: u64,
    value: Vec<u8>,
}

impl Feed {
    /// A producer for the topic.
    ///
    /// # Errors
    /// [`TopicError::Client`].
    pub(crate) fn open(address: &KafkaAddress) -> Result<Self, TopicError> {
        let losses = Losses::default();
        let producer = client(&address.bootstrap)
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("partitioner", "murmur2_random")
            .set("linger.ms", "2")
            .create_with_context(losses.clone())
            .map_err(|source| TopicError::Client { bootstrap: address.bootstrap.clone(), source })?;
        Ok(Self { producer, losses, address: address.clone(), sent: 0, value: Vec::with_capacity(160) })
    }

    /// Sends one order; waits while the queue is full.
    ///
    /// # Errors
    /// [`TopicError::Refused`].
    pub(crate) fn send(&mut self, order: &Order) -> Result<(), TopicError> {
        self.value.clear();
        serde_json::to_writer(&mut self.value, order).expect("an order has only numbers and a string");
        let key = order.user_id.to_string();
        let mut record = BaseRecord::to(&self.address.topic).key(&key).payload(&self.value);
        let watch = Stopwatch::started();
        loop {
            match self.producer.send(record) {
                Ok(()) => break,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), back))
                    if watch.elapsed() < PATIENCE =>
                {
                    record = back;
                    self.producer.poll(Duration::from_millis(5));
                }
                Err((source, _)) => {
                    return Err(TopicError::Refused {
                        action: "write to",
                        address: self.address.clone(),
                        source,
                    });
                }
            }
        }
        self.sent += 1;
        if self.sent.is_multiple_of(POLL_EVERY) {
            self.producer.poll(Duration::ZERO);
        }
        Ok(())
    }

    /// Waits for every acknowledgement, and answers how many orders were sent.
    ///
    /// # Errors
    /// [`TopicError::Refused`], [`TopicError::Undelivered`].
    pub(crate) fn finish(self) -> Result<u64, TopicError> {
        let address = self.address.clone();
        self.producer.flush(FLUSH_PATIENCE).map_err(|source| TopicError::Refused {
            action: "write to",
            address: address.clone(),
            source,
        })?;
        match self.losses.0.load(Ordering::Relaxed) {
            0 => Ok(self.sent),
            lost => Err(TopicError::Undelivered { address, lost }),
        }
    }
}
