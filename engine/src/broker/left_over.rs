//! Which transactional ids a sweep has to initialise.
//!
//! An open one, of any lower attempt: it would hide newer output from readers. One that is being ended, too: its coordinator answers
//! when that is done. One in state Empty: its producer may be about to begin, unless it is of an attempt before the one
//! that completed the restored checkpoint. That attempt could not have acknowledged before its own recovery was done, so it has
//! fenced them; otherwise each start would initialise again all ids that the broker has not yet forgotten (for 7 days).
//! What has ended needs nothing: its producer is never used again.
//!
//! Owns: the rule about states. Does not own: the rule about names (a lower attempt, nobody lists it: law 6, in
//! [`crate::operator::commit_driver::to_roll_back`]). Runs on: plain data.

use crate::ids::AttemptId;

/// What a broker lists about an id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SlotState {
    /// Initialised; nothing was begun since.
    Empty,
    /// A transaction is open.
    Ongoing,
    /// Committed or aborted; markers are being written.
    Ending,
    /// Committed or aborted.
    Ended,
}

impl SlotState {
    /// Whether a sweep initialises an id in this state. `restored`: the attempt that completed the restored checkpoint.
    pub fn is_left_over(self, attempt: AttemptId, restored: AttemptId) -> bool {
        match self {
            Self::Ongoing | Self::Ending => true,
            Self::Empty => attempt >= restored,
            Self::Ended => false,
        }
    }

    /// The state's name as brokers spell it. `None`: one that no version knows today.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "Empty" => Self::Empty,
            "Ongoing" => Self::Ongoing,
            "PrepareCommit" | "PrepareAbort" | "PrepareEpochFence" => Self::Ending,
            "CompleteCommit" | "CompleteAbort" | "Dead" => Self::Ended,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_open_id_is_swept_whatever_its_age_and_an_empty_one_only_once() {
        let (before, restored) = (AttemptId(3), AttemptId(4));
        assert!(SlotState::Ongoing.is_left_over(before, restored));
        assert!(SlotState::Ending.is_left_over(before, restored));
        assert!(!SlotState::Empty.is_left_over(before, restored));
        assert!(SlotState::Empty.is_left_over(restored, restored));
        assert!(SlotState::Empty.is_left_over(before, AttemptId(0)));
        assert!(!SlotState::Ended.is_left_over(restored, restored));
    }

    #[test]
    fn an_unknown_state_is_not_guessed() {
        assert_eq!(SlotState::from_name("Ongoing"), Some(SlotState::Ongoing));
        assert_eq!(SlotState::from_name("PrepareCommit"), Some(SlotState::Ending));
        assert_eq!(SlotState::from_name("ongoing"), None);
    }
}
