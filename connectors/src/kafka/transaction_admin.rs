//! What an operator may see of left-over transactions, and decide about them.
//!
//! A job ends its own: it commits what its checkpoints list and fences the rest. What is left belongs to a job that is not
//! started again, to another log, or to an attempt that stood still; it hides newer records of its partitions from readers
//! of committed records until its timeout. To commit one by hand is to say that its records are to be seen; to abort one, that they are not.
//! A job that lists an aborted one finds it lost, and says so.
//!
//! Owns: listing by our prefix, the two decisions. Does not own: how they are shown. Runs on: tokio.

use tidegate_engine::api::ConnectorError;
use tidegate_engine::broker::SlotState;
use tidegate_engine::io::SharedIo;

use super::committer_decisions::EndTxnVersion;
use super::sink::{KafkaSinkError, fence};
use super::transactional_id::IdComponents;
use super::wire::{DescribedTransaction, WireClient};

/// A transactional id of a Tidegate job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTransaction {
    /// The id, as the broker has it.
    pub id: String,
    /// Whose it is.
    pub owner: IdComponents,
    /// Its state, as brokers spell it.
    pub state: String,
    /// When the open transaction began, in milliseconds since 1970. `None`: none is open.
    pub started_ms: Option<i64>,
    /// The broker aborts it after so long.
    pub timeout_ms: i32,
    /// Partitions that it is open in: topic and number.
    pub partitions: Vec<(String, i32)>,
}

impl JobTransaction {
    /// Whether it is open, so that it hides newer records.
    pub fn is_open(&self) -> bool {
        matches!(SlotState::from_name(&self.state), Some(SlotState::Ongoing | SlotState::Ending))
    }
}

/// See the module.
#[derive(Debug)]
pub struct TransactionAdmin {
    wire: WireClient,
}

impl TransactionAdmin {
    /// Of the cluster at `bootstrap` (`host:port`, several with commas).
    pub fn new(bootstrap: &str, io: SharedIo) -> Self {
        Self { wire: WireClient::new(bootstrap, io) }
    }

    /// Every transactional id of every Tidegate job, in the order of the ids; with `open_only` those that are open.
    ///
    /// # Errors
    /// A broker that does not answer, or refuses.
    pub async fn list(&mut self, open_only: bool) -> Result<Vec<JobTransaction>, ConnectorError> {
        let listed = self.wire.list_transactions().await;
        let listed = listed
            .map_err(|source| KafkaSinkError::Wire { doing: "listing transactions".to_owned(), source })?;
        let mut found = Vec::new();
        for it in listed {
            let is_open =
                matches!(SlotState::from_name(&it.state), Some(SlotState::Ongoing | SlotState::Ending));
            if IdComponents::read(&it.id).is_some() && (is_open || !open_only) {
                found.extend(self.describe(&it.id).await?);
            }
        }
        found.retain(|it| it.is_open() || !open_only);
        found.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(found)
    }

    /// One id. `None`: not one of ours, or the broker does not know it.
    ///
    /// # Errors
    /// A broker that does not answer, or refuses.
    pub async fn describe(&mut self, id: &str) -> Result<Option<JobTransaction>, ConnectorError> {
        let Some(owner) = IdComponents::read(id) else { return Ok(None) };
        let Some(it) = self.described(id).await? else { return Ok(None) };
        let DescribedTransaction { state, started_ms, timeout_ms, partitions, .. } = it;
        Ok(Some(JobTransaction { id: id.to_owned(), owner, state, started_ms, timeout_ms, partitions }))
    }

    async fn described(&mut self, id: &str) -> Result<Option<DescribedTransaction>, KafkaSinkError> {
        let described = self.wire.describe_transaction(id).await;
        described.map_err(|source| KafkaSinkError::Wire { doing: format!("looking at {id}"), source })
    }

    /// Commits what is open under an id. `false`: nothing is.
    ///
    /// # Errors
    /// A broker that does not answer, or refuses. After no answer ask again: [`Self::describe`] tells what became of it.
    pub async fn commit(&mut self, id: &str) -> Result<bool, ConnectorError> {
        let failed = |source| KafkaSinkError::Wire { doing: format!("committing {id}"), source };
        let Some(it) = self.described(id).await? else { return Ok(false) };
        if SlotState::from_name(&it.state) != Some(SlotState::Ongoing) {
            return Ok(false);
        }
        let offered = self.wire.offered_by_coordinator(id).await.map_err(failed)?;
        let version = EndTxnVersion::choose(&offered.end_txn());
        let EndTxnVersion(version) = version.map_err(KafkaSinkError::from)?;
        self.wire.end_txn(id, it.producer, true, version).await.map_err(failed)?;
        Ok(true)
    }

    /// Aborts what is open under an id, and fences whoever has it. `false`: nothing is open; it is left as it is.
    ///
    /// # Errors
    /// A broker that does not answer, or refuses.
    pub async fn abort(&mut self, id: &str) -> Result<bool, ConnectorError> {
        let Some(it) = self.described(id).await? else { return Ok(false) };
        if !matches!(SlotState::from_name(&it.state), Some(SlotState::Ongoing | SlotState::Ending)) {
            return Ok(false);
        }
        fence(&mut self.wire, id).await?;
        Ok(true)
    }
}
