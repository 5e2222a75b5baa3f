//! Requests about offsets inside transactions; a ledger is one of them, on partition 0 of the sink's topic, of a group that nobody
//! joins.
//!
//! Owns: their shape. Does not own: their order. Runs on: tokio.

use std::collections::BTreeMap;

use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::txn_offset_commit_request::{
    TxnOffsetCommitRequestPartition, TxnOffsetCommitRequestTopic,
};
use kafka_protocol::messages::{
    GroupId, OffsetFetchRequest, OffsetFetchResponse, ProducerId, TopicName, TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
};
use kafka_protocol::protocol::StrBytes;
use tidegate_engine::broker::Producer;

use super::WireError;
use super::client::{CoordinatorKind, WireClient};
use super::transactions::transactional_id;

/// The partition whose offset is the ledger.
pub const LEDGER_PARTITION: i32 = 0;
/// A commit by nobody's member.
const NO_GENERATION: i32 = -1;

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl WireClient {
    /// `TxnOffsetCommit`: new offsets of a group, by partition, which appear if the transaction commits. [`WireClient::add_offsets`] comes
    /// before.
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
    ) -> Result<(), WireError> {
        let committed = |(partition_index, committed_offset): (&i32, &i64)| {
            let mut partition = TxnOffsetCommitRequestPartition::default();
            partition.partition_index = *partition_index;
            partition.committed_offset = *committed_offset;
            partition.committed_leader_epoch = -1;
            partition.committed_metadata = Some(StrBytes::from_static_str(""));
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
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let offset = partitions.map(|partition| partition.committed_offset).next().unwrap_or(-1);
        Ok(u64::try_from(offset).ok())
    }
}
