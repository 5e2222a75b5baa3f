//! Committing one prepared transaction of any process, dead or alive, exactly once; or finding out what became of it.
//!
//! 1. Read the slot's ledger, as it stands: at or above the closing checkpoint is *already committed*, unless a lower attempt wrote it.
//! 2. `EndTxn(commit)` with the stored identity and version: 0 is *committed*.
//! 3. 14, 15, 16, 51 or no answer: find the coordinator again and repeat; the request is idempotent for as long as the id is not
//!    initialised anew, which waits until this is settled.
//! 4. 47, 48, 49 or 90: the identity is not the newest any more. None of them tells commit from abort (a commit by another version
//!    reads as 48), so ask the ledger, this time for a *stable* offset: at or above is *already committed*, below is *lost*.
//!    88 says that markers are still being written: ask again.
//!
//! The ledger is per slot: while this transaction is not settled, no other one of the slot can be open, so a stable offset comes
//! as soon as this transaction has ended. In a ledger that slots share it would wait for the next transaction, which waits for
//! this one.
//!
//! The ledger is that of all attempts, and "at or above" means "this one" only while ids of checkpoints rise. A rewind, and a start from
//! an old copy of the folder, give ids again: what attempts before this transaction's had committed then says nothing of it.
//!
//! Owns: what each answer means. Does not own: when to commit. Runs on: the I/O side. Pure: answers in, the next request out.

use super::code::BrokerCode;
use crate::ids::{AttemptId, CheckpointId};
use crate::mutation::{self, Mutation};
use crate::operator::CommitOutcome;

/// Between two tries.
pub const ASK_AGAIN_MS: u64 = 20;
/// Tries before the driver is told to retry later: it may have been canceled meanwhile.
pub const TRIES_MAX: u32 = 50;
/// The driver tries again after this time.
const RETRY_AFTER_MS: u64 = 200;

/// Who coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinator {
    /// Of the transactional id.
    Transaction,
    /// Of the ledger group.
    Ledger,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettlementStep {
    /// Find a coordinator.
    Find(Coordinator),
    /// Read the ledger.
    ReadLedger {
        /// Refuse an offset that an open transaction may change.
        require_stable: bool,
    },
    /// Send `EndTxn(commit)`.
    EndTxn,
    /// Let this time pass.
    Wait {
        /// Milliseconds.
        ms: u64,
    },
    /// It has come to this.
    Done(CommitOutcome),
    /// The broker refuses for good: a missing right, an unknown version.
    Refused(BrokerCode),
}

/// What a slot's ledger says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// The checkpoint that closed the slot's newest committed transaction.
    pub checkpoint: CheckpointId,
    /// Whose it was; none: it was written before attempts were noted.
    pub attempt: Option<AttemptId>,
}

impl LedgerEntry {
    /// Whether it may speak of a transaction of this attempt. A higher one's does: recovery settles what is listed before its writers take
    /// the slot.
    fn counts_for(&self, attempt: AttemptId) -> bool {
        self.attempt.is_none_or(|by| by >= attempt)
    }
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettlementAnswer {
    /// The coordinator is found, or the time has passed.
    Ready,
    /// The ledger's entry, if it has one.
    Ledger(Option<LedgerEntry>),
    /// An error code, or 0 as the answer to `EndTxn`.
    Code(BrokerCode),
    /// The connection failed, or no answer came in time.
    NoAnswer,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    FirstLook,
    End,
    Doubt(BrokerCode),
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    attempt: AttemptId,
    closed_by: CheckpointId,
    stage: Stage,
    step: SettlementStep,
    tries_left: u32,
}

impl Settlement {
    /// Of a transaction of this attempt that the barrier of `closed_by` closed.
    pub const fn new(attempt: AttemptId, closed_by: CheckpointId) -> Self {
        Self {
            attempt,
            closed_by,
            stage: Stage::FirstLook,
            step: SettlementStep::Find(Coordinator::Ledger),
            tries_left: TRIES_MAX,
        }
    }

