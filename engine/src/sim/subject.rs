//! What a simulation puts to the test: a job, its input, and the servers that its output goes to.
//!
//! There are two kinds: the job of a seed ([`super::scenario`]), with an oracle that knows it; and an author's own job
//! ([`super::author_job`]), which is compared with itself.
//!
//! Owns: what scheduler and judge ask of either. Does not own: faults. Runs on: the simulation's thread.

use std::fmt::Debug;
use std::sync::atomic::AtomicU64;

use super::judge::Cut;
use super::line::Line;
use super::rng::Rng;
use crate::error::JobError;
use crate::execution::ExecutionConfig;
use crate::graph::JobGraph;
use crate::ids::CheckpointId;
use crate::operator::TransactionName;

/// See the module.
pub trait Subject: Debug {
    /// Records of the input.
    fn records(&self) -> u64;

    /// How many batches a channel in the middle carries at least.
    fn batches_per_channel(&self) -> u64;

    /// Settings.
    fn config(&self) -> &ExecutionConfig;

    /// How much of each partition has been written so far, in thousandths.
    fn written(&self) -> &AtomicU64;

    /// Whether it writes part files.
    fn has_files(&self) -> bool;

    /// Whether a start may go back, or begin anew: outputs of passed-over checkpoints can be told apart.
    fn may_restore_explicitly(&self) -> bool;

    /// Whether somebody may roll a listed transaction back by hand.
    fn may_be_tampered_with(&self) -> bool;

    /// The graph for another start, which may rescale.
    ///
    /// # Errors
    /// A graph that the engine refuses, or what the author's function returns.
    fn graph(&self, rng: &mut Rng, line: &Line) -> Result<JobGraph, JobError>;

    /// Compares what was committed, as far as it counts, with what had to be.
    ///
    /// # Errors
    /// The first difference.
    fn check(&self, cuts: &[Cut]) -> Result<(), String>;

    /// Time has passed.
    fn settle(&self, now: u64);

    /// When a server does something by itself.
    fn next_due(&self) -> Option<u64>;

    /// Within this time a server ends what nobody ends, where that hides output from readers.
    fn hides_for_us(&self) -> Option<u64>;

    /// Committed records that a reader does not see yet.
    fn hidden(&self) -> usize;

    /// What closed each committed transaction, and how many rows it has, in order.
    fn committed_sizes(&self) -> Vec<(CheckpointId, usize)>;

    /// Names of everything open or prepared.
    fn left_overs(&self) -> Vec<TransactionName>;

    /// Names of everything prepared.
    fn prepared(&self) -> Vec<TransactionName>;

    /// Somebody rolls a prepared transaction back by hand.
    fn roll_back_by_hand(&self, name: &TransactionName);
}
