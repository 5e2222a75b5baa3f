//! Requests about offsets inside transactions; a ledger is one of them, on partition 0 of the sink's topic, of a group that nobody
//! joins.
//!
//! Owns: their shape. Does not own: their order. Runs on: tokio.

use std::collections::BTreeMap;

use kafka_protocol::messages::offset_commit_request::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic,
};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    GroupId, ListGroupsRequest, OffsetCommitRequest, OffsetCommitResponse, OffsetFetchRequest,
    OffsetFetchResponse, ProducerId, TopicName, TxnOffsetCommitRequest, TxnOffsetCommitResponse,
};
use kafka_protocol::protocol::StrBytes;
use tidegate_engine::broker::{BrokerCode, Producer};

use super::WireError;
use super::client::{CoordinatorKind, WireClient};
use super::transactions::transactional_id;

/// The partition whose offset is the ledger.
pub const LEDGER_PARTITION: i32 = 0;
/// A commit by nobody's member.
const NO_GENERATION: i32 = -1;

/// What a group that nobody joins says about a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The offset.
    pub offset: u64,
    /// The text beside it: in a ledger, the attempt that wrote the transaction.
    pub note: String,
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl WireClient {
    /// `TxnOffsetCommit`: new offsets of a group, by partition and with a text, which appear if the transaction commits.
    /// [`WireClient::add_offsets`] comes before.
    ///
    /// # Errors
    /// [`WireError`]; code 3: the topic has no such partition.
    pub async fn commit_offsets(
        &mut self,
        id: &str,
        producer: Producer,
        group: &str,
        topic: &str,
        offsets: &BTreeMap<i32, i64>,
        note: &str,
    ) -> Result<(), WireError> {
        let committed = |(partition_index, committed_offset): (&i32, &i64)| {
            let mut partition = TxnOffsetCommitRequestPartition::default();
            partition.partition_index = *partition_index;
            partition.committed_offset = *committed_offset;
            partition.committed_leader_epoch = -1;
            partition.committed_metadata = Some(text(note));
            partition
        };
        let mut of_topic = TxnOffsetCommitRequestTopic::default();
        of_topic.name = TopicName(text(topic));
        of_topic.partitions = offsets.iter().map(committed).collect();
        let mut request = TxnOffsetCommitRequest::default();
        request.transactional_id = transactional_id(id);
        request.group_id = GroupId(text(group));
        request.producer_id = ProducerId(producer.id);
        request.producer_epoch = producer.epoch;
        request.generation_id = NO_GENERATION;
        request.topics = vec![of_topic];
        let code = |answer: &TxnOffsetCommitResponse| {
            let codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|p| p.error_code);
            codes.into_iter().find(|code| *code != 0).unwrap_or(0)
        };
        self.call_coordinator(CoordinatorKind::Group, group, 0..=3, &request, code).await?;
        Ok(())
    }

    /// `OffsetFetch`: the ledger's offset, if it has one. With `require_stable` an offset that an open transaction may change is
    /// refused (88).
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn ledger_offset(
        &mut self,
        group: &str,
        topic: &str,
        require_stable: bool,
    ) -> Result<Option<u64>, WireError> {
        let entry = self.ledger_entry(group, topic, require_stable).await?;
        Ok(entry.map(|entry| entry.offset))
    }

    /// The same with the text beside it.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn ledger_entry(
        &mut self,
        group: &str,
        topic: &str,
        require_stable: bool,
    ) -> Result<Option<LedgerEntry>, WireError> {
        let mut of_topic = OffsetFetchRequestTopic::default();
        of_topic.name = TopicName(text(topic));
        of_topic.partition_indexes = vec![LEDGER_PARTITION];
        let mut request = OffsetFetchRequest::default();
        request.group_id = GroupId(text(group));
        request.topics = Some(vec![of_topic]);
        request.require_stable = require_stable;
        let code = |answer: &OffsetFetchResponse| {
            let codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|p| p.error_code);
            std::iter::once(answer.error_code).chain(codes).find(|code| *code != 0).unwrap_or(0)
        };
        // From version 8 on a request asks for several groups at once.
        let answer = self.call_coordinator(CoordinatorKind::Group, group, 7..=7, &request, code).await?;
        let mut partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        Ok(partitions.next().and_then(|found| {
            let offset = u64::try_from(found.committed_offset).ok()?;
            Some(LedgerEntry { offset, note: found.metadata.as_deref().unwrap_or_default().to_owned() })
        }))
    }

    /// `OffsetCommit` outside of any transaction.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn note_in_group(
        &mut self,
        group: &str,
        topic: &str,
        entry: &LedgerEntry,
    ) -> Result<(), WireError> {
        let mut partition = OffsetCommitRequestPartition::default();
        partition.partition_index = LEDGER_PARTITION;
        partition.committed_offset = i64::try_from(entry.offset).unwrap_or(i64::MAX);
        partition.committed_leader_epoch = -1;
        partition.committed_metadata = Some(text(&entry.note));
        let mut of_topic = OffsetCommitRequestTopic::default();
        of_topic.name = TopicName(text(topic));
        of_topic.partitions = vec![partition];
        let mut request = OffsetCommitRequest::default();
        request.group_id = GroupId(text(group));
        request.generation_id_or_member_epoch = NO_GENERATION;
        request.topics = vec![of_topic];
        let code = |answer: &OffsetCommitResponse| {
            let codes = answer.topics.iter().flat_map(|topic| &topic.partitions).map(|p| p.error_code);
            codes.into_iter().find(|code| *code != 0).unwrap_or(0)
        };
        self.call_coordinator(CoordinatorKind::Group, group, 2..=8, &request, code).await?;
        Ok(())
    }

    /// `ListGroups` on every broker: each lists only those that it coordinates.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn list_groups(&mut self) -> Result<Vec<String>, WireError> {
        let mut listed = Vec::new();
        for broker in self.brokers().await? {
            let answer = self.call(&broker.address, 0..=4, &ListGroupsRequest::default()).await?;
            if answer.error_code != 0 {
                let (request, code) = ("ListGroups", BrokerCode(answer.error_code));
                return Err(WireError::Refused { request, address: broker.address, code });
            }
            listed.extend(answer.groups.into_iter().map(|group| group.group_id.0.to_string()));
        }
        Ok(listed)
    }
}
