//! Finds the partitions of a topic and hands each of them out once.
//!
//! Partition *p* goes to subtask *p* mod parallelism. Where it begins is resolved to a number before it is handed out; from then on
//! its position is the reader's state.
//!
//! Owns: which partitions were handed out, and the id of the topic that they belong to. Does not own: positions.
//! Runs on: the job manager; looking at the topic runs on the I/O side.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{Assignment, ConnectorError, SplitEnumerator};
use tidegate_engine::io::{BoxFuture, SharedIo};
use tidegate_state::StateType;

use super::offsets::StartingOffsets;
use super::settings::KafkaSourceSettings;
use super::topic::Topic;
use super::{KafkaSourceError, KafkaSplit};

/// At the first start, brokers that do not answer are asked for so long: somebody waits for the answer.
const START_LIMIT: Duration = Duration::from_secs(10);

/// See the module.
#[derive(Debug)]
pub struct KafkaEnumerator {
    settings: Arc<KafkaSourceSettings>,
    parallelism: u32,
    assigned: KafkaAssigned,
}

/// What the enumerator remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq, StateType)]
pub struct KafkaAssigned {
    /// The topic.
    pub topic: String,
    /// Its id; empty before it was looked at.
    pub topic_id: String,
    /// Partitions handed out, in the order in which they were.
    pub partitions: Vec<i32>,
    /// Whether the topic was looked at: a bounded source does that once.
    pub listed: bool,
}

/// What a look at the topic found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KafkaTopicFound {
    /// The topic's id.
    pub topic_id: String,
    /// Number of partitions that it has now.
    pub partitions: usize,
    /// Partitions that were not handed out yet, each with the offset it begins at.
    pub splits: Vec<KafkaSplit>,
}

impl KafkaEnumerator {
    pub(super) fn new(settings: Arc<KafkaSourceSettings>, parallelism: u32) -> Self {
        let assigned = KafkaAssigned { topic: settings.topic.clone(), ..KafkaAssigned::default() };
        Self { settings, parallelism: parallelism.max(1), assigned }
    }

    fn subtask(&self, partition: i32) -> u32 {
        u32::try_from(partition).unwrap_or(0) % self.parallelism
    }
}

/// Looks at the topic once. `known` is what was handed out before; `None` at the first start.
async fn look(
    mut topic: Topic,
    settings: Arc<KafkaSourceSettings>,
    known: Option<KafkaAssigned>,
) -> Result<KafkaTopicFound, KafkaSourceError> {
    let description = match &known {
        Some(known) => topic.describe_same(&known.topic_id).await?,
        None => topic.find().await?,
    };
    let handed_out: BTreeSet<i32> = known.iter().flat_map(|known| known.partitions.iter().copied()).collect();
    if let Some(partition) = handed_out.iter().find(|partition| !description.leaders.contains_key(partition))
    {
        return Err(KafkaSourceError::PartitionMissing {
            topic: settings.topic.clone(),
            partition: *partition,
        });
    }
    // What is found later had no record when the job began.
    let starting = if known.is_some() { &StartingOffsets::Earliest } else { &settings.starting };
    if let StartingOffsets::Explicit(offsets) = starting
        && let Some(partition) = offsets.keys().find(|partition| !description.leaders.contains_key(partition))
    {
        return Err(KafkaSourceError::PartitionMissing {
            topic: settings.topic.clone(),
            partition: *partition,
        });
    }
    let new =
        description.leaders.keys().copied().filter(|partition| !handed_out.contains(partition)).collect();
    let splits = topic.splits(&description, &new, starting).await?;
    settings.counters.count_discovery();
    Ok(KafkaTopicFound { topic_id: description.id, partitions: description.leaders.len(), splits })
}

impl SplitEnumerator for KafkaEnumerator {
    type Split = KafkaSplit;
    type Found = KafkaTopicFound;
    type State = KafkaAssigned;

    fn restore(&mut self, state: KafkaAssigned, parallelism: u32) -> Result<(), ConnectorError> {
        if state.topic != self.settings.topic {
            let (was, is) = (state.topic, self.settings.topic.clone());
            return Err(KafkaSourceError::OtherTopic { was, is }.into());
        }
        self.assigned = state;
        self.parallelism = parallelism.max(1);
        Ok(())
    }

