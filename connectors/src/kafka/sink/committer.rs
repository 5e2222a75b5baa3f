//! Commits, lists and rolls back by wire, as any process can.
//!
//! Owns: the drive of [`Settlement`] and of fences. Does not own: the decisions, which transactions. Runs on: the I/O side, on
//! connections of its own.

use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{Committer, ConnectorError, Prepared, TwoPhaseContext};
use tidegate_engine::broker::initialisation::{InitialisationAnswer, InitialisationStep};
use tidegate_engine::broker::settlement::{Coordinator, SettlementAnswer, SettlementStep};
use tidegate_engine::broker::{
    BrokerCode, BrokerCommittable, Initialisation, LedgerEntry, ProducerSlot, Settlement, SlotState,
};
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::operator::{CommitOutcome, TransactionName};

use super::KafkaSinkError;
use super::kafka_sink::{SharedSlots, lock};
use super::topic::{Look, look_again, lost};
use crate::kafka::committer_decisions::EndTxnVersion;
use crate::kafka::transactional_id::{TransactionalIds, decision_group};
use crate::kafka::wire::{self, CoordinatorKind, WireClient, WireError};

/// The transaction timeout of a producer that only fences: it begins nothing. So short, since a broker refuses what is above its maximum.
const FENCE_TIMEOUT_MS: i32 = 1_000;
/// A broker that is away is asked again so often before the subtask fails.
const TRIES_MAX: u32 = 20;
/// And after so long.
const AGAIN_MS: u64 = 250;
const AGAIN: Duration = Duration::from_millis(AGAIN_MS);

/// Committer of a [`super::KafkaSink`].
#[derive(Debug)]
pub struct KafkaCommitter {
    wire: WireClient,
    ids: TransactionalIds,
    topic: Arc<str>,
    slots: SharedSlots,
    attempt: AttemptId,
    restored_attempt: AttemptId,
}

impl KafkaCommitter {
    pub(super) fn new(
        wire: WireClient,
        topic: Arc<str>,
        slots: SharedSlots,
        context: &TwoPhaseContext,
    ) -> Self {
        let ids = TransactionalIds::of(&context.name.scope);
        let (attempt, restored_attempt) = (context.name.attempt, context.restored_attempt);
        Self { wire, ids, topic, slots, attempt, restored_attempt }
    }

    async fn settlement_step(
        &mut self,
        step: &SettlementStep,
        id: &str,
        group: &str,
        committable: &BrokerCommittable,
    ) -> Result<SettlementAnswer, KafkaSinkError> {
        let asked = match step {
            SettlementStep::Wait { ms } => {
                self.wire.sleep(Duration::from_millis(*ms)).await;
                return Ok(SettlementAnswer::Ready);
            }
            SettlementStep::Find(Coordinator::Ledger) => {
                self.wire.coordinator(CoordinatorKind::Group, group).await.map(|_| SettlementAnswer::Ready)
            }
            SettlementStep::Find(Coordinator::Transaction) => {
                self.wire.coordinator(CoordinatorKind::Transaction, id).await.map(|_| SettlementAnswer::Ready)
            }
            SettlementStep::ReadLedger { require_stable } => {
                let read = self.wire.ledger_entry(group, &self.topic, *require_stable).await;
                read.map(|entry| SettlementAnswer::Ledger(entry.map(|entry| in_ledger(&entry))))
            }
            SettlementStep::EndTxn => match self.end_txn(id, committable).await? {
                Ok(()) => Ok(SettlementAnswer::Code(BrokerCode::NONE)),
                Err(error) => Err(error),
            },
            SettlementStep::Done(_) | SettlementStep::Refused(_) => return Ok(SettlementAnswer::Ready),
        };
        match asked {
            Ok(answer) => Ok(answer),
            Err(error) => match error.code() {
                Some(code) => Ok(SettlementAnswer::Code(code)),
                None if error.is_no_answer() => Ok(SettlementAnswer::NoAnswer),
                None => Err(KafkaSinkError::Wire { doing: format!("committing {id}"), source: error }),
            },
        }
    }

    /// With the stored identity, in the stored version and no other.
    async fn end_txn(
        &mut self,
        id: &str,
        committable: &BrokerCommittable,
    ) -> Result<Result<(), WireError>, KafkaSinkError> {
        let offered = match self.wire.offered_by_coordinator(id).await {
            Ok(offered) => offered,
            Err(error) => return Ok(Err(error)),
        };
        let offered = offered.end_txn();
        let EndTxnVersion(version) = EndTxnVersion::keep(committable.end_txn_version, &offered)?;
        Ok(self.wire.end_txn(id, committable.producer(), true, version).await)
    }

