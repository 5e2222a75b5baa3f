//! Builds the subtasks of one attempt: channels first, then each subtask from its last stage to its head.
//!
//! Owns: the wiring of channels (channel *c* of a gate: edges in order, sending subtasks in order). Does not own: running.
//! Runs on: the slot's thread.

use std::collections::HashMap;

use tidegate_state::CheckpointStorage;

use super::edge::{Erased, ErasedSend};
use super::node::{BuildContext, JobIdentity};
use super::{Edge, JobGraph, NodeId, Vertex};
use crate::api::ConnectorContext;
use crate::error::EngineError;
use crate::ids::SubtaskId;
use crate::operator::StageLimits;
use crate::taskworker::mail::{Mail, TaskReport};
use crate::taskworker::restore::Restored;
use crate::taskworker::subtask::{MAIL_CAPACITY, Subtask, SubtaskSetup};
use crate::taskworker::subtask_checkpointer::CheckpointerSetup;

/// What an attempt is built with.
pub struct InstantiateSetup<'a> {
    /// Who the attempt is.
    pub identity: &'a JobIdentity,
    /// Clock, I/O, waker.
    pub connector: ConnectorContext,
    /// Batch limits.
    pub limits: StageLimits,
    /// Batches in flight per channel.
    pub channel_credits: u32,
    /// Transactions a sink may hold.
    pub places: usize,
    /// Where state goes.
    pub storage: Option<CheckpointStorage>,
    /// What to restore from.
    pub restored: &'a Restored,
    /// To the job manager.
    pub reports: crossbeam_channel::Sender<TaskReport>,
}

/// Subtasks, and the way to send each of them mail.
pub struct Instance {
    /// In topological order.
    pub subtasks: Vec<Subtask>,
    /// Mailboxes.
    pub mail: HashMap<SubtaskId, crossbeam_channel::Sender<Mail>>,
}

impl std::fmt::Debug for Instance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Instance").field("subtasks", &self.subtasks.len()).finish_non_exhaustive()
    }
}

/// Channels of the whole job: inboxes by (head node, subtask), senders by (edge, sending subtask).
struct Wiring {
    inboxes: HashMap<(NodeId, u32), ErasedSend>,
    senders: HashMap<(usize, u32), Vec<ErasedSend>>,
}

/// Builds every subtask.
///
/// # Errors
/// State that does not fit, or a connector that cannot take it.
pub fn instantiate(graph: &JobGraph, setup: &InstantiateSetup<'_>) -> Result<Instance, EngineError> {
    let mut wiring = wire(graph, setup);
    let mut instance = Instance { subtasks: Vec::new(), mail: HashMap::new() };
    let plan = graph.plan();
    for vertex in &graph.vertices {
        for index in 0..vertex.parallelism {
            let id = SubtaskId { vertex: vertex.id, index };
            let (mail_tx, mail) = crossbeam_channel::bounded(MAIL_CAPACITY);
            instance.mail.insert(id, mail_tx);
            let head = build_head(graph, vertex, index, setup, &mut wiring)?;
            instance.subtasks.push(Subtask::new(SubtaskSetup {
                id,
                name: plan.subtask_name(id),
                attempt: setup.identity.attempt,
                head,
                limits: setup.limits,
                mail,
                reports: setup.reports.clone(),
                clock: setup.connector.clock.clone(),
                checkpointer: CheckpointerSetup {
                    subtask: index,
                    attempt: setup.identity.attempt,
                    storage: setup.storage.clone(),
                    io: setup.connector.io.clone(),
                    waker: setup.connector.waker.clone(),
                },
            }));
        }
    }
    Ok(instance)
}

/// Whether a channel leads from sending subtask `from` to receiving subtask `to`.
fn connects(graph: &JobGraph, edge: &Edge, from: u32, to: u32) -> bool {
    !one_to_one(graph, edge) || from == to
}

fn one_to_one(graph: &JobGraph, edge: &Edge) -> bool {
    edge.spread.is_forward() && graph.parallelism_of(edge.from) == graph.parallelism_of(edge.to)
}

fn wire(graph: &JobGraph, setup: &InstantiateSetup<'_>) -> Wiring {
    let mut wiring = Wiring { inboxes: HashMap::new(), senders: HashMap::new() };
    for vertex in &graph.vertices {
        let head = vertex.nodes[0];
        let inputs: Vec<(usize, &Edge)> =
            graph.edges.iter().enumerate().filter(|(_, e)| e.to == head).collect();
        if inputs.is_empty() {
            continue;
        }
        for to in 0..vertex.parallelism {
            let ends: Vec<(usize, u32)> = inputs
                .iter()
                .flat_map(|(at, edge)| {
                    (0..graph.parallelism_of(edge.from)).map(move |from| (*at, *edge, from))
                })
                .filter(|(_, edge, from)| connects(graph, edge, *from, to))
                .map(|(at, _, from)| (at, from))
                .collect();
            let channels = u32::try_from(ends.len()).unwrap_or(u32::MAX);
            let node = &graph.nodes[head.0].node;
            let (senders, inbox) = node.inbox(channels, setup.channel_credits, &setup.connector.waker);
            wiring.inboxes.insert((head, to), inbox);
            for (end, sender) in ends.into_iter().zip(senders) {
                wiring.senders.entry(end).or_default().push(sender);
            }
        }
    }
    wiring
}

fn build_head(
    graph: &JobGraph,
    vertex: &Vertex,
    index: u32,
    setup: &InstantiateSetup<'_>,
    wiring: &mut Wiring,
) -> Result<Box<dyn crate::taskworker::Head>, EngineError> {
    let cx = BuildContext {
        subtask: index,
        parallelism: vertex.parallelism,
        max_parallelism: graph.max_parallelism,
        connector: setup.connector.clone(),
        limits: setup.limits,
        restored: setup.restored,
        identity: setup.identity,
        places: setup.places,
    };
    // Stages of later nodes first: each is then handed to the nodes before it.
    let mut built: HashMap<NodeId, Erased> = HashMap::new();
    let head = vertex.nodes[0];
    for node in vertex.nodes.iter().rev() {
        let mut downstream = Vec::new();
        for (at, edge) in graph.edges.iter().enumerate().filter(|(_, e)| e.from == *node) {
            downstream.push(if graph.is_chained(edge) {
                built.remove(&edge.to).expect("a chained node was built before the one in front of it")
            } else {
                let senders = wiring.senders.remove(&(at, index)).unwrap_or_default();
                if edge.spread.is_forward() && !one_to_one(graph, edge) {
                    edge.spread.open_rebalanced(senders, index, graph.max_parallelism)
                } else {
                    edge.spread.open(senders, index, graph.max_parallelism)
                }
            });
        }
        let entry = &graph.nodes[node.0];
        if *node == head && graph.inputs(head).next().is_none() {
            let head = entry.node.source_head(&cx, downstream)?;
            return Ok(head.expect("a node without input is a source"));
        }
        let stage = entry.node.stage(&entry.info, &cx, downstream)?;
        built.insert(*node, stage);
    }
    let stage = built.remove(&head).expect("the head was built last");
    let inbox = wiring.inboxes.remove(&(head, index)).expect("a vertex with input has an inbox per subtask");
    Ok(graph.nodes[head.0].node.gate_head(inbox, stage))
}
