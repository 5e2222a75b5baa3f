//! Which slots of a subtask hold a transaction that is not settled.
//!
//! A slot's id must not be initialised while its transaction is open or prepared: initialising aborts it. So a slot is taken for one
//! transaction, by name, and is free again when that transaction is committed, or rolled back. When all are taken, the writer waits;
//! the committer, which works on a connection of its own, frees them.
//!
//! Owns: slot ↔ transaction of one subtask in one attempt. Does not own: how many there are (max concurrent + tolerable failures +
//! 2). Runs on: the I/O side, shared by a subtask's writer and committer; pure.

use crate::mutation::{self, Mutation};
use crate::operator::TransactionName;

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlotTable {
    taken: Vec<Option<TransactionName>>,
    next: usize,
}

impl SlotTable {
    /// All slots are free; at least one.
    pub fn new(slots: usize) -> Self {
        Self { taken: vec![None; slots.max(1)], next: 0 }
    }

    /// Takes a free slot for a transaction, in turn, so that a slot rests as long as possible. `None`: wait until one is settled.
    pub fn take(&mut self, name: &TransactionName) -> Option<u32> {
        let (slots, first) = self.in_turn();
        let any = mutation::on(Mutation::SlotReusedUnsettled);
        let mut turn = (0..slots).map(|n| (first + n) % slots);
        let at = turn.find(|at| any || self.taken[*at].is_none())?;
        self.taken[at] = Some(name.clone());
        self.next = at + 1;
        u32::try_from(at).ok()
    }

    /// How many slots take turns, and whose turn it is.
    fn in_turn(&self) -> (usize, usize) {
        let all = self.taken.len();
        if mutation::on(Mutation::TooFewSlots) {
            return (1, 0);
        }
        if mutation::on(Mutation::SlotReusedUnsettled) {
            return (all.min(2), self.next % all.min(2));
        }
        // A kept producer goes on with its next transaction as soon as it can.
        if mutation::on(Mutation::ProducerKept) { (all, 0) } else { (all, self.next % all) }
    }

    /// A slot was taken ahead, and the transaction that is now written in it has its name: from here on it is that one's.
    pub fn rename(&mut self, ahead: &TransactionName, name: &TransactionName) {
        for held in self.taken.iter_mut().filter(|held| held.as_ref() == Some(ahead)) {
            *held = Some(name.clone());
        }
    }

    /// The slot of a transaction that is not settled.
    pub fn slot_of(&self, name: &TransactionName) -> Option<u32> {
        let at = self.taken.iter().position(|held| held.as_ref() == Some(name))?;
        u32::try_from(at).ok()
    }

    /// A transaction was committed, or rolled back: its slot is free. One that is not here is fine.
    pub fn settle(&mut self, name: &TransactionName) {
        for held in self.taken.iter_mut().filter(|held| held.as_ref() == Some(name)) {
            *held = None;
        }
    }

    /// How many transactions are not settled.
    pub fn unsettled(&self) -> usize {
        self.taken.iter().flatten().count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AttemptId, CheckpointId, JobName, Lineage, LogId, OperatorUid};
    use crate::operator::TransactionScope;

    fn name(opened_after: u64) -> TransactionName {
        let scope = TransactionScope {
            job: JobName::from("j"),
            log_id: LogId::from("l"),
            lineage: Lineage(1),
            uid: OperatorUid::from("u"),
        };
        TransactionName { scope, subtask: 0, opened_after: CheckpointId(opened_after), attempt: AttemptId(1) }
    }

    #[test]
    fn a_slot_is_free_again_only_when_its_transaction_is_settled() {
        let mut slots = SlotTable::new(2);
        assert_eq!(slots.take(&name(0)), Some(0));
        assert_eq!(slots.take(&name(1)), Some(1));
        assert_eq!(slots.take(&name(2)), None);
        slots.settle(&name(9));
        assert_eq!(slots.take(&name(2)), None);
        slots.settle(&name(1));
        assert_eq!((slots.take(&name(2)), slots.slot_of(&name(2)), slots.unsettled()), (Some(1), Some(1), 2));
        assert_eq!(slots.slot_of(&name(1)), None);
    }

    #[test]
    fn a_slot_that_was_taken_ahead_goes_to_the_transaction_that_uses_it() {
        let mut slots = SlotTable::new(2);
        let ahead = TransactionName::of_slot(name(0).scope, 0, u32::MAX, AttemptId(1));
        assert_eq!(slots.take(&ahead), Some(0));
        slots.rename(&ahead, &name(4));
        assert_eq!((slots.slot_of(&ahead), slots.slot_of(&name(4)), slots.unsettled()), (None, Some(0), 1));
        slots.settle(&name(4));
        assert_eq!(slots.unsettled(), 0);
    }

    #[test]
    fn free_slots_are_taken_in_turn() {
        let mut slots = SlotTable::new(3);
        for n in 0..7 {
            assert_eq!(slots.take(&name(n)), Some(u32::try_from(n).unwrap() % 3));
            slots.settle(&name(n));
        }
        assert_eq!(SlotTable::new(0).take(&name(0)), Some(0));
    }
}
