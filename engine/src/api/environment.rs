//! The environment a job is built in.
//!
//! Owns: the recorded stream graph. Does not own: checks and chaining (see [`crate::graph`]). Runs on: `main`.

use std::cell::RefCell;
use std::rc::Rc;

use tidegate_state::MaxParallelism;

use super::data_stream::DataStream;
use super::source::Source;
use crate::error::EngineError;
use crate::graph::job_graph::Node;
use crate::graph::node::SourceNode;
use crate::graph::{AnyEdge, AnyNode, Edge, GraphError, JobGraph, NodeId, NodeInfo};
use crate::ids::{JobName, OperatorUid};
use crate::jobmanager::plan::OperatorKind;

/// Number of key groups where none was set.
pub const DEFAULT_MAX_PARALLELISM: u32 = 128;

#[derive(Default)]
pub(crate) struct Recorded {
    pub(crate) nodes: Vec<Node>,
    pub(crate) edges: Vec<Edge>,
}

/// Records the sources, operators and sinks of a job. Cloning gives another handle to the same job.
#[derive(Clone, Default)]
pub struct StreamEnvironment {
    pub(crate) recorded: Rc<RefCell<Recorded>>,
}

impl std::fmt::Debug for StreamEnvironment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StreamEnvironment")
            .field("nodes", &self.recorded.borrow().nodes.len())
            .finish_non_exhaustive()
    }
}

impl StreamEnvironment {
    /// An empty job.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a source. Its uid is the identity of its state: which splits are read, and how far.
    pub fn source<S: Source>(&self, uid: &str, source: S) -> DataStream<S::Record> {
        let info = info(uid, OperatorKind::Source);
        let node = SourceNode::new(OperatorUid::from(uid), source);
        DataStream::of(self, self.add(info, Box::new(node)))
    }

    /// Checks and chains what was recorded.
    ///
    /// # Errors
    /// [`EngineError::Graph`] names the operator and the remedy; a connector may refuse its settings.
    pub fn into_graph(
        self,
        job: &str,
        parallelism: u32,
        max_parallelism: u32,
    ) -> Result<JobGraph, EngineError> {
        let max_parallelism = MaxParallelism::new(max_parallelism)
            .map_err(|e| GraphError::MaxParallelism { given: max_parallelism, reason: e.to_string() })?;
        let recorded = self.recorded.borrow();
        let (nodes, edges) = (recorded.nodes.clone(), recorded.edges.clone());
        JobGraph::chain(JobName::from(job), nodes, edges, parallelism, max_parallelism)
    }

    pub(crate) fn add(&self, info: NodeInfo, node: Box<dyn AnyNode>) -> NodeId {
        let mut recorded = self.recorded.borrow_mut();
        recorded.nodes.push(Node { info, node });
        NodeId(recorded.nodes.len() - 1)
    }

    pub(crate) fn connect(&self, from: NodeId, to: NodeId, spread: Box<dyn AnyEdge>) {
        self.recorded.borrow_mut().edges.push(Edge { from, to, spread });
    }

    pub(crate) fn change(&self, node: NodeId, change: impl FnOnce(&mut NodeInfo)) {
        change(&mut self.recorded.borrow_mut().nodes[node.0].info);
    }
}

/// Facts of an operator with state.
pub(crate) fn info(uid: &str, kind: OperatorKind) -> NodeInfo {
    NodeInfo {
        name: uid.to_owned(),
        uid: Some(OperatorUid::from(uid)),
        kind,
        states: Vec::new(),
        has_on_end: false,
        holds_locks: false,
        merges_by_key: false,
        blocking: false,
        parallelism: None,
    }
}

/// Facts of an operator without state.
pub(crate) fn stateless(name: &str) -> NodeInfo {
    NodeInfo { uid: None, ..info(name, OperatorKind::Stateless) }
}
