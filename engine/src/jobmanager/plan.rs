//! What the job manager knows of a job: vertices, operators, parallelism; no types, no closures.
//!
//! Owns: the description of the chained job graph that coordinator, restore and statistics work on.
//! Does not own: the graph that builds subtasks (see [`crate::graph`]). Runs on: anywhere; plain data.

use serde::{Deserialize, Serialize};
use tidegate_state::StateDescriptor;

use crate::ids::{JobName, OperatorUid, SubtaskId, VertexId};

/// A job as the job manager sees it.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// The job's name.
    pub job: JobName,
    /// Vertices in topological order; the position is the [`VertexId`].
    pub vertices: Vec<VertexPlan>,
}

/// One vertex: a chain of operators that runs in `parallelism` subtasks.
#[derive(Clone, Debug)]
pub struct VertexPlan {
    /// Its id.
    pub id: VertexId,
    /// Name shown to people: the names of its operators joined by ` → `.
    pub name: String,
    /// Number of subtasks.
    pub parallelism: u32,
    /// Number of key groups.
    pub max_parallelism: u16,
    /// Whether it starts with a source (it then gets triggers and splits by mail).
    pub is_source: bool,
    /// Parallelism of every vertex in front of it, in topological order.
    pub upstream: Vec<u32>,
    /// Operators in the order of the chain. Those without uid are stateless.
    pub operators: Vec<OperatorPlan>,
}

/// One operator inside a vertex.
#[derive(Clone, Debug)]
pub struct OperatorPlan {
    /// Stable identity; `None` for a stateless operator that was given none.
    pub uid: Option<OperatorUid>,
    /// Name shown to people.
    pub name: String,
    /// What kind of state it keeps.
    pub kind: OperatorKind,
    /// Declared keyed states.
    pub states: Vec<StateDescriptor>,
    /// Whether it emits at end of data (the rule of law 7 for partly ended vertices).
    pub has_on_end: bool,
}

/// What an operator is, as far as checkpoints care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperatorKind {
    /// A source: splits in the readers, an enumerator at the job manager.
    Source,
    /// Keeps no state.
    Stateless,
    /// Keeps operator state only.
    Function,
    /// Keeps keyed state.
    Keyed,
    /// A sink without transactions.
    Sink,
    /// A sink in two phases: keeps pending committables.
    TwoPhaseSink,
}

impl JobPlan {
    /// Every subtask of the job.
    pub fn subtasks(&self) -> impl Iterator<Item = SubtaskId> + '_ {
        self.vertices.iter().flat_map(|v| v.subtasks())
    }

    /// Every operator together with its vertex.
    pub fn operators(&self) -> impl Iterator<Item = (&VertexPlan, &OperatorPlan)> {
        self.vertices.iter().flat_map(|v| v.operators.iter().map(move |o| (v, o)))
    }

    /// The vertex with this id.
    pub fn vertex(&self, id: VertexId) -> Option<&VertexPlan> {
        self.vertices.get(id.0 as usize)
    }

    /// Name of a subtask for people: `user_total[2]`.
    pub fn subtask_name(&self, id: SubtaskId) -> String {
        match self.vertex(id.vertex) {
            Some(v) => format!("{}[{}]", v.name, id.index),
            None => id.to_string(),
        }
    }
}

impl VertexPlan {
    /// Its subtasks.
    pub fn subtasks(&self) -> impl Iterator<Item = SubtaskId> + use<> {
        let vertex = self.id;
        (0..self.parallelism).map(move |index| SubtaskId { vertex, index })
    }

    /// Uids of its two-phase sinks.
    pub fn two_phase_sinks(&self) -> impl Iterator<Item = &OperatorUid> {
        self.operators.iter().filter(|o| o.kind == OperatorKind::TwoPhaseSink).filter_map(|o| o.uid.as_ref())
    }
}
