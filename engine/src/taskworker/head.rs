//! The head of a subtask: where its input comes from.
//!
//! Owns: the trait that hides the input's type from the subtask. Does not own: the two heads ([`super::gate_head`],
//! [`super::source_head`]). Runs on: the slot's thread.

use crate::element::CheckpointBarrier;
use crate::ids::CheckpointId;
use crate::operator::{AnyStage, OperatorPart, StageContext};
use crate::taskworker::mail::{MailBody, TaskFailure};

/// What one look at the input brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// An element went into the chain.
    Element,
    /// Nothing is there now.
    Nothing,
    /// `EndOfData` went into the chain; nothing but barriers follows.
    EndOfData,
}

/// An input and the chain behind it.
pub trait Head {
    /// The chain.
    fn chain(&mut self) -> &mut dyn AnyStage;

    /// Looks for barriers, also while the chain is blocked. `true` if anything changed.
    fn note(&mut self) -> bool;

    /// Whether a barrier is being aligned or waits for the chain.
    fn awaits_barrier(&self) -> bool;

    /// The barrier that is due, for an idle chain.
    fn take_barrier(&mut self) -> Option<CheckpointBarrier>;

    /// Checkpoints that a later barrier has ended.
    fn take_declined(&mut self) -> Vec<CheckpointId>;

    /// Puts the next element into the (idle) chain.
    ///
    /// # Errors
    /// The failure of a source.
    fn take_input(&mut self, cx: &mut StageContext) -> Result<Taken, TaskFailure>;

    /// The head's own part of a snapshot: a source's splits. Tells the chain where it stands, if that wants to know.
    fn freeze(&mut self, barrier: &CheckpointBarrier, cx: &mut StageContext) -> Option<OperatorPart>;

    /// Mail for a source, in the order of its numbers.
    ///
    /// # Errors
    /// Splits that cannot be read.
    fn source_mail(&mut self, mail: MailBody) -> Result<(), TaskFailure>;

    /// Whether this head is a source: it then closes by itself on `Finish`.
    fn is_source(&self) -> bool;

    /// Whether every input has closed.
    fn is_closed(&self) -> bool;

    /// Checkpoint `id` is complete.
    fn notify_complete(&mut self, id: CheckpointId);

    /// Records taken in so far.
    fn records_in(&self) -> u64;

    /// How far a source is behind; see [`crate::api::SplitReader::lag`].
    fn lag(&self) -> Option<u64> {
        None
    }
}
