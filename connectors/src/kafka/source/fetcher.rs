//! Runs a consumer's loop and decides what the loop cannot: whether the topic still is the topic it was, and what a refused position
//! means.
//!
//! Owns: the order of looking and reading. Does not own: polling (see [`super::consumer`]). Runs on: a future for each reader; the loop
//! is blocking work inside of it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tidegate_engine::io::{IoGone, SharedIo, blocking};

use super::chunk::Fetched;
use super::consumer::{ConsumerEnds, ConsumerLoop, Exit};
use super::kafka_source::Deserialize;
use super::settings::KafkaSourceSettings;
use super::topic::Topic;
use super::{KafkaSourceError, KafkaSplit};

/// What a reader's future is made of.
pub(super) struct Fetcher<T> {
    pub(super) settings: Arc<KafkaSourceSettings>,
    pub(super) deserialize: Deserialize<T>,
    pub(super) ends: ConsumerEnds<T>,
    pub(super) splits: Vec<KafkaSplit>,
    pub(super) io: SharedIo,
}

impl<T: Send + 'static> Fetcher<T> {
    /// Reads until nobody listens, or until reading fails.
    pub(super) async fn run(self) {
        let (chunks, waker) = (self.ends.chunks.clone(), Arc::clone(&self.ends.waker));
        if let Err(error) = self.fetch().await {
            let _ = chunks.send(Fetched::Failed(error)).await;
            waker.wake();
        }
    }

    async fn fetch(self) -> Result<(), KafkaSourceError> {
        let Self { settings, deserialize, ends, mut splits, io } = self;
        let mut topic = Topic::new(&settings, &io, settings.longest_outage);
        let id = splits.first().map(|split| split.topic_id.clone()).unwrap_or_default();
        let description = topic.describe_same(&id).await?;
        topic.fit_bounds(&description, &mut splits).await?;
        let bounds = splits.iter().map(|split| (split.partition, split.stop_offset)).collect();
        if ends.chunks.send(Fetched::Bounds(bounds)).await.is_err() {
            return Ok(());
        }
        ends.waker.wake();
        let opening = Arc::clone(&settings);
        let opened = blocking(&io, move || ConsumerLoop::open(opening, deserialize, ends, splits)).await;
        let mut reading = opened.map_err(|source| cut_short(&settings, source))??;
        loop {
            // Closing a consumer may take a while: it is dropped where it may block, whatever happens to this future.
            let run = blocking(&io, move || {
                let exit = catch_unwind(AssertUnwindSafe(|| reading.run()));
                exit.map(|exit| (reading, exit)).map_err(|panic| panic_text(panic.as_ref()))
            });
            let exit;
            (reading, exit) = match run.await.map_err(|source| cut_short(&settings, source))? {
                Ok(stopped) => stopped,
                Err(said) => return Err(KafkaSourceError::Panicked { topic: settings.topic.clone(), said }),
            };
            let outcome = match exit {
                Exit::Closed => Ok(false),
                Exit::LookAtTopic => topic.describe_same(&id).await.map(|_| true),
                Exit::OutOfRange(said) => Err(topic.find_gone(&id, &reading.positions(), said).await),
                Exit::Failed(error) => Err(error),
            };
            let next = blocking(&io, move || match outcome {
                Ok(true) => reading.go_on().map(|()| Some(reading)),
                Ok(false) => Ok(None),
                Err(error) => Err(error),
            });
            match next.await.map_err(|source| cut_short(&settings, source))?? {
                Some(again) => reading = again,
                None => return Ok(()),
            }
        }
    }
}

fn cut_short(settings: &KafkaSourceSettings, source: IoGone) -> KafkaSourceError {
    KafkaSourceError::CutShort { topic: settings.topic.clone(), source }
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without words".to_owned())
}
