//! The builder of a Kafka source.
//!
//! Owns: the options and their defaults. Does not own: what `validate` refuses ([`super::settings`]), reading.
//! Runs on: the author's thread.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde::de::DeserializeOwned;
use tidegate_engine::api::{ConnectorContext, ConnectorError, PreflightContext, PreflightResult, Source};

use super::offsets::{StartingOffsets, StoppingOffsets};
use super::settings::KafkaSourceSettings;
use super::topic::Topic;
use super::{
    BadRecord, KafkaCounters, KafkaEnumerator, KafkaReader, KafkaRecord, KafkaSourceError, KafkaSplit,
};
use crate::kafka::KafkaConfig;
use crate::rate::SharedRate;

/// How often the topic is looked at for new partitions, if nothing else is said.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(10);
/// For how long brokers may be away, if nothing else is said.
const LONGEST_OUTAGE: Duration = Duration::from_secs(120);

/// Why a record is no record.
pub type DeserializeError = Box<dyn std::error::Error + Send + Sync>;

/// Makes a record of the job from one of the topic; `None` leaves it out.
pub(super) type Deserialize<T> =
    Arc<dyn Fn(&KafkaRecord<'_>) -> Result<Option<T>, DeserializeError> + Send + Sync>;

/// A topic, one split for each partition.
///
/// ```
/// use serde::Deserialize;
/// use tidegate_connectors::kafka::{BadRecord, KafkaSource, StartingOffsets, StoppingOffsets};
///
/// #[derive(Clone, Deserialize)]
/// struct Order { order_id: u64 }
///
/// let orders = KafkaSource::<Order>::json("localhost:9092", "orders")
///     .starting(StartingOffsets::Latest)
///     .on_bad_record(BadRecord::Skip);
/// let counters = orders.counters();
/// assert_eq!(counters.bad_records(), 0);
///
/// // Keys and deleted keys: a tombstone has no value.
/// let changes = KafkaSource::new("localhost:9092", "changes", |record| {
///     let key = String::from_utf8(record.key.unwrap_or_default().to_vec())?;
///     Ok(Some((key, record.value.map(<[u8]>::len))))
/// })
/// .bounded(StoppingOffsets::Latest);
/// ```
pub struct KafkaSource<T> {
    pub(super) settings: Arc<KafkaSourceSettings>,
    deserialize: Deserialize<T>,
}

impl<T> KafkaSource<T> {
    /// Reads `topic` of the cluster at `bootstrap` (`host:port`, several with commas). `deserialize` makes a record, leaves one out
    /// (`Ok(None)`), or says why it cannot (see [`Self::on_bad_record`]).
    pub fn new(
        bootstrap: impl Into<String>,
        topic: impl Into<String>,
        deserialize: impl Fn(&KafkaRecord<'_>) -> Result<Option<T>, DeserializeError> + Send + Sync + 'static,
    ) -> Self {
        let settings = KafkaSourceSettings {
            config: KafkaConfig::new(bootstrap),
            topic: topic.into(),
            starting: StartingOffsets::default(),
            stopping: None,
            group: None,
            discovery: Some(DISCOVERY_INTERVAL),
            bad_record: BadRecord::default(),
            longest_outage: LONGEST_OUTAGE,
            counters: KafkaCounters::default(),
            rate: None,
        };
        Self { settings: Arc::new(settings), deserialize: Arc::new(deserialize) }
    }

    /// Reads `topic`, a JSON value of type `T` in each record. A tombstone is `null`: `None` for `T = Option<_>`, and left out and
    /// counted for a type that has no null.
    pub fn json(bootstrap: impl Into<String>, topic: impl Into<String>) -> Self
    where
        T: DeserializeOwned,
    {
        Self::new(bootstrap, topic, |record| match record.value {
            Some(value) => Ok(Some(serde_json::from_slice(value)?)),
            None => Ok(serde_json::from_slice(b"null").ok()),
        })
    }

    fn set(mut self, change: impl FnOnce(&mut KafkaSourceSettings)) -> Self {
        change(Arc::make_mut(&mut self.settings));
        self
    }

    /// Where reading begins at a start without restored state; [`StartingOffsets::Earliest`] if not set. A restored job goes on where
    /// its checkpoint stands.
    #[must_use]
    pub fn starting(self, starting: StartingOffsets) -> Self {
        self.set(|settings| settings.starting = starting)
    }

    /// Ends at these offsets. The topic is looked at once; partitions that are added later are not read.
    #[must_use]
    pub fn bounded(self, stopping: StoppingOffsets) -> Self {
        self.set(|settings| settings.stopping = Some(stopping))
    }

    /// A property of librdkafka, as `fetch.wait.max.ms`. Those on which the promise rests are refused.
    #[must_use]
    pub fn property(self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.set(|settings| settings.config.set(name, value))
    }

    /// Tells this consumer group after each completed checkpoint how far the job is, for people and tools that look at groups. A
    /// restored job does not ask it.
    #[must_use]
    pub fn group(self, group: impl Into<String>) -> Self {
        self.set(|settings| settings.group = Some(group.into()))
    }

    /// How often the topic is looked at for new partitions, and for being another one; 10 s if not set.
    #[must_use]
    pub fn discovery_interval(self, interval: Duration) -> Self {
        self.set(|settings| settings.discovery = Some(interval))
    }

    /// Looks at the topic once: partitions that are added later are not read before the next start.
    #[must_use]
    pub fn without_discovery(self) -> Self {
        self.set(|settings| settings.discovery = None)
    }

    /// What to do with a record that is no record; the default is to fail.
    #[must_use]
    pub fn on_bad_record(self, policy: BadRecord) -> Self {
        self.set(|settings| settings.bad_record = policy)
    }

    /// For how long brokers may be away before the attempt fails and the restart strategy applies; 2 minutes if not set.
    #[must_use]
    pub fn longest_outage(self, outage: Duration) -> Self {
        self.set(|settings| settings.longest_outage = outage)
    }

    /// At most so many records a second over all readers in the process.
    #[must_use]
    pub fn rate_per_second(self, records: u64) -> Self {
        self.set(|settings| settings.rate = Some(SharedRate::per_second(records)))
    }

    /// Counts and lag. Clones of the source share the counters, so ask before giving the source away.
    pub fn counters(&self) -> KafkaCounters {
        self.settings.counters.clone()
    }
}

impl<T> Clone for KafkaSource<T> {
    fn clone(&self) -> Self {
        Self { settings: Arc::clone(&self.settings), deserialize: Arc::clone(&self.deserialize) }
    }
}

impl<T> fmt::Debug for KafkaSource<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSource").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> Source for KafkaSource<T> {
    type Record = T;
    type Split = KafkaSplit;
    type Enumerator = KafkaEnumerator;
    type Reader = KafkaReader<T>;

    fn validate(&self) -> Result<(), ConnectorError> {
        self.settings.validate()
    }

    fn preflight(&self, context: PreflightContext) -> impl Future<Output = PreflightResult> + Send + use<T> {
        let settings = Arc::clone(&self.settings);
        async move { Ok(look_before(&settings, &context).await?) }
    }

    fn enumerator(&self, parallelism: u32) -> KafkaEnumerator {
        KafkaEnumerator::new(Arc::clone(&self.settings), parallelism)
    }

    fn reader(&self, context: ConnectorContext, _subtask: u32) -> KafkaReader<T> {
        KafkaReader::new(Arc::clone(&self.settings), Arc::clone(&self.deserialize), context)
    }
}

/// Brokers that do not answer at a start are an error at once; a topic that a young broker does not know yet is looked for again.
async fn look_before(
    settings: &Arc<KafkaSourceSettings>,
    context: &PreflightContext,
) -> Result<Vec<String>, KafkaSourceError> {
    let mut topic = Topic::new(settings, &context.io, Duration::ZERO);
    let partitions = topic.find().await?.leaders.len();
    topic.may_read().await?;
    if let BadRecord::DeadLetter(letters) = &settings.bad_record {
        topic.takes_letters(letters).await?;
    }
    let mut warnings = Vec::new();
    if partitions < context.parallelism as usize {
        warnings.push(format!(
            "the topic {} has {partitions} partitions: {} of {} subtasks of its source will have nothing to read",
            settings.topic,
            context.parallelism as usize - partitions,
            context.parallelism
        ));
    }
    Ok(warnings)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(source: KafkaSource<u64>) -> String {
        source.validate().unwrap_err().message
    }

    fn numbers() -> KafkaSource<u64> {
        KafkaSource::json("localhost:9092", "numbers")
    }

    #[test]
    fn settings_that_cannot_work_are_refused_before_anything_runs() {
        assert!(refused(KafkaSource::json("localhost:9092", "no topic")).contains("no topic"));
        assert!(refused(numbers().starting(StartingOffsets::Group)).contains(".group(..)"));
        assert!(refused(numbers().discovery_interval(Duration::ZERO)).contains("interval"));
        assert!(
            refused(numbers().on_bad_record(BadRecord::DeadLetter("numbers".to_owned())))
                .contains("for ever")
        );
        assert!(refused(numbers().property("auto.offset.reset", "latest")).contains(".starting(..)"));
        numbers().validate().unwrap();
    }

    #[test]
    fn a_tombstone_is_null_to_a_type_that_has_one_and_left_out_elsewhere() {
        let tombstone = KafkaRecord::new("t", 0, 0, Some(b"k"), None);
        let optional = KafkaSource::<Option<u64>>::json("localhost:9092", "numbers");
        assert_eq!((optional.deserialize)(&tombstone).unwrap(), Some(None));
        assert_eq!((numbers().deserialize)(&tombstone).unwrap(), None);
        let bad = KafkaRecord::new("t", 0, 0, None, Some(b"x"));
        assert!((numbers().deserialize)(&bad).is_err());
    }
}
