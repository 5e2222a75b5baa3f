//! An edge of the stream graph, with its type erased.
//!
//! Owns: how records are spread over the receiving subtasks. Does not own: channels. Runs on: built in `main`, opened on the slot.

use std::any::Any;

use tidegate_state::MaxParallelism;

use super::NodeId;
use crate::exchange::{ChannelSender, Partitioner, ResultPartition};
use crate::operator::Stage;

/// A value whose type is known to both ends of an edge, erased in between.
pub type Erased = Box<dyn Any>;
/// The same, able to move to a slot's thread.
pub type ErasedSend = Box<dyn Any + Send>;

/// Spreads records of one type; erased.
pub trait AnyEdge: Send {
    /// A copy.
    fn clone_box(&self) -> Box<dyn AnyEdge>;
    /// Whether subtask *i* sends to subtask *i*, so that the neighbours may be chained.
    fn is_forward(&self) -> bool;
    /// Whether records of one key come to one subtask.
    fn is_keyed(&self) -> bool;
    /// The stage at the sending end, as an erased `Box<dyn Stage<T>>`. `senders` are erased `ChannelSender<T>`s.
    fn open(&self, senders: Vec<ErasedSend>, subtask: u32, max: MaxParallelism) -> Erased;
    /// The stage at the sending end if the ends do not have the same number of subtasks, and the edge was a forward one.
    fn open_rebalanced(&self, senders: Vec<ErasedSend>, subtask: u32, max: MaxParallelism) -> Erased;
}

/// An edge from one node to another.
pub struct Edge {
    /// Where it begins.
    pub from: NodeId,
    /// Where it ends.
    pub to: NodeId,
    /// How it spreads records.
    pub spread: Box<dyn AnyEdge>,
}

impl Clone for Edge {
    fn clone(&self) -> Self {
        Self { from: self.from, to: self.to, spread: self.spread.clone_box() }
    }
}

impl std::fmt::Debug for Edge {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Edge({} → {})", self.from.0, self.to.0)
    }
}

impl<T: Clone + Send + 'static> AnyEdge for Partitioner<T> {
    fn clone_box(&self) -> Box<dyn AnyEdge> {
        Box::new(self.clone())
    }

    fn is_forward(&self) -> bool {
        matches!(self, Self::Forward)
    }

    fn is_keyed(&self) -> bool {
        matches!(self, Self::Hash { .. })
    }

    fn open(&self, senders: Vec<ErasedSend>, subtask: u32, max: MaxParallelism) -> Erased {
        open(self.clone(), senders, subtask, max)
    }

    fn open_rebalanced(&self, senders: Vec<ErasedSend>, subtask: u32, max: MaxParallelism) -> Erased {
        open(Self::Rebalance, senders, subtask, max)
    }
}

fn open<T: Clone + Send + 'static>(
    partitioner: Partitioner<T>,
    senders: Vec<ErasedSend>,
    subtask: u32,
    max: MaxParallelism,
) -> Erased {
    let senders = senders
        .into_iter()
        .map(|sender| *sender.downcast::<ChannelSender<T>>().expect("both ends of an edge have one type"))
        .collect();
    let stage: Box<dyn Stage<T>> = Box::new(ResultPartition::new(partitioner, senders, subtask, max));
    Box::new(stage)
}