    fn discover(&mut self, io: &SharedIo) -> Option<BoxFuture<Result<KafkaTopicFound, ConnectorError>>> {
        if self.is_complete() {
            return None;
        }
        let outage = self.settings.longest_outage;
        let known = self.assigned.listed.then(|| self.assigned.clone());
        let limit = if known.is_some() { outage } else { outage.min(START_LIMIT) };
        let settings = Arc::clone(&self.settings);
        let topic = Topic::new(&settings, io, limit);
        Some(Box::pin(async move { Ok(look(topic, settings, known).await?) }))
    }

    fn on_found(&mut self, found: KafkaTopicFound) -> Result<Vec<Assignment<KafkaSplit>>, ConnectorError> {
        if self.is_complete() {
            return Ok(Vec::new());
        }
        if self.assigned.listed && !found.splits.is_empty() {
            let new: Vec<i32> = found.splits.iter().map(|split| split.partition).collect();
            tracing::info!(topic = self.settings.topic, ?new, "new partitions are read from their beginning");
        }
        self.assigned.topic_id = found.topic_id;
        self.assigned.listed = true;
        let mut assignments: Vec<Assignment<KafkaSplit>> = Vec::new();
        for split in found.splits {
            let subtask = self.subtask(split.partition);
            self.assigned.partitions.push(split.partition);
            match assignments.iter_mut().find(|assignment| assignment.subtask == subtask) {
                Some(assignment) => assignment.splits.push(split),
                None => assignments.push(Assignment { subtask, splits: vec![split] }),
            }
        }
        Ok(assignments)
    }

    fn interval(&self) -> Option<Duration> {
        self.settings.discovery
    }

    /// A bounded source looks once; so does one without discovery, but it never ends.
    fn is_complete(&self) -> bool {
        self.assigned.listed && self.settings.stopping.is_some()
    }

    fn snapshot(&self) -> KafkaAssigned {
        self.assigned.clone()
    }
}

#[cfg(test)]
mod tests {
    use tidegate_engine::api::Source;

    use super::*;
    use crate::kafka::{KafkaSource, StoppingOffsets};

    fn split(partition: i32) -> KafkaSplit {
        KafkaSplit { topic_id: "id".to_owned(), partition, next_offset: 0, stop_offset: None, records: 0 }
    }

    fn found(partitions: impl IntoIterator<Item = i32>) -> KafkaTopicFound {
        let splits: Vec<KafkaSplit> = partitions.into_iter().map(split).collect();
        KafkaTopicFound { topic_id: "id".to_owned(), partitions: splits.len(), splits }
    }

    fn plan(assignments: &[Assignment<KafkaSplit>]) -> Vec<(u32, Vec<i32>)> {
        let partitions = |a: &Assignment<KafkaSplit>| a.splits.iter().map(|split| split.partition).collect();
        assignments.iter().map(|a| (a.subtask, partitions(a))).collect()
    }

    fn source() -> KafkaSource<u64> {
        KafkaSource::json("localhost:1", "numbers")
    }

    #[test]
    fn partitions_are_dealt_out_evenly_and_each_keeps_its_subtask() {
        let mut topic = source().enumerator(2);
        let first = topic.on_found(found(0..3)).unwrap();
        assert_eq!(plan(&first), [(0, vec![0, 2]), (1, vec![1])]);
        let later = topic.on_found(found([3])).unwrap();
        assert_eq!(plan(&later), [(1, vec![3])]);
        assert_eq!(topic.snapshot().partitions, [0, 1, 2, 3]);
        assert!(!topic.is_complete(), "an unbounded source never ends");
    }

    #[test]
    fn looking_again_is_on_by_default_and_over_after_one_look_where_reading_is_bounded() {
        assert!(source().enumerator(1).interval().is_some());
        assert!(source().without_discovery().enumerator(1).interval().is_none());
        let mut bounded = source().bounded(StoppingOffsets::Latest).enumerator(1);
        bounded.on_found(found(0..1)).unwrap();
        assert!(bounded.is_complete());
        let mut restored = source().bounded(StoppingOffsets::Latest).enumerator(1);
        restored.restore(bounded.snapshot(), 1).unwrap();
        assert!(restored.is_complete());
    }

    #[test]
    fn state_of_another_topic_is_refused() {
        let mut topic = source().enumerator(1);
        topic.on_found(found(0..1)).unwrap();
        let mut other = KafkaSource::<u64>::json("localhost:1", "letters").enumerator(1);
        let error = other.restore(topic.snapshot(), 1).unwrap_err();
        assert!(error.message.contains("numbers") && error.message.contains("letters"), "{}", error.message);
        assert!(!error.restartable);
    }
}
