//! Requests about a topic's content: its id, its partitions and their leaders, offsets by time, offsets of a group.
//!
//! Owns: their shape. Does not own: which offset a source begins at. Runs on: tokio.

use std::collections::BTreeMap;

use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{
    BrokerId, GroupId, ListOffsetsRequest, MetadataRequest, OffsetFetchRequest, OffsetFetchResponse,
    TopicName,
};
use kafka_protocol::protocol::StrBytes;
use tidegate_engine::broker::BrokerCode;

use super::WireError;
use super::client::{CoordinatorKind, WireClient};

/// Asked for in place of a time: the oldest offset.
pub const EARLIEST: i64 = -2;
/// Asked for in place of a time: behind the newest record that no open transaction stands before.
pub const LATEST: i64 = -1;

/// The asker is a client and no replica.
const NO_REPLICA: i32 = -1;
const READ_COMMITTED: i8 = 1;
const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
const UNKNOWN_TOPIC_ID: i16 = 100;

/// A topic as its cluster describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicDescription {
    /// The id that it was given when it was created: another one for another topic of the same name.
    pub id: String,
    /// The same as a number.
    pub id_number: u128,
    /// By partition: `host:port` of the leader, if it has one now.
    pub leaders: BTreeMap<i32, Option<String>>,
}

/// A topic's id as text: five groups of hexadecimal digits.
pub fn topic_id_text(id: u128) -> String {
    let digits = format!("{id:032x}");
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| &digits[group]);
    groups.join("-")
}

fn topic_name(topic: &str) -> TopicName {
    TopicName(StrBytes::from_string(topic.to_owned()))
}