    /// What a restored transaction comes to, if its topic is not there any more: its records are gone, committed or not. (Those of this
    /// attempt are looked at by its writer.)
    async fn of_topic(&mut self, item: &Prepared<BrokerCommittable>) -> Option<CommitOutcome> {
        let was = item.committable.topic_id.filter(|_| item.name.attempt < self.attempt)?;
        match look_again(&mut self.wire, &self.topic, was).await {
            Look::Same => None,
            Look::Another { is } => Some(CommitOutcome::Lost { reason: lost(&self.topic, was, is) }),
            Look::Untold { reason } => Some(CommitOutcome::RetryAfter { ms: AGAIN_MS, reason }),
        }
    }

    async fn settle(&mut self, item: &Prepared<BrokerCommittable>) -> Result<CommitOutcome, KafkaSinkError> {
        if let Some(outcome) = self.of_topic(item).await {
            return Ok(outcome);
        }
        let slot = ProducerSlot::of(&item.name, item.committable.slot);
        let (id, group) = (self.ids.spell(&slot), self.ids.spell_ledger(&slot.ledger()));
        let mut settlement = Settlement::new(item.name.attempt, item.closed_by);
        loop {
            let step = settlement.step().clone();
            match step {
                SettlementStep::Done(CommitOutcome::Lost { reason }) => {
                    let decided =
                        self.decision(&id).await.map_or_else(String::new, |said| format!("; {said}"));
                    return Ok(CommitOutcome::Lost { reason: format!("{reason}{decided}") });
                }
                SettlementStep::Done(outcome) => return Ok(outcome),
                SettlementStep::Refused(code) => {
                    let (request, address) = ("EndTxn or OffsetFetch", id.clone());
                    let source = WireError::Refused { request, address, code };
                    return Err(KafkaSinkError::Wire { doing: format!("committing {id}"), source });
                }
                step => {
                    let answer = self.settlement_step(&step, &id, &group, &item.committable).await?;
                    settlement.told(answer);
                }
            }
        }
    }

    /// What an operator has decided about an id, in words. It is told to people; nothing rests on it.
    async fn decision(&mut self, id: &str) -> Option<String> {
        let (group, attempt) = decision_group(id)?;
        match self.wire.ledger_entry(&group, &self.topic, false).await {
            Ok(entry) => entry.filter(|entry| entry.offset == attempt.0).map(|entry| entry.note),
            Err(error) => {
                tracing::debug!(id, %error, "whether somebody has decided about it is not known");
                None
            }
        }
    }

    /// Of this sink's ledgers the newest checkpoint, of an attempt that is not below `since`. Offsets of open transactions do not count.
    async fn newest_in_ledgers(&mut self, since: AttemptId) -> Result<Option<CheckpointId>, KafkaSinkError> {
        let failed = |source| KafkaSinkError::Wire { doing: "looking at the ledgers".to_owned(), source };
        let mut tries = 0;
        let groups = loop {
            tries += 1;
            match self.wire.list_groups().await {
                Ok(groups) => break groups,
                Err(error) if error.is_transient() && tries < TRIES_MAX => self.wire.sleep(AGAIN).await,
                Err(source) => return Err(failed(source)),
            }
        };
        let mut newest = None;
        for group in groups.iter().filter(|group| self.ids.is_ledger(group)) {
            tries = 0;
            let entry = loop {
                tries += 1;
                match self.wire.ledger_entry(group, &self.topic, false).await {
                    Ok(entry) => break entry,
                    Err(error) if error.is_transient() && tries < TRIES_MAX => self.wire.sleep(AGAIN).await,
                    Err(source) => return Err(failed(source)),
                }
            };
            newest = newest.max(entry.and_then(|entry| counted(&entry, since)));
        }
        Ok(newest)
    }

    /// Everything of this sink that a sweep has to look at.
    async fn left_overs(&mut self) -> Result<Vec<TransactionName>, KafkaSinkError> {
        let mut tries = 0;
        let listed = loop {
            tries += 1;
            match self.wire.list_transactions().await {
                Ok(listed) => break listed,
                Err(error) if error.is_transient() && tries < TRIES_MAX => self.wire.sleep(AGAIN).await,
                Err(source) => {
                    return Err(KafkaSinkError::Wire { doing: "listing transactions".to_owned(), source });
                }
            }
        };
        let mut names = Vec::new();
        for transaction in listed {
            let Some(slot) = self.ids.read(&transaction.id) else { continue };
            let Some(state) = SlotState::from_name(&transaction.state) else {
                return Err(KafkaSinkError::GaveUp {
                    doing: format!("reading the state of {}", transaction.id),
                    tries: 1,
                    last: format!("an unknown state, {:?}", transaction.state),
                });
            };
            if state.is_left_over(slot.attempt, self.restored_attempt) {
                names.push(slot.as_left_over());
            }
        }
        Ok(names)
    }
}

