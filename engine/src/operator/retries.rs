//! How often a commit was tried again, and when that is worth a word.
//!
//! A few retries are usual: a server takes a moment until it lets go of a session, for each of many transactions at a take-over. What lasts
//! is told, ever more seldom.
//!
//! Owns: the count for the one commit of a sink subtask that is under way. Does not own: the retries. Runs on: the slot's thread. Pure.

use super::TransactionName;

/// Retries of one commit below this are as usual.
const RETRIES_USUAL: u32 = 32;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Retries {
    of: Option<(TransactionName, u32)>,
}

impl Retries {
    /// Counts a retry: which one it is of this transaction, and whether it is to be told.
    pub(super) fn count(&mut self, name: &TransactionName) -> (u32, bool) {
        let before = self.of.take().filter(|(retried, _)| retried == name).map_or(0, |(_, tries)| tries);
        let tries = before.saturating_add(1);
        self.of = Some((name.clone(), tries));
        (tries, tries >= RETRIES_USUAL && tries.is_power_of_two())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{AttemptId, CheckpointId, Lineage, LogId};
    use crate::operator::TransactionScope;

    fn name(opened_after: u64) -> TransactionName {
        let scope = TransactionScope {
            job: "orders".into(),
            log_id: LogId::default(),
            lineage: Lineage(1),
            uid: "log_sink".into(),
        };
        let (subtask, attempt, opened_after) = (0, AttemptId(1), CheckpointId(opened_after));
        TransactionName { scope, subtask, attempt, opened_after }
    }

    #[test]
    fn a_few_retries_of_each_of_many_transactions_are_not_told_and_many_of_one_are_seldom() {
        let mut retries = Retries::default();
        for opened_after in 0..40 {
            for _ in 0..3 {
                assert!(!retries.count(&name(opened_after)).1);
            }
        }
        let told: Vec<u32> = (0..300)
            .map(|_| retries.count(&name(99)))
            .filter(|(_, is_told)| *is_told)
            .map(|(tries, _)| tries)
            .collect();
        assert_eq!(told, [32, 64, 128, 256]);
    }
}
