//! Names and identities of transactions in a broker.
//!
//! By the recovery law (law 6) a transactional id is (job, log id + lineage, operator uid, subtask, slot, attempt). With the attempt
//! in it, nothing that an older attempt still sends can touch a newer one's transaction. The ledger group has no attempt, since
//! its offset has to be found by every later one; it has the slot, so that reading it never waits for another slot's transaction.
//!
//! Owns: the components. Does not own: how a connector spells them. Runs on: plain data.

use crate::ids::AttemptId;
use crate::operator::{TransactionName, TransactionScope};

/// A transactional id.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProducerSlot {
    /// Job, log, lineage and sink.
    pub scope: TransactionScope,
    /// The subtask that writes.
    pub subtask: u32,
    /// Which of its slots.
    pub slot: u32,
    /// Its attempt.
    pub attempt: AttemptId,
}

/// A consumer group that nobody joins: its one offset is the newest checkpoint whose transaction of this slot was committed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LedgerGroup {
    /// Job, log, lineage and sink.
    pub scope: TransactionScope,
    /// The subtask that wrote.
    pub subtask: u32,
    /// The slot that it wrote in.
    pub slot: u32,
}

/// Identity of a producer: what a broker knows a transaction's owner by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Producer {
    /// Given by the broker with the first initialisation of a transactional id.
    pub id: i64,
    /// Rises with each initialisation.
    pub epoch: i16,
}

/// What a checkpoint stores about one transaction, beside its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, tidegate_state::StateType)]
pub struct BrokerCommittable {
    /// Slot it was written in.
    pub slot: u32,
    /// Producer id, from the producer itself: what a broker describes may be a later owner.
    pub producer_id: i64,
    /// Producer epoch.
    pub producer_epoch: i16,
    /// Version of the request that ends it. A retry with another version is answered differently, so it is kept.
    pub end_txn_version: i16,
    /// The id of the topic that it was written into; none in checkpoints of before it was kept.
    pub topic_id: Option<u128>,
}

impl ProducerSlot {
    /// The slot in which a named transaction is written.
    pub fn of(name: &TransactionName, slot: u32) -> Self {
        Self { scope: name.scope.clone(), subtask: name.subtask, slot, attempt: name.attempt }
    }

    /// Its ledger group.
    pub fn ledger(&self) -> LedgerGroup {
        LedgerGroup { scope: self.scope.clone(), subtask: self.subtask, slot: self.slot }
    }

    /// Its name among left-overs: a broker does not know which checkpoint its transaction was opened after.
    pub fn as_left_over(&self) -> TransactionName {
        TransactionName::of_slot(self.scope.clone(), self.subtask, self.slot, self.attempt)
    }
}

impl BrokerCommittable {
    /// The identity to commit with.
    pub const fn producer(&self) -> Producer {
        Producer { id: self.producer_id, epoch: self.producer_epoch }
    }
}

#[cfg(test)]
mod tests {
    use tidegate_state::{decode_list, encode_list};

    use super::*;
    use crate::ids::{CheckpointId, JobName, Lineage, LogId, OperatorUid};

    /// As it was before a topic's id was kept.
    mod former {
        #[derive(Clone, tidegate_state::StateType)]
        pub(super) struct BrokerCommittable {
            pub(super) slot: u32,
            pub(super) producer_id: i64,
            pub(super) producer_epoch: i16,
            pub(super) end_txn_version: i16,
        }
    }

    #[test]
    fn what_was_stored_before_topics_had_ids_is_read_without_one() {
        let former =
            former::BrokerCommittable { slot: 1, producer_id: 2, producer_epoch: 3, end_txn_version: 5 };
        let bytes = encode_list(&[former]);
        let read = BrokerCommittable {
            slot: 1,
            producer_id: 2,
            producer_epoch: 3,
            end_txn_version: 5,
            topic_id: None,
        };
        assert_eq!(decode_list::<BrokerCommittable>(&bytes).unwrap(), [read]);
    }

    #[test]
    fn a_left_over_tells_its_slot_and_never_looks_like_a_listed_transaction() {
        let scope = TransactionScope {
            job: JobName::from("j"),
            log_id: LogId::from("l"),
            lineage: Lineage(1),
            uid: OperatorUid::from("u"),
        };
        let listed =
            TransactionName { scope, subtask: 2, opened_after: CheckpointId(3), attempt: AttemptId(4) };
        let slot = ProducerSlot::of(&listed, 3);
        let left_over = slot.as_left_over();
        assert_eq!(left_over.slot().map(|number| ProducerSlot::of(&left_over, number)), Some(slot));
        assert_eq!(listed.slot(), None);
        assert_ne!(left_over, listed);
        assert!(left_over.to_string().contains("slot 3"), "{left_over}");
    }
}