/// An entry as the settlement reads it. Those of before attempts were noted have no text.
fn in_ledger(entry: &wire::LedgerEntry) -> LedgerEntry {
    let attempt = entry.note.parse().ok().map(AttemptId);
    LedgerEntry { checkpoint: CheckpointId(entry.offset), attempt }
}

/// What a ledger says, unless an attempt before `since` has written it. One of before attempts were noted counts only where all do.
fn counted(entry: &wire::LedgerEntry, since: AttemptId) -> Option<CheckpointId> {
    let LedgerEntry { checkpoint, attempt } = in_ledger(entry);
    (attempt.unwrap_or(AttemptId(0)) >= since).then_some(checkpoint)
}

/// Fences an id: what is open under it is aborted, and who has it can do nothing more.
pub(crate) async fn fence(wire: &mut WireClient, id: &str) -> Result<(), KafkaSinkError> {
    let doing = || format!("fencing {id}");
    let mut rounds = 0;
    loop {
        match fence_once(wire, id).await? {
            None => return Ok(()),
            Some(last) if rounds == TRIES_MAX => {
                return Err(KafkaSinkError::GaveUp { doing: doing(), tries: rounds, last });
            }
            Some(_) => {
                rounds += 1;
                wire.sleep(AGAIN).await;
            }
        }
    }
}

/// `Some`: it did not come to an end, and nothing is known to be wrong.
async fn fence_once(wire: &mut WireClient, id: &str) -> Result<Option<String>, KafkaSinkError> {
    let failed = |source| KafkaSinkError::Wire { doing: format!("fencing {id}"), source };
    let mut fence = Initialisation::fence();
    loop {
        let asked = match fence.step() {
            InitialisationStep::FindCoordinator => {
                wire.coordinator(CoordinatorKind::Transaction, id).await.map(|_| InitialisationAnswer::Ready)
            }
            InitialisationStep::Wait { ms } => {
                wire.sleep(Duration::from_millis(ms)).await;
                Ok(InitialisationAnswer::Ready)
            }
            InitialisationStep::Initialise => {
                wire.initialise(id, FENCE_TIMEOUT_MS).await.map(InitialisationAnswer::Initialised)
            }
            InitialisationStep::Done(_) => return Ok(None),
            InitialisationStep::GaveUp(code) => {
                return Ok(Some(code.map_or_else(|| "no answer".to_owned(), |code| code.to_string())));
            }
            InitialisationStep::Refused(code) => {
                let (request, address) = ("InitProducerId", id.to_owned());
                return Err(failed(WireError::Refused { request, address, code }));
            }
        };
        fence.told(match asked {
            Ok(answer) => answer,
            Err(error) => match error.code() {
                Some(code) => InitialisationAnswer::Code(code),
                None if error.is_no_answer() => InitialisationAnswer::NoAnswer,
                None => return Err(failed(error)),
            },
        });
    }
}

impl Committer for KafkaCommitter {
    type Committable = BrokerCommittable;

    async fn commit(&mut self, item: &Prepared<BrokerCommittable>) -> Result<CommitOutcome, ConnectorError> {
        let outcome = self.settle(item).await?;
        if matches!(outcome, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted) {
            lock(&self.slots).settle(&item.name);
        }
        Ok(outcome)
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        Ok(self.left_overs().await?)
    }

    async fn newest_committed(&mut self, since: AttemptId) -> Result<Option<CheckpointId>, ConnectorError> {
        Ok(self.newest_in_ledgers(since).await?)
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        let slot = name.slot().or_else(|| lock(&self.slots).slot_of(name));
        let Some(slot) = slot.map(|slot| ProducerSlot::of(name, slot)) else { return Ok(()) };
        fence(&mut self.wire, &self.ids.spell(&slot)).await?;
        lock(&self.slots).settle(name);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_committed_before_a_rewind_does_not_count() {
        let entry = |note: &str| wire::LedgerEntry { offset: 9, note: note.to_owned() };
        let nine = Some(CheckpointId(9));
        assert_eq!(counted(&entry("4"), AttemptId(4)), nine);
        assert_eq!(counted(&entry("3"), AttemptId(4)), None);
        assert_eq!(counted(&entry(""), AttemptId(0)), nine, "nothing was ever rewound");
        assert_eq!(counted(&entry(""), AttemptId(4)), None, "it may be of before the rewind");
    }
}
