//! What an operator may see of left-over transactions, and decide about them.
//!
//! A job ends its own: it commits what its checkpoints list and fences the rest. What is left belongs to a job that is not
//! started again, to another log, or to an attempt that stood still; it hides newer records of its partitions from readers
//! of committed records until its timeout. To commit one by hand is to say that its records are to be seen; to abort one, that they are not.
//! A job that lists an aborted one finds it lost, and says so. A decision is noted in a consumer group beside the transaction's ledger.
//!
//! Owns: listing by our prefix, the two decisions and their notes. Does not own: how they are shown. Runs on: tokio.

use std::time::Duration;

use tidegate_engine::api::ConnectorError;
use tidegate_engine::broker::SlotState;
use tidegate_engine::io::SharedIo;

use super::committer_decisions::EndTxnVersion;
use super::sink::{KafkaSinkError, fence};
use super::transactional_id::{IdComponents, decision_group};
use super::wire::{DescribedTransaction, LedgerEntry, WireClient};

/// Where brokers keep the offsets of groups.
const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// Looks whether the markers of a commit are written.
const LOOKS_MAX: u32 = 100;
/// Between two of them.
const LOOK_PAUSE: Duration = Duration::from_millis(50);

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

    /// Whether its writer has closed it: the entry of its ledger is in it then. One that is open without was being written, no checkpoint lists
    /// it, and its job writes the records again.
    pub fn is_prepared(&self) -> bool {
        self.partitions.iter().any(|(topic, _)| topic == OFFSETS_TOPIC)
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
        self.settled(id).await?;
        self.note(id, &it, "committed").await?;
        Ok(true)
    }

    /// Waits until the markers are written: a start that comes next finds the ledger as it is.
    async fn settled(&mut self, id: &str) -> Result<(), KafkaSinkError> {
        for _ in 0..LOOKS_MAX {
            let state = self.described(id).await?.and_then(|it| SlotState::from_name(&it.state));
            if !matches!(state, Some(SlotState::Ongoing | SlotState::Ending)) {
                return Ok(());
            }
            self.wire.sleep(LOOK_PAUSE).await;
        }
        Ok(())
    }

    /// Notes a decision where a job that finds the transaction lost looks for it. One that cannot be noted has been carried out all
    /// the same.
    async fn note(&mut self, id: &str, it: &DescribedTransaction, done: &str) -> Result<(), KafkaSinkError> {
        let topic = it.partitions.iter().map(|(topic, _)| topic).find(|topic| *topic != OFFSETS_TOPIC);
        let (Some((group, attempt)), Some(topic)) = (decision_group(id), topic) else { return Ok(()) };
        let entry = LedgerEntry { offset: attempt.0, note: format!("it was {done} by hand (tidegate txn)") };
        self.wire.note_in_group(&group, topic, &entry).await.map_err(|source| KafkaSinkError::Wire {
            doing: format!("{id} is {done}; noting that in the group {group}"),
            source,
        })
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
        self.note(id, &it, "aborted").await?;
        Ok(true)
    }
}
