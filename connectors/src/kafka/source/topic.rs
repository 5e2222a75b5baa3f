//! Looks at the topic: which partitions it has, whether it still is the topic it was, and where new ones begin and end.
//!
//! Owns: the questions and their order, asking again while brokers are away. Does not own: who reads what. Runs on: the I/O side.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::io::SharedIo;

use super::offsets::{OffsetFacts, OffsetRange, StartingOffsets};
use super::settings::KafkaSourceSettings;
use super::{KafkaSourceError, KafkaSplit};
use crate::kafka::wire::{
    EARLIEST, LATEST, READ, TOPIC_DENIED, TopicDescription, WRITE, WireClient, WireError,
};

/// Between two questions while no broker answers.
const ASK_PAUSE: Duration = Duration::from_millis(500);
/// A topic must be missing so often before it is called so: a broker that has just started may not know it yet.
const MISSING_LOOKS: u32 = 4;

/// The operations that a rule has to allow, as `kafka-acls.sh` takes them.
const READ_RULE: &str = "read";
const WRITE_RULE: &str = "write";

/// A topic and the client to ask about it.
pub(super) struct Topic {
    settings: Arc<KafkaSourceSettings>,
    wire: WireClient,
    io: SharedIo,
    /// How long brokers may be away.
    outage: Duration,
}

impl Topic {
    pub(super) fn new(settings: &Arc<KafkaSourceSettings>, io: &SharedIo, outage: Duration) -> Self {
        let wire = WireClient::new(&settings.addresses(), Arc::clone(io));
        Self { settings: Arc::clone(settings), wire, io: Arc::clone(io), outage }
    }

    fn name(&self) -> &str {
        &self.settings.topic
    }

    fn failed(&self, doing: &str, source: WireError) -> KafkaSourceError {
        if source.code() == Some(TOPIC_DENIED) {
            return self.denied("see or read", READ_RULE, self.name());
        }
        let (doing, bootstrap) = (doing.to_owned(), self.settings.config.bootstrap().to_owned());
        KafkaSourceError::Cluster { doing, bootstrap, source: Box::new(source) }
    }

    fn denied(&self, what: &str, operation: &str, topic: &str) -> KafkaSourceError {
        KafkaSourceError::Denied {
            topic: self.name().to_owned(),
            what: format!("{what} the topic {topic}"),
            rule: format!("--operation {operation} --topic {topic}"),
        }
    }

    /// Describes the topic at a start; one that is missing is looked for again.
    ///
    /// # Errors
    /// As [`Self::describe`].
    pub(super) async fn find(&mut self) -> Result<TopicDescription, KafkaSourceError> {
        let mut looks = 1;
        loop {
            match self.describe().await {
                Err(KafkaSourceError::TopicMissing { .. }) if looks < MISSING_LOOKS => {
                    looks += 1;
                    self.io.sleep(ASK_PAUSE).await;
                }
                found => return found,
            }
        }
    }

    /// Refuses if this client may not read the topic. A broker that does not tell: what it refuses is told while the job runs.
    ///
    /// # Errors
    /// [`KafkaSourceError::Denied`], or that no broker answers.
    pub(super) async fn may_read(&mut self) -> Result<(), KafkaSourceError> {
        let topic = self.settings.topic.clone();
        match self.operations(&topic).await? {
            Some(allowed) if allowed & READ == 0 => Err(self.denied("read", READ_RULE, &topic)),
            _ => Ok(()),
        }
    }

    /// Refuses if there is no such topic for dead letters, or this client may not write into it.
    ///
    /// # Errors
    /// [`KafkaSourceError::TopicMissing`], [`KafkaSourceError::Denied`], or that no broker answers.
    pub(super) async fn takes_letters(&mut self, topic: &str) -> Result<(), KafkaSourceError> {
        let mut looks = 1;
        while !self.exists(topic).await? {
            if looks >= MISSING_LOOKS {
                let bootstrap = self.settings.config.bootstrap().to_owned();
                return Err(KafkaSourceError::TopicMissing { topic: topic.to_owned(), bootstrap });
            }
            looks += 1;
            self.io.sleep(ASK_PAUSE).await;
        }
        match self.operations(topic).await? {
            Some(allowed) if allowed & WRITE == 0 => Err(self.denied("write", WRITE_RULE, topic)),
            _ => Ok(()),
        }
    }

