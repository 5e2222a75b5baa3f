//! The committer of the simulation's sink into the broker model: settles, lists and rolls back by wire, as any process can.
//!
//! Owns: the drive of [`Settlement`] and of fences. Does not own: the decisions, the broker. Runs on: the simulation's thread.

use super::broker::{GroupOffset, Reply, Request, TransactionState};
use super::broker_client::BrokerClient;
use super::broker_sink::{AGAIN_US, BrokerSink, SharedSlots, TRIES_MAX, lock};
use super::coverage::Area;
use super::sink::{count_outcome, is_of};
use crate::api::{Committer, ConnectorError, Prepared, TwoPhaseContext};
use crate::broker::settlement::{SettlementAnswer, SettlementStep};
use crate::broker::{BrokerCommittable, Initialisation, LedgerEntry, ProducerSlot, Settlement};
use crate::ids::{AttemptId, CheckpointId};
use crate::mutation::{self, Mutation};
use crate::operator::{CommitOutcome, TransactionName};

/// See the module.
#[derive(Debug)]
pub struct BrokerCommitter {
    sink: BrokerSink,
    slots: SharedSlots,
    own: TransactionName,
    restored_attempt: AttemptId,
    has_listed: bool,
    client: BrokerClient,
}

impl BrokerCommitter {
    pub(super) async fn open(
        sink: BrokerSink,
        slots: SharedSlots,
        context: TwoPhaseContext,
    ) -> Result<Self, ConnectorError> {
        let client = BrokerClient::connect(&sink.broker, &sink.line);
        let TwoPhaseContext { name: own, restored_attempt, .. } = context;
        let mut committer = Self { sink, slots, own, restored_attempt, has_listed: false, client };
        if mutation::on(Mutation::FenceBeforeRecovery) {
            for left_over in committer.list().await? {
                if left_over.attempt < committer.own.attempt {
                    committer.roll_back(&left_over).await?;
                }
            }
        }
        Ok(committer)
    }

    async fn settlement_step(
        &mut self,
        step: &SettlementStep,
        item: &Prepared<BrokerCommittable>,
    ) -> SettlementAnswer {
        let id = BrokerSink::id(&item.name, item.committable.slot);
        let request = match step {
            SettlementStep::Wait { ms } => {
                self.sink.line.sleep(ms * 1_000).await;
                return SettlementAnswer::Ready;
            }
            SettlementStep::ReadLedger { require_stable } => {
                let (group, require_stable) = (BrokerSink::group(&id.ledger()), *require_stable);
                Request::FetchOffset { group, require_stable }
            }
            SettlementStep::EndTxn => {
                let (producer, version) = (item.committable.producer(), item.committable.end_txn_version);
                Request::End { id, producer, commit: true, version }
            }
            SettlementStep::Find(_) | SettlementStep::Done(_) | SettlementStep::Refused(_) => {
                return SettlementAnswer::Ready;
            }
        };
        match self.client.call(request).await {
            Ok(Reply::Offset(found)) => {
                SettlementAnswer::Ledger(found.map(|GroupOffset { offset, note }| LedgerEntry {
                    checkpoint: CheckpointId(offset),
                    attempt: Some(AttemptId(note)),
                }))
            }
            Ok(Reply::Code(code)) => SettlementAnswer::Code(code),
            Ok(Reply::Producer(_) | Reply::Listed(_)) | Err(_) => SettlementAnswer::NoAnswer,
        }
    }

    /// Under [`Mutation::SlotNameWithoutAttempt`] a start takes every id for one of an attempt before it, and nobody looks again.
    fn as_seen_without_attempts(&mut self, mut names: Vec<TransactionName>) -> Vec<TransactionName> {
        if mutation::on(Mutation::SlotNameWithoutAttempt) {
            names.retain(|_| !self.has_listed);
            names.iter_mut().for_each(|name| name.attempt = AttemptId(self.own.attempt.0.saturating_sub(1)));
        }
        self.has_listed = true;
        names
    }

    fn note(&self, settlement: &Settlement, outcome: &CommitOutcome) {
        count_outcome(&self.sink.line, outcome);
        let doubt = match (settlement.doubt(), outcome) {
            (Some(_), CommitOutcome::AlreadyCommitted) => "the ledger settled a doubt: committed",
            (Some(_), CommitOutcome::Lost { .. }) => "the ledger settled a doubt: lost",
            (None, CommitOutcome::AlreadyCommitted) => "the ledger was found at the checkpoint",
            _ => return,
        };
        self.sink.line.coverage().count(Area::Event, doubt);
    }
}

impl Committer for BrokerCommitter {
    type Committable = BrokerCommittable;

    async fn commit(&mut self, item: &Prepared<BrokerCommittable>) -> Result<CommitOutcome, ConnectorError> {
        let mut settlement = Settlement::new(item.name.attempt, item.closed_by);
        let outcome = loop {
            let step = settlement.step().clone();
            match step {
                SettlementStep::Done(outcome) => break outcome,
                SettlementStep::Refused(code) => return Err(BrokerSink::refused(code)),
                step => settlement.told(self.settlement_step(&step, item).await),
            }
        };
        self.note(&settlement, &outcome);
        if matches!(outcome, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted) {
            lock(&self.slots).settle(&item.name);
        }
        Ok(outcome)
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        for _ in 0..TRIES_MAX {
            match self.client.call(Request::List).await {
                Ok(Reply::Listed(ids)) => {
                    let left = |id: &ProducerSlot, state: TransactionState| {
                        state.seen().is_left_over(id.attempt, self.restored_attempt)
                    };
                    let ids = ids.into_iter().filter(|(id, state)| left(id, *state));
                    let names = ids.map(|(id, _)| id.as_left_over()).filter(|name| is_of(name, &self.own));
                    return Ok(self.as_seen_without_attempts(names.collect()));
                }
                Ok(Reply::Code(code)) if !code.is_transient() => return Err(BrokerSink::refused(code)),
                _ => self.sink.line.sleep(AGAIN_US).await,
            }
        }
        Err(ConnectorError::transient("the broker does not list its transactions"))
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        let slot = name.slot().or_else(|| lock(&self.slots).slot_of(name));
        let Some(id) = slot.map(|slot| BrokerSink::id(name, slot)) else { return Ok(()) };
        self.sink.initialise(&mut self.client, &id, Initialisation::fence()).await?;
        lock(&self.slots).settle(name);
        Ok(())
    }
}
