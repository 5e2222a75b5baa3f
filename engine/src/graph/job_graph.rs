//! The stream graph as recorded, and its chaining into vertices.
//!
//! Owns: nodes, edges, the rule of chaining (a forward edge between neighbours of one parallelism, and no other input; functions that may block only among themselves), checks at
//! submit, the fingerprint. Does not own: building subtasks. Runs on: `main`.

use std::collections::BTreeSet;

use tidegate_state::MaxParallelism;

use super::{AnyNode, Edge, GraphError, NodeId, NodeInfo};
use crate::error::EngineError;
use crate::ids::{JobName, OperatorUid, VertexId};
use crate::jobmanager::plan::{JobPlan, OperatorKind, OperatorPlan, VertexPlan};

/// A node with what is known of it.
pub struct Node {
    /// Untyped facts.
    pub info: NodeInfo,
    /// The typed part.
    pub node: Box<dyn AnyNode>,
}

impl Clone for Node {
    fn clone(&self) -> Self {
        Self { info: self.info.clone(), node: self.node.clone_box() }
    }
}

/// A chain of nodes that runs in one subtask; the first is the head.
#[derive(Clone, Debug)]
pub struct Vertex {
    /// Its id.
    pub id: VertexId,
    /// Number of subtasks.
    pub parallelism: u32,
    /// Whether its functions may block: then its subtasks have threads of their own.
    pub blocking: bool,
    /// Its nodes, in topological order.
    pub nodes: Vec<NodeId>,
}

/// The whole graph.
#[derive(Clone)]
pub struct JobGraph {
    /// The job's name.
    pub job: JobName,
    /// Nodes, in the order they were made: every edge leads to a later one.
    pub nodes: Vec<Node>,
    /// Edges.
    pub edges: Vec<Edge>,
    /// Parallelism of nodes that have none of their own.
    pub parallelism: u32,
    /// Number of key groups.
    pub max_parallelism: MaxParallelism,
    /// Vertices, once chained.
    pub vertices: Vec<Vertex>,
}

impl std::fmt::Debug for JobGraph {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JobGraph")
            .field("job", &self.job)
            .field("vertices", &self.vertices)
            .finish_non_exhaustive()
    }
}

impl JobGraph {
    /// Checks the graph and chains it.
    ///
    /// # Errors
    /// [`EngineError::Graph`], or a connector that refuses its settings.
    pub fn chain(
        job: JobName,
        nodes: Vec<Node>,
        edges: Vec<Edge>,
        parallelism: u32,
        max_parallelism: MaxParallelism,
    ) -> Result<Self, EngineError> {
        let mut graph = Self { job, nodes, edges, parallelism, max_parallelism, vertices: Vec::new() };
        graph.check()?;
        for node in &graph.nodes {
            node.node.validate().map_err(|e| EngineError::of_connector(&node.info.name, &e))?;
        }
        graph.make_vertices();
        Ok(graph)
    }

    fn check(&self) -> Result<(), GraphError> {
        let mut uids = BTreeSet::new();
        for (position, Node { info, .. }) in self.nodes.iter().enumerate() {
            if let Some(OperatorUid(uid)) = &info.uid {
                if !is_uid(uid) {
                    return Err(GraphError::BadUid { uid: uid.clone(), position: position + 1 });
                }
                if !uids.insert(uid.clone()) {
                    return Err(GraphError::DuplicateUid { uid: uid.clone() });
                }
            }
            let parallelism = info.parallelism.unwrap_or(self.parallelism);
            if parallelism == 0 {
                return Err(GraphError::NoSubtask { operator: info.name.clone() });
            }
            if parallelism > u32::from(self.max_parallelism.get()) {
                return Err(GraphError::ParallelismOverMaximum {
                    operator: info.name.clone(),
                    parallelism,
                    max_parallelism: self.max_parallelism.get(),
                });
            }
        }
        let unkeyed = |index: &usize| {
            let node = NodeId(*index);
            self.nodes[*index].info.merges_by_key && self.parallelism_of(node) > 1 && !self.is_keyed(node)
        };
        if let Some(index) = (0..self.nodes.len()).find(unkeyed) {
            let (sink, parallelism) =
                (self.nodes[index].info.name.clone(), self.parallelism_of(NodeId(index)));
            return Err(GraphError::UnkeyedSink { sink, parallelism });
        }
        let has = |kinds: &[OperatorKind]| self.nodes.iter().any(|n| kinds.contains(&n.info.kind));
        if !has(&[OperatorKind::Source]) {
            return Err(GraphError::NoSource);
        }
        if !has(&[OperatorKind::Sink, OperatorKind::TwoPhaseSink]) {
            return Err(GraphError::NoSink);
        }
        Ok(())
    }

