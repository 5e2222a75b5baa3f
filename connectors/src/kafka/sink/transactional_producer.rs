//! A producer for one transaction: made, initialised and begun in the background, and dropped there.
//!
//! librdkafka repeats an `InitProducerId` without an answer by itself, and a late one aborts what was written meanwhile
//! (see [`tidegate_engine::broker::initialisation`]). So it is bounded: a request may stay without an answer for longer than the whole
//! initialisation may take, which rules out a repetition for lateness; and when a connection broke, so that a repeated one has no answer,
//! the statistics show it, and the producer is not used.
//!
//! Owns: making one, its identity, its end. Does not own: which id (see [`super::writer`]). Runs on: threads that may block.

use std::sync::{Arc, Weak};
use std::time::Duration;

use rdkafka::ClientConfig;
use rdkafka::producer::{BaseProducer, Producer as _};
use tidegate_engine::broker::Producer;
use tidegate_engine::io::{SharedIo, blocking};

use super::KafkaSinkError;
use super::deliveries::Deliveries;
use super::record_producer::poll;

/// The whole initialisation of an id may take so long.
const INITIALISE_LIMIT: Duration = Duration::from_secs(8);
/// A request of the library without an answer is given up, with its connection, after so long: later than the initialisation.
const REQUEST_LIMIT_MS: u64 = 10_000;
/// The library tells statistics this often.
const STATISTICS_MS: u64 = 50;
/// A producer's events are taken this often while nobody writes: the statistics would pile up.
const KEEP: Duration = Duration::from_millis(500);
/// Looks for the identity.
const LOOKS_MAX: u32 = 200;
/// Looks whether an answer is really missing: some statistics long.
const LATE_LOOKS: u32 = 20;
/// Each for so long.
const LOOK: Duration = Duration::from_millis(20);

/// See the module.
pub(super) struct TransactionalProducer {
    /// There until it is dropped.
    producer: Option<Arc<BaseProducer<Deliveries>>>,
    pub(super) id: String,
    pub(super) identity: Producer,
    io: SharedIo,
}

/// librdkafka's settings for a producer of one transaction.
pub(super) fn client_config(mut config: ClientConfig, id: &str, timeout_ms: u64) -> ClientConfig {
    // The library wants it below the transaction timeout.
    let request_ms = REQUEST_LIMIT_MS.min(timeout_ms.saturating_sub(100).max(900));
    config
        .set("transactional.id", id)
        .set("transaction.timeout.ms", timeout_ms.to_string())
        .set("enable.idempotence", "true")
        .set("acks", "all")
        .set("socket.timeout.ms", request_ms.to_string())
        .set("statistics.interval.ms", STATISTICS_MS.to_string());
    config
}

impl TransactionalProducer {
    /// Makes, initialises and begins.
    pub(super) async fn begin(
        config: ClientConfig,
        id: String,
        io: SharedIo,
    ) -> Result<Self, KafkaSinkError> {
        let (of_id, topic) = (id.clone(), id.clone());
        let made = blocking(&io, move || initialised(&config, &of_id)).await;
        let (producer, identity) = made.map_err(|source| KafkaSinkError::CutShort { topic, source })??;
        let keeper = keep(Arc::downgrade(&producer), Arc::clone(&io));
        io.spawn("kafka producer", Box::pin(keeper));
        Ok(Self { producer: Some(producer), id, identity, io })
    }

    /// The library's producer; none only while this is dropped.
    pub(super) fn producer(&self) -> Option<Arc<BaseProducer<Deliveries>>> {
        self.producer.clone()
    }

    /// Refuses a library that goes by another identity than it told at first.
    pub(super) fn refuse_another_identity(&self) -> Result<(), KafkaSinkError> {
        let seen = self.producer.as_ref().and_then(|producer| producer.client().context().seen());
        if seen.is_some_and(|seen| seen.identity == self.identity) {
            return Ok(());
        }
        let found = format!("{seen:?} is not {:?}", self.identity);
        Err(KafkaSinkError::NoIdentity { id: self.id.clone(), found })
    }
}

impl Drop for TransactionalProducer {
    /// Its transaction stays open: it is ended by wire, or fenced. Ending the library's threads takes a while.
    fn drop(&mut self) {
        let (producer, io) = (self.producer.take(), Arc::clone(&self.io));
        let end = async move {
            let _ = blocking(&io, move || drop(producer)).await;
        };
        drop(self.io.spawn("kafka producer end", Box::pin(end)));
    }
}

/// Takes events until the producer is gone.
async fn keep(producer: Weak<BaseProducer<Deliveries>>, io: SharedIo) {
    loop {
        io.sleep(KEEP).await;
        let Some(producer) = producer.upgrade() else { return };
        // If this was the last one, its end may block.
        if blocking(&io, move || poll(&producer)).await.is_err() {
            return;
        }
    }
}

fn initialised(
    config: &ClientConfig,
    id: &str,
) -> Result<(Arc<BaseProducer<Deliveries>>, Producer), KafkaSinkError> {
    let failed = |source| KafkaSinkError::Initialise { id: id.to_owned(), source };
    let made = config.create_with_context(Deliveries::default());
    let producer: BaseProducer<Deliveries> = made.map_err(|source| KafkaSinkError::Client { source })?;
    producer.init_transactions(INITIALISE_LIMIT).map_err(failed)?;
    let Some(seen) = (0..LOOKS_MAX).find_map(|_| {
        producer.poll(LOOK);
        producer.client().context().seen()
    }) else {
        let found = "its statistics tell no producer id".to_owned();
        return Err(KafkaSinkError::NoIdentity { id: id.to_owned(), found });
    };
    let may_come_late = |_| {
        producer.poll(LOOK);
        producer.client().context().seen().is_none_or(|seen| seen.may_come_late())
    };
    if seen.may_come_late() && (0..LATE_LOOKS).all(may_come_late) {
        return Err(KafkaSinkError::InitialisedTwice { id: id.to_owned(), sent: seen.initialised });
    }
    producer.begin_transaction().map_err(failed)?;
    Ok((Arc::new(producer), seen.identity))
}