impl WireClient {
    /// `Metadata` of one topic. `None`: there is no such topic. It is not made by being asked for.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn describe_topic(&mut self, topic: &str) -> Result<Option<TopicDescription>, WireError> {
        let mut wanted = MetadataRequestTopic::default();
        wanted.name = Some(topic_name(topic));
        let mut request = MetadataRequest::default();
        request.topics = Some(vec![wanted]);
        request.allow_auto_topic_creation = false;
        // Topics have ids from version 10 on.
        let answer = self.call_any(10..=12, &request).await?;
        let brokers: BTreeMap<i32, String> =
            answer.brokers.iter().map(|b| (b.node_id.0, format!("{}:{}", b.host, b.port))).collect();
        self.note_brokers(brokers.values().cloned());
        let Some(found) = answer.topics.into_iter().next() else { return Ok(None) };
        match found.error_code {
            0 => {}
            UNKNOWN_TOPIC_OR_PARTITION => return Ok(None),
            code => {
                let (request, address) = ("Metadata", topic.to_owned());
                return Err(WireError::Refused { request, address, code: BrokerCode(code) });
            }
        }
        let leaders =
            found.partitions.iter().map(|p| (p.partition_index, brokers.get(&p.leader_id.0).cloned()));
        let id_number = found.topic_id.as_u128();
        let id = topic_id_text(id_number);
        Ok(Some(TopicDescription { id, id_number, leaders: leaders.collect() }))
    }

    /// `Metadata` by a topic's id: whether the cluster has it, under whatever name.
    ///
    /// # Errors
    /// [`WireError`]; also from a broker of before version 3.1, which cannot be asked so.
    pub async fn has_topic(&mut self, id: u128) -> Result<bool, WireError> {
        let address = topic_id_text(id);
        let mut wanted = MetadataRequestTopic::default();
        wanted.name = None;
        wanted.topic_id = address.parse().map_err(|_| {
            let reason = "an id cannot be written".to_owned();
            WireError::Malformed { request: "Metadata", address: address.clone(), reason }
        })?;
        let mut request = MetadataRequest::default();
        request.topics = Some(vec![wanted]);
        request.allow_auto_topic_creation = false;
        let answer = self.call_any(12..=12, &request).await?;
        match answer.topics.first().map_or(UNKNOWN_TOPIC_ID, |found| found.error_code) {
            0 => Ok(true),
            UNKNOWN_TOPIC_ID | UNKNOWN_TOPIC_OR_PARTITION => Ok(false),
            code => Err(WireError::Refused { request: "Metadata", address, code: BrokerCode(code) }),
        }
    }

    /// `ListOffsets`, as a reader of committed records sees them: by partition the first offset at or behind a time in milliseconds,
    /// or [`EARLIEST`], or [`LATEST`]. A partition without a record so late is left out.
    ///
    /// # Errors
    /// [`WireError`]; code 5 where a partition has no leader.
    pub async fn list_offsets(
        &mut self,
        topic: &str,
        description: &TopicDescription,
        times: &BTreeMap<i32, i64>,
    ) -> Result<BTreeMap<i32, i64>, WireError> {
        let mut by_leader: BTreeMap<&str, Vec<ListOffsetsPartition>> = BTreeMap::new();
        for (partition, time) in times {
            let Some(Some(leader)) = description.leaders.get(partition) else {
                let (request, address) = ("ListOffsets", format!("{topic}[{partition}]"));
                return Err(WireError::Refused { request, address, code: BrokerCode::LEADER_NOT_AVAILABLE });
            };
            let mut asked = ListOffsetsPartition::default();
            asked.partition_index = *partition;
            asked.current_leader_epoch = -1;
            asked.timestamp = *time;
            by_leader.entry(leader).or_default().push(asked);
        }
        let mut offsets = BTreeMap::new();
        for (leader, partitions) in by_leader {
            let mut of_topic = ListOffsetsTopic::default();
            of_topic.name = topic_name(topic);
            of_topic.partitions = partitions;
            let mut request = ListOffsetsRequest::default();
            request.replica_id = BrokerId(NO_REPLICA);
            request.isolation_level = READ_COMMITTED;
            request.topics = vec![of_topic];
            let answer = self.call(leader, 2..=6, &request).await?;
            for found in answer.topics.iter().flat_map(|topic| &topic.partitions) {
                if found.error_code != 0 {
                    let address = format!("{leader} for {topic}[{}]", found.partition_index);
                    let code = BrokerCode(found.error_code);
                    return Err(WireError::Refused { request: "ListOffsets", address, code });
                }
                if found.offset >= 0 {
                    offsets.insert(found.partition_index, found.offset);
                }
            }
        }
        Ok(offsets)
    }

    /// `OffsetFetch`: what a consumer group has committed, by partition; those without are left out.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn group_offsets(
        &mut self,
        group: &str,
        topic: &str,
        partitions: Vec<i32>,
    ) -> Result<BTreeMap<i32, i64>, WireError> {
        let mut of_topic = OffsetFetchRequestTopic::default();
        of_topic.name = topic_name(topic);
        of_topic.partition_indexes = partitions;
        let mut request = OffsetFetchRequest::default();
        request.group_id = GroupId(StrBytes::from_string(group.to_owned()));
        request.topics = Some(vec![of_topic]);
        let code = |answer: &OffsetFetchResponse| {
            let codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|p| p.error_code);
            std::iter::once(answer.error_code).chain(codes).find(|code| *code != 0).unwrap_or(0)
        };
        // From version 8 on a request asks for several groups at once.
        let answer = self.call_coordinator(CoordinatorKind::Group, group, 7..=7, &request, code).await?;
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let committed = partitions.filter(|p| p.committed_offset >= 0);
        Ok(committed.map(|p| (p.partition_index, p.committed_offset)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_written_as_it_always_was() {
        assert_eq!(
            topic_id_text(0x0123_4567_89ab_cdef_0011_2233_4455_6677),
            "01234567-89ab-cdef-0011-223344556677"
        );
        assert_eq!(topic_id_text(7), "00000000-0000-0000-0000-000000000007");
    }
}
