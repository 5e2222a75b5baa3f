//! Requests about transactions.
//!
//! Owns: their shape. Does not own: their order. Runs on: tokio.

use kafka_protocol::messages::{
    AddOffsetsToTxnRequest, DescribeTransactionsRequest, EndTxnRequest, GroupId, InitProducerIdRequest,
    ListTransactionsRequest, ProducerId, TransactionalId,
};
use kafka_protocol::protocol::StrBytes;
use tidegate_engine::broker::{BrokerCode, Producer};

use super::client::{CoordinatorKind, WireClient};
use super::{OfferedVersions, WireError};

/// No filter by age.
const ANY_DURATION: i64 = -1;

/// A transactional id, as its coordinator lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedTransaction {
    /// The id.
    pub id: String,
    /// Its producer id.
    pub producer_id: i64,
    /// Its state, as brokers spell it: `Ongoing`, `CompleteCommit` and so on.
    pub state: String,
}

/// A transactional id, as its coordinator describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedTransaction {
    /// Its state, as brokers spell it.
    pub state: String,
    /// Whose it is now; after a fence this is the one that fenced.
    pub producer: Producer,
    /// The coordinator aborts it after so long.
    pub timeout_ms: i32,
    /// When the open transaction began, in milliseconds since 1970. `None`: none is open.
    pub started_ms: Option<i64>,
    /// Partitions in the open transaction: topic and number.
    pub partitions: Vec<(String, i32)>,
}

pub(super) fn transactional_id(id: &str) -> TransactionalId {
    TransactionalId(StrBytes::from_string(id.to_owned()))
}

impl WireClient {
    /// `InitProducerId`: the id is the new producer's; who had it is fenced, what was open is aborted (51 until that is done).
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn initialise(&mut self, id: &str, timeout_ms: i32) -> Result<Producer, WireError> {
        let mut request = InitProducerIdRequest::default();
        request.transactional_id = Some(transactional_id(id));
        request.transaction_timeout_ms = timeout_ms;
        request.producer_id = ProducerId(-1);
        request.producer_epoch = -1;
        let answer = self
            .call_coordinator(CoordinatorKind::Transaction, id, 2..=4, &request, |a| a.error_code)
            .await?;
        Ok(Producer { id: answer.producer_id.0, epoch: answer.producer_epoch })
    }

    /// `AddOffsetsToTxn`: the group's offsets are part of the producer's transaction.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn add_offsets(&mut self, id: &str, producer: Producer, group: &str) -> Result<(), WireError> {
        let mut request = AddOffsetsToTxnRequest::default();
        request.transactional_id = transactional_id(id);
        request.producer_id = ProducerId(producer.id);
        request.producer_epoch = producer.epoch;
        request.group_id = GroupId(StrBytes::from_string(group.to_owned()));
        self.call_coordinator(CoordinatorKind::Transaction, id, 0..=3, &request, |a| a.error_code).await?;
        Ok(())
    }

    /// `EndTxn` with an identity, whoever's it is, in exactly this version.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn end_txn(
        &mut self,
        id: &str,
        producer: Producer,
        commit: bool,
        version: i16,
    ) -> Result<(), WireError> {
        let mut request = EndTxnRequest::default();
        request.transactional_id = transactional_id(id);
        request.producer_id = ProducerId(producer.id);
        request.producer_epoch = producer.epoch;
        request.committed = commit;
        let known = version..=version;
        self.call_coordinator(CoordinatorKind::Transaction, id, known, &request, |a| a.error_code).await?;
        Ok(())
    }

    /// What the coordinator of a transactional id offers.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn offered_by_coordinator(&mut self, id: &str) -> Result<OfferedVersions, WireError> {
        let address = self.coordinator(CoordinatorKind::Transaction, id).await?;
        self.offered(&address).await
    }

    /// `ListTransactions` on every broker: each lists only those that it coordinates.
    ///
    /// # Errors
    /// [`WireError`]: a broker that does not answer may have what is looked for.
    pub async fn list_transactions(&mut self) -> Result<Vec<ListedTransaction>, WireError> {
        let mut request = ListTransactionsRequest::default();
        request.duration_filter = ANY_DURATION;
        let mut listed = Vec::new();
        for broker in self.brokers().await? {
            let answer = self.call(&broker.address, 0..=1, &request).await?;
            if answer.error_code != 0 {
                let (request, code) = ("ListTransactions", BrokerCode(answer.error_code));
                return Err(WireError::Refused { request, address: broker.address, code });
            }
            listed.extend(answer.transaction_states.into_iter().map(|it| ListedTransaction {
                id: it.transactional_id.0.to_string(),
                producer_id: it.producer_id.0,
                state: it.transaction_state.to_string(),
            }));
        }
        Ok(listed)
    }

    /// `DescribeTransactions` of one id. `None`: the coordinator does not know it.
    ///
    /// # Errors
    /// [`WireError`].
    pub async fn describe_transaction(
        &mut self,
        id: &str,
    ) -> Result<Option<DescribedTransaction>, WireError> {
        /// The id is unknown.
        const TRANSACTIONAL_ID_NOT_FOUND: BrokerCode = BrokerCode(105);
        let mut request = DescribeTransactionsRequest::default();
        request.transactional_ids = vec![transactional_id(id)];
        let code = |answer: &kafka_protocol::messages::DescribeTransactionsResponse| {
            answer.transaction_states.first().map_or(0, |it| it.error_code)
        };
        let answer =
            match self.call_coordinator(CoordinatorKind::Transaction, id, 0..=0, &request, code).await {
                Err(error) if error.code() == Some(TRANSACTIONAL_ID_NOT_FOUND) => return Ok(None),
                answered => answered?,
            };
        Ok(answer.transaction_states.into_iter().next().map(|it| DescribedTransaction {
            state: it.transaction_state.to_string(),
            producer: Producer { id: it.producer_id.0, epoch: it.producer_epoch },
            timeout_ms: it.transaction_timeout_ms,
            started_ms: Some(it.transaction_start_time_ms).filter(|ms| *ms >= 0),
            partitions: it
                .topics
                .iter()
                .flat_map(|topic| topic.partitions.iter().map(|p| (topic.topic.0.to_string(), *p)))
                .collect(),
        }))
    }
}