    /// What to do next.
    pub const fn step(&self) -> &SettlementStep {
        &self.step
    }

    /// The code that left only the ledger to ask.
    pub const fn doubt(&self) -> Option<BrokerCode> {
        match self.stage {
            Stage::Doubt(code) => Some(code),
            Stage::FirstLook | Stage::End => None,
        }
    }

    /// What came of the last step.
    pub fn told(&mut self, answer: SettlementAnswer) {
        use SettlementStep::{Done, EndTxn, Find, ReadLedger, Refused, Wait};
        let asked = std::mem::replace(&mut self.step, SettlementStep::EndTxn);
        self.step = match (asked, answer) {
            (asked @ (Done(_) | Refused(_)), _) => asked,
            (Wait { .. }, _) => self.find(),
            (Find(_), SettlementAnswer::Ready) => self.request(),
            (ReadLedger { .. }, SettlementAnswer::Ledger(entry)) => self.on_ledger(entry),
            (EndTxn, SettlementAnswer::Code(BrokerCode::NONE)) => Done(CommitOutcome::Committed),
            (EndTxn, SettlementAnswer::Code(code)) if code.is_doubt() => self.on_doubt(code),
            (_, SettlementAnswer::Code(code)) if again(code) => self.again(Some(code)),
            (_, SettlementAnswer::Code(code)) => Refused(code),
            (_, SettlementAnswer::NoAnswer) => self.again(None),
            (asked, SettlementAnswer::Ready | SettlementAnswer::Ledger(_)) => asked,
        };
    }

    /// Whose coordinator the next request goes to.
    fn find(&self) -> SettlementStep {
        SettlementStep::Find(match self.stage {
            Stage::FirstLook | Stage::Doubt(_) => Coordinator::Ledger,
            Stage::End => Coordinator::Transaction,
        })
    }

    fn request(&self) -> SettlementStep {
        match self.stage {
            Stage::FirstLook => SettlementStep::ReadLedger { require_stable: false },
            Stage::Doubt(_) => SettlementStep::ReadLedger { require_stable: true },
            Stage::End => SettlementStep::EndTxn,
        }
    }

    fn on_ledger(&mut self, entry: Option<LedgerEntry>) -> SettlementStep {
        let counts = entry.is_some_and(|entry| entry.counts_for(self.attempt));
        if counts && entry.is_some_and(|entry| entry.checkpoint >= self.closed_by) {
            return SettlementStep::Done(CommitOutcome::AlreadyCommitted);
        }
        if let Stage::Doubt(code) = self.stage {
            let ledger = match entry {
                None => "empty".to_owned(),
                Some(LedgerEntry { checkpoint, .. }) if counts => format!("at checkpoint {checkpoint}"),
                Some(_) => "of an attempt before it".to_owned(),
            };
            let reason =
                format!("the broker does not know it as open any more ({code}), and its ledger is {ledger}");
            return SettlementStep::Done(CommitOutcome::Lost { reason });
        }
        self.stage = Stage::End;
        self.find()
    }

    fn on_doubt(&mut self, code: BrokerCode) -> SettlementStep {
        if mutation::on(Mutation::InvalidStateIsCommitted) && code == BrokerCode::INVALID_TXN_STATE {
            return SettlementStep::Done(CommitOutcome::Committed);
        }
        self.stage = Stage::Doubt(code);
        self.find()
    }

    fn again(&mut self, why: Option<BrokerCode>) -> SettlementStep {
        self.tries_left = self.tries_left.saturating_sub(1);
        if self.tries_left > 0 {
            return SettlementStep::Wait { ms: ASK_AGAIN_MS };
        }
        let reason = why.map_or_else(|| "the broker does not answer".to_owned(), |code| code.to_string());
        SettlementStep::Done(CommitOutcome::RetryAfter { ms: RETRY_AFTER_MS, reason })
    }
}

const fn again(code: BrokerCode) -> bool {
    code.is_transient() || matches!(code, BrokerCode::UNSTABLE_OFFSET_COMMIT)
}

#[cfg(test)]
mod tests;
