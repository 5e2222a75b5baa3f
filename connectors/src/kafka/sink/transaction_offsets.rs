//! Offsets that become part of a transaction: the ledger's, and those of a source in front of the sink.
//!
//! Owns: the two requests and their repetition. Does not own: whose offsets (see [`super::KafkaWriter`]). Runs on: the I/O side.

use std::collections::BTreeMap;
use std::time::Duration;

use tidegate_engine::broker::Producer;
use tidegate_engine::io::SharedIo;

use super::KafkaSinkError;
use crate::kafka::group_positions::GroupPositions;
use crate::kafka::wire::{WireClient, WireError};

/// A request that a coordinator refuses for now is sent again so often.
const TRIES_MAX: u32 = 200;
/// And after so long.
const AGAIN: Duration = Duration::from_millis(20);

/// The transaction that is being prepared.
pub(super) struct TransactionOffsets<'a> {
    pub(super) wire: &'a mut WireClient,
    pub(super) io: &'a SharedIo,
    pub(super) id: &'a str,
    pub(super) identity: Producer,
}

impl TransactionOffsets<'_> {
    /// These offsets of a group, by partition and with a text, appear with the transaction. A request without an answer is not sent again: it may be
    /// executed later, in a transaction that it does not belong to.
    pub(super) async fn note(
        &mut self,
        group: &str,
        topic: &str,
        offsets: &BTreeMap<i32, i64>,
        text: &str,
    ) -> Result<(), KafkaSinkError> {
        let mut tries = 0;
        while let Err(source) = self.wire.add_offsets(self.id, self.identity, group).await {
            tries = self.again(tries, group, source).await?;
        }
        while let Err(source) =
            self.wire.commit_offsets(self.id, self.identity, group, topic, offsets, text).await
        {
            tries = self.again(tries, group, source).await?;
        }
        Ok(())
    }

    async fn again(&self, tries: u32, group: &str, source: WireError) -> Result<u32, KafkaSinkError> {
        let refused_for_now = source.code().is_some_and(|code| code.is_transient());
        if !refused_for_now || tries >= TRIES_MAX {
            let doing = format!("noting offsets of the group {group} in the transaction of {}", self.id);
            return Err(KafkaSinkError::Wire { doing, source });
        }
        self.io.sleep(AGAIN).await;
        Ok(tries + 1)
    }
}

/// Offsets of another cluster's topic have no place in this one's transactions.
pub(super) async fn refuse_another_cluster(
    wire: &mut WireClient,
    bootstrap: &str,
    sink_topic: &str,
    positions: &GroupPositions,
) -> Result<(), KafkaSinkError> {
    let topic = &positions.topic;
    let found = wire.describe_topic(topic).await.map_err(|source| KafkaSinkError::Wire {
        doing: format!("looking for the source's topic {topic}"),
        source,
    })?;
    if found.is_some_and(|found| found.id == positions.topic_id) {
        return Ok(());
    }
    Err(KafkaSinkError::Setting {
        topic: sink_topic.to_owned(),
        problem: format!(
            "the cluster at {bootstrap} does not have the topic {topic} that the source reads, so that its transactions cannot hold the \
             source's offsets"
        ),
        remedy: "leave .source_offsets() away: then the source itself tells its group",
    })
}