    /// Parallelism of a node.
    pub fn parallelism_of(&self, node: NodeId) -> u32 {
        self.nodes[node.0].info.parallelism.unwrap_or(self.parallelism)
    }

    /// Edges that end at a node.
    pub fn inputs(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.to == node)
    }

    /// Whether the records of every input were spread by a key, here or in front of forward edges that lead here.
    fn is_keyed(&self, node: NodeId) -> bool {
        let mut inputs = self.inputs(node).peekable();
        inputs.peek().is_some()
            && inputs.all(|edge| {
                let is_forward = edge.spread.is_forward()
                    && self.parallelism_of(edge.from) == self.parallelism_of(edge.to);
                edge.spread.is_keyed() || (is_forward && self.is_keyed(edge.from))
            })
    }

    /// Edges that begin at a node.
    pub fn outputs(&self, node: NodeId) -> impl Iterator<Item = &Edge> {
        self.edges.iter().filter(move |e| e.from == node)
    }

    /// Whether an edge stays inside a subtask.
    pub fn is_chained(&self, edge: &Edge) -> bool {
        edge.spread.is_forward()
            && self.inputs(edge.to).count() == 1
            && self.parallelism_of(edge.from) == self.parallelism_of(edge.to)
            && self.nodes[edge.from.0].info.blocking == self.nodes[edge.to.0].info.blocking
    }

    fn make_vertices(&mut self) {
        let mut vertices: Vec<Vertex> = Vec::new();
        for index in 0..self.nodes.len() {
            let node = NodeId(index);
            let chained_to = self.inputs(node).find(|e| self.is_chained(e)).map(|e| e.from);
            let vertex = chained_to.and_then(|from| vertices.iter_mut().find(|v| v.nodes.contains(&from)));
            match vertex {
                Some(vertex) => vertex.nodes.push(node),
                None => {
                    let id = VertexId(u32::try_from(vertices.len()).unwrap_or(u32::MAX));
                    let (parallelism, blocking) =
                        (self.parallelism_of(node), self.nodes[index].info.blocking);
                    vertices.push(Vertex { id, parallelism, blocking, nodes: vec![node] });
                }
            }
        }
        self.vertices = vertices;
    }

    /// The vertex that a node runs in.
    pub fn vertex_of(&self, node: NodeId) -> &Vertex {
        self.vertices.iter().find(|v| v.nodes.contains(&node)).expect("every node was placed into a vertex")
    }

    /// What the job manager works on.
    pub fn plan(&self) -> JobPlan {
        let vertices = self.vertices.iter().map(|v| self.vertex_plan(v)).collect();
        JobPlan { job: self.job.clone(), vertices }
    }

    fn vertex_plan(&self, vertex: &Vertex) -> VertexPlan {
        let infos: Vec<&NodeInfo> = vertex.nodes.iter().map(|n| &self.nodes[n.0].info).collect();
        let names: Vec<&str> = infos.iter().map(|i| i.name.as_str()).collect();
        let operators = infos.iter().map(|info| OperatorPlan {
            uid: info.uid.clone(),
            name: info.name.clone(),
            kind: info.kind,
            states: info.states.clone(),
            has_on_end: info.has_on_end,
        });
        VertexPlan {
            id: vertex.id,
            name: names.join(" → "),
            parallelism: vertex.parallelism,
            max_parallelism: self.max_parallelism.get(),
            is_source: infos.first().is_some_and(|i| i.kind == OperatorKind::Source),
            upstream: self.upstream(vertex).iter().map(|v| v.parallelism).collect(),
            operators: operators.collect(),
        }
    }

    /// Every vertex in front of this one, in topological order.
    fn upstream(&self, vertex: &Vertex) -> Vec<&Vertex> {
        let mut found: BTreeSet<VertexId> = BTreeSet::new();
        let mut heads = vec![vertex.nodes[0]];
        while let Some(head) = heads.pop() {
            for edge in self.inputs(head) {
                let from = self.vertex_of(edge.from);
                if found.insert(from.id) {
                    heads.push(from.nodes[0]);
                }
            }
        }
        self.vertices.iter().filter(|v| found.contains(&v.id)).collect()
    }

    /// Records that the sources have in all, if all of them know.
    pub fn total_records(&self) -> Option<u64> {
        let sources = self.nodes.iter().filter(|n| n.info.kind == OperatorKind::Source);
        sources.map(|n| n.node.total_records()).sum()
    }
}

fn is_uid(uid: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    !uid.is_empty() && uid.len() <= 64 && uid.chars().all(fits) && !uid.starts_with('.')
}
