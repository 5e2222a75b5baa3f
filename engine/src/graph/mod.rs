//! From the author's stream graph to vertices and subtasks.
//!
//! `StreamEnvironment` records *nodes* (typed, erased as [`AnyNode`]) and *edges*; [`JobGraph::chain`] joins neighbours with a forward
//! edge into vertices; [`wire`] and [`build_subtask`] make the subtasks of one attempt. Closures are cloned from the pristine ones at every
//! (re)start and are not shipped: every process of a job runs the same binary and builds the same graph.
//!
//! Owns: nodes, edges, chaining, checks at submit. Does not own: running. Runs on: `main`, and the slot that builds.

pub mod edge;
pub mod instantiate;
pub mod job_graph;
pub mod node;

pub use edge::{AnyEdge, Edge};
pub use instantiate::{InstantiateSetup, Mailboxes, SubtaskWiring, build_subtask, wire};
pub use job_graph::{JobGraph, Vertex};
pub use node::{AnyNode, BuildContext, NodeInfo};

/// Index of a node in the stream graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub usize);

/// A job graph that cannot run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GraphError {
    /// Two operators of one name.
    #[error(
        "two operators have the uid \"{uid}\"\n  help: state is found by uid; give each operator its own"
    )]
    DuplicateUid {
        /// The uid.
        uid: String,
    },
    /// A uid that cannot be part of file and transaction names.
    #[error(
        "operator {position} has the uid \"{uid}\"\n  \
         help: a uid is 1 to 64 characters from A-Z, a-z, 0-9, '_', '-' and '.'; the state of the operator is found by it"
    )]
    BadUid {
        /// The uid as given.
        uid: String,
        /// Which operator, counted from 1.
        position: usize,
    },
    /// More subtasks than key groups.
    #[error(
        "operator \"{operator}\" has parallelism {parallelism}, but there are only {max_parallelism} key groups\n  \
         help: lower the parallelism, or raise the maximum parallelism (--max-parallelism; only for a job without state to restore)"
    )]
    ParallelismOverMaximum {
        /// The operator.
        operator: String,
        /// Its parallelism.
        parallelism: u32,
        /// Number of key groups.
        max_parallelism: u16,
    },
    /// Parallelism 0.
    #[error("operator \"{operator}\" has parallelism 0\n  help: at least one subtask is needed")]
    NoSubtask {
        /// The operator.
        operator: String,
    },
    /// A sink that merges rows by key, and gets them by chance.
    #[error(
        "the sink \"{sink}\" adds to or overwrites rows by their key in {parallelism} subtasks, and no key_by stands in front of it: two of them \
         would wait for each other's rows, and which row of a key comes last would be chance\n  \
         help: stream.key_by(|row| the table's key).sink(\"{sink}\", ..), or parallelism 1 for this sink"
    )]
    UnkeyedSink {
        /// Its uid.
        sink: String,
        /// Its parallelism.
        parallelism: u32,
    },
    /// A job without a source.
    #[error("the job has no source\n  help: begin with env.source(uid, source)")]
    NoSource,
    /// A job without a sink.
    #[error("the job has no sink, so nothing would come out\n  help: end each stream with .sink(uid, sink)")]
    NoSink,
    /// The settings for key groups are out of range.
    #[error("max parallelism {given}: {reason}")]
    MaxParallelism {
        /// As given.
        given: u32,
        /// What is allowed.
        reason: String,
    },
}