    async fn operations(&mut self, topic: &str) -> Result<Option<i32>, KafkaSourceError> {
        match self.wire.topic_operations(topic).await {
            Ok(allowed) => Ok(allowed),
            Err(WireError::NotOffered { .. }) => Ok(None),
            Err(source) => Err(self.failed(&format!("asking for the rights in the topic {topic}"), source)),
        }
    }

    /// Describes the topic; asks again while no broker answers, up to the limit.
    ///
    /// # Errors
    /// [`KafkaSourceError::TopicMissing`], or that no broker answers.
    pub(super) async fn describe(&mut self) -> Result<TopicDescription, KafkaSourceError> {
        let mut waited = Duration::ZERO;
        loop {
            let topic = self.settings.topic.clone();
            match self.wire.describe_topic(&topic).await {
                Ok(Some(description)) => return Ok(description),
                Ok(None) => {
                    let bootstrap = self.settings.config.bootstrap().to_owned();
                    return Err(KafkaSourceError::TopicMissing { topic, bootstrap });
                }
                Err(error) if error.is_transient() && waited < self.outage => {
                    tracing::warn!(topic, error = %error, "the topic cannot be looked at; asking again");
                    waited += ASK_PAUSE;
                    self.io.sleep(ASK_PAUSE).await;
                }
                Err(error) => return Err(self.failed(&format!("looking at the topic {topic}"), error)),
            }
        }
    }

