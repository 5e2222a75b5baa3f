//! What can happen, and when.
//!
//! Owns: which steps a start may take in which phase. Does not own: their effects (one file each). Runs on: the checker.

use std::fmt;

use super::attempt::Phase;
use super::world::{NAMES, World};
use super::{CommitLog, Weakening};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The put in flight is applied, if its number is still free.
    LatePutLands,
    /// A start takes a step.
    Of(usize, Step),
}

/// A step of one start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Lists the log and decides what to claim.
    Survey(Wish),
    /// Puts its claim at highest listed + 1.
    PutClaim,
    /// Puts its claim, hears of an error, and gives up; the claim is still in flight.
    LoseClaim,
    /// Lists again, and restores.
    LookAgain,
    /// The committer commits the next transaction handed to it.
    CommitNext,
    /// Lists what lower attempts left on the server.
    ListLeftOvers,
    /// Rolls the next of them back.
    RollBackNext,
    /// A record goes into the open transaction.
    Record,
    /// A barrier: the open transaction is prepared, the snapshot acknowledged.
    Barrier,
    /// The checkpoint in flight is given up.
    Abort,
    /// Its entry is put.
    Put(PutFate),
    /// An uncertain put is read back.
    ReadBack,
    /// The cleaner deletes the next checkpoint of its plan: entry, then files.
    CleanNext,
}

/// What a start is asked to restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Wish {
    Latest,
    /// The oldest that may be named.
    Rewind,
    Nothing,
}

/// What becomes of a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PutFate {
    /// Applied or refused, and answered.
    Answered,
    /// Applied, and reported as an error.
    AppliedWithError,
    /// Applied, reported as an error, and a second try of the store's client is still in flight.
    AppliedAndInFlight,
    /// A timeout; still in flight.
    InFlight,
}

impl CommitLog {
    /// Every step that `who` may take now.
    pub(super) fn steps_of(&self, world: &World, who: usize, mut push: impl FnMut(Step)) {
        let attempt = &world.attempts[who];
        if !attempt.at_committer.is_empty() {
            push(Step::CommitNext);
        }
        if !attempt.to_clean.is_empty() {
            push(Step::CleanNext);
        }
        match &attempt.phase {
            Phase::Idle => self.surveys(world, who, push),
            Phase::Surveyed { .. } => {
                push(Step::PutClaim);
                if self.late_puts && world.in_flight.is_none() {
                    push(Step::LoseClaim);
                }
            }
            Phase::Claimed { .. } => push(Step::LookAgain),
            Phase::Recovering if attempt.at_committer.is_empty() => push(Step::ListLeftOvers),
            Phase::Recovering => {}
            Phase::Sweeping { .. } => push(Step::RollBackNext),
            Phase::Running => {
                if attempt.position < self.records {
                    push(Step::Record);
                }
                if attempt.next_id <= self.checkpoints {
                    push(Step::Barrier);
                }
                if self.weakening == Weakening::CleanerKeepsHighestEntry && self.not_highest(world).is_some()
                {
                    push(Step::CleanNext);
                }
            }
            Phase::Acknowledged { snapshot } => {
                if !attempt.has_aborted {
                    push(Step::Abort);
                }
                push(Step::Put(PutFate::Answered));
                if self.weakening == Weakening::NumbersFromListing {
                    return;
                }
                if self.can_put(world, self.number_of_checkpoint(world, attempt, snapshot)) {
                    push(Step::Put(PutFate::AppliedWithError));
                    if self.late_puts && world.in_flight.is_none() {
                        push(Step::Put(PutFate::AppliedAndInFlight));
                    }
                }
                if self.late_puts && world.in_flight.is_none() {
                    push(Step::Put(PutFate::InFlight));
                }
            }
            Phase::Uncertain { .. } => push(Step::ReadBack),
            Phase::Stopped => {}
        }
    }

    /// Starts begin in order: which of two that have not begun goes first makes no difference.
    fn surveys(&self, world: &World, who: usize, mut push: impl FnMut(Step)) {
        if who == 0 {
            return push(Step::Survey(Wish::Latest));
        }
        if matches!(world.attempts[who - 1].phase, Phase::Idle | Phase::Surveyed { .. }) {
            return;
        }
        push(Step::Survey(Wish::Latest));
        if self.anew {
            push(Step::Survey(Wish::Nothing));
        }
        if self.rewinds && self.rewind_target(&world.log).is_some() {
            push(Step::Survey(Wish::Rewind));
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (who, step) = match self {
            Self::LatePutLands => return f.pad("the put in flight arrives"),
            Self::Of(who, step) => (NAMES[*who], step),
        };
        let does = match step {
            Step::Survey(Wish::Latest) => "surveys, to restore the latest",
            Step::Survey(Wish::Rewind) => "surveys, to rewind",
            Step::Survey(Wish::Nothing) => "surveys, to restore nothing",
            Step::PutClaim => "puts its claim",
            Step::LoseClaim => "puts its claim: in flight; gives up",
            Step::LookAgain => "looks again and restores",
            Step::CommitNext => "commits the next transaction",
            Step::ListLeftOvers => "lists what others left on the server",
            Step::RollBackNext => "rolls the next one back",
            Step::Record => "writes a record",
            Step::Barrier => "barrier: prepares and acknowledges",
            Step::Abort => "gives the checkpoint up",
            Step::Put(PutFate::Answered) => "puts the entry",
            Step::Put(PutFate::AppliedWithError) => "puts the entry: applied, but an error is reported",
            Step::Put(PutFate::AppliedAndInFlight) => "puts the entry: applied, error, second try in flight",
            Step::Put(PutFate::InFlight) => "puts the entry: timeout, in flight",
            Step::ReadBack => "reads the entry back",
            Step::CleanNext => "cleans the next checkpoint",
        };
        f.pad(&format!("{who} {does}"))
    }
}