    /// Describes a topic that was there before with this id.
    ///
    /// # Errors
    /// That it is gone, or is another one now.
    pub(super) async fn describe_same(&mut self, id: &str) -> Result<TopicDescription, KafkaSourceError> {
        let mut missing = 0;
        loop {
            match self.describe().await {
                Ok(description) if description.id == id => return Ok(description),
                Ok(description) => {
                    let (topic, was) = (self.name().to_owned(), id.to_owned());
                    return Err(KafkaSourceError::TopicRecreated { topic, was, is: description.id });
                }
                Err(KafkaSourceError::TopicMissing { topic, .. }) => {
                    missing += 1;
                    if missing >= MISSING_LOOKS {
                        return Err(KafkaSourceError::TopicGone { topic });
                    }
                    self.io.sleep(ASK_PAUSE).await;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Whether another topic, that of dead letters, exists.
    async fn exists(&mut self, topic: &str) -> Result<bool, KafkaSourceError> {
        match self.wire.describe_topic(topic).await {
            Ok(described) => Ok(described.is_some()),
            Err(error) if error.code() == Some(TOPIC_DENIED) => Err(self.denied("see", WRITE_RULE, topic)),
            Err(error) => Err(self.failed(&format!("looking at the topic {topic}"), error)),
        }
    }

    /// The offsets that partitions have now.
    pub(super) async fn ranges(
        &mut self,
        description: &TopicDescription,
        partitions: &BTreeSet<i32>,
    ) -> Result<BTreeMap<i32, OffsetRange>, KafkaSourceError> {
        let earliest = self.offsets_at(description, partitions, EARLIEST).await?;
        let latest = self.offsets_at(description, partitions, LATEST).await?;
        let range = |partition: &i32| {
            let (earliest, latest) = (*earliest.get(partition)?, *latest.get(partition)?);
            Some((*partition, OffsetRange { earliest, latest }))
        };
        Ok(partitions.iter().filter_map(range).collect())
    }

    async fn offsets_at(
        &mut self,
        description: &TopicDescription,
        partitions: &BTreeSet<i32>,
        time: i64,
    ) -> Result<BTreeMap<i32, i64>, KafkaSourceError> {
        let times = partitions.iter().map(|partition| (*partition, time)).collect();
        let mut waited = Duration::ZERO;
        let mut description = description.clone();
        loop {
            let topic = self.settings.topic.clone();
            match self.wire.list_offsets(&topic, &description, &times).await {
                Ok(offsets) => return Ok(offsets),
                Err(error) if error.is_transient() && waited < self.outage => {
                    waited += ASK_PAUSE;
                    self.io.sleep(ASK_PAUSE).await;
                    // The leader may have moved.
                    description = self.describe_same(&description.id).await?;
                }
                Err(error) => return Err(self.failed(&format!("asking for the offsets of {topic}"), error)),
            }
        }
    }

    async fn group_offsets(
        &mut self,
        partitions: &BTreeSet<i32>,
    ) -> Result<BTreeMap<i32, i64>, KafkaSourceError> {
        let Some(group) = self.settings.group.clone() else { return Ok(BTreeMap::new()) };
        let topic = self.settings.topic.clone();
        let mut waited = Duration::ZERO;
        loop {
            match self.wire.group_offsets(&group, &topic, partitions.iter().copied().collect()).await {
                Ok(offsets) => return Ok(offsets),
                Err(error) if error.is_transient() && waited < self.outage => {
                    waited += ASK_PAUSE;
                    self.io.sleep(ASK_PAUSE).await;
                }
                Err(error) => {
                    return Err(self.failed(&format!("asking for the offsets of the group {group}"), error));
                }
            }
        }
    }

    /// Splits for partitions that nobody reads yet, from where `starting` says.
    pub(super) async fn splits(
        &mut self,
        description: &TopicDescription,
        partitions: &BTreeSet<i32>,
        starting: &StartingOffsets,
    ) -> Result<Vec<KafkaSplit>, KafkaSourceError> {
        if partitions.is_empty() {
            return Ok(Vec::new());
        }
        let asked = match starting {
            StartingOffsets::Timestamp(time) => {
                self.offsets_at(description, partitions, (*time).max(0)).await?
            }
            StartingOffsets::Group => self.group_offsets(partitions).await?,
            _ => BTreeMap::new(),
        };
        let facts = OffsetFacts { ranges: self.ranges(description, partitions).await?, asked };
        let mut splits = Vec::with_capacity(partitions.len());
        for partition in partitions {
            let next_offset = starting.resolve(self.name(), *partition, &facts)?;
            let stop_offset = self.stop_offset(*partition, &facts.ranges);
            let topic_id = description.id.clone();
            splits.push(KafkaSplit { topic_id, partition: *partition, next_offset, stop_offset, records: 0 });
        }
        Ok(splits)
    }

    fn stop_offset(&self, partition: i32, ranges: &BTreeMap<i32, OffsetRange>) -> Option<i64> {
        let range = *ranges.get(&partition)?;
        Some(self.settings.stopping.as_ref()?.resolve(partition, range))
    }

    /// Makes restored splits fit the settings: bounded now and not before, or the other way round.
    pub(super) async fn fit_bounds(
        &mut self,
        description: &TopicDescription,
        splits: &mut [KafkaSplit],
    ) -> Result<(), KafkaSourceError> {
        if self.settings.stopping.is_none() {
            splits.iter_mut().for_each(|split| split.stop_offset = None);
            return Ok(());
        }
        let open: BTreeSet<i32> =
            splits.iter().filter(|split| split.stop_offset.is_none()).map(|split| split.partition).collect();
        if open.is_empty() {
            return Ok(());
        }
        let ranges = self.ranges(description, &open).await?;
        for split in splits.iter_mut().filter(|split| split.stop_offset.is_none()) {
            split.stop_offset = self.stop_offset(split.partition, &ranges);
        }
        Ok(())
    }

    /// Which of these positions lies outside of its partition.
    pub(super) async fn find_gone(
        &mut self,
        id: &str,
        positions: &BTreeMap<i32, i64>,
        said: String,
    ) -> KafkaSourceError {
        let found = async {
            let description = self.describe_same(id).await?;
            self.ranges(&description, &positions.keys().copied().collect()).await
        };
        let ranges = match found.await {
            Ok(ranges) => ranges,
            Err(error) => return error,
        };
        let topic = self.name().to_owned();
        let gone = positions.iter().find_map(|(partition, offset)| {
            let range = ranges.get(partition)?;
            (!(range.earliest..=range.latest).contains(offset)).then_some((*partition, *offset, *range))
        });
        match gone {
            Some((partition, offset, OffsetRange { earliest, latest })) => {
                KafkaSourceError::OffsetGone { topic, partition, offset, earliest, latest }
            }
            None => KafkaSourceError::OffsetRefused { topic, said },
        }
    }
}
