//! Builds the subtasks of one attempt: channels first, then each subtask from its last stage to its head.
//!
//! Channels and mailboxes are made once, for all slots; each subtask is built on its slot's thread from its own share of them
//! ([`SubtaskWiring`]) and a clone of the graph.
//!
//! Owns: the wiring of channels (channel *c* of a gate: edges in order, sending subtasks in order). Does not own: running.
//! Runs on: [`wire`] where the attempt is made, [`build_subtask`] on the slot's thread.

use std::collections::HashMap;
use std::sync::Arc;

use tidegate_state::CheckpointStorage;

use super::edge::{Erased, ErasedSend};
use super::node::{BuildContext, JobIdentity};
use super::{Edge, JobGraph, NodeId};
use crate::api::{ClaimWatch, ConnectorContext};
use crate::clock::SharedClock;
use crate::error::EngineError;
use crate::ids::SubtaskId;
use crate::io::{NamedIo, Presence, SharedIo, Waker};
use crate::operator::StageLimits;
use crate::taskworker::mail::{Mail, TaskReport};
use crate::taskworker::restore::Restored;
use crate::taskworker::subtask::{MAIL_CAPACITY, Subtask, SubtaskSetup};
use crate::taskworker::subtask_checkpointer::CheckpointerSetup;

/// What all subtasks of an attempt are built with.
#[derive(Clone)]
pub struct InstantiateSetup {
    /// Who the attempt is.
    pub identity: Arc<JobIdentity>,
    /// Time.
    pub clock: SharedClock,
    /// The attempt's I/O.
    pub io: SharedIo,
    /// Who is on its threads.
    pub presence: Arc<Presence>,
    /// Batch limits.
    pub limits: StageLimits,
    /// Batches in flight per channel.
    pub channel_credits: u32,
    /// Transactions a sink may hold.
    pub places: usize,
    /// A checkpoint that takes longer is given up.
    pub checkpoint_timeout: std::time::Duration,
    /// Whether the job is still the attempt's.
    pub claim: ClaimWatch,
    /// Where state goes.
    pub storage: Option<CheckpointStorage>,
    /// What to restore from.
    pub restored: Arc<Restored>,
    /// To the job manager.
    pub reports: crossbeam_channel::Sender<TaskReport>,
    /// Wakes the job manager after a report.
    pub master: Waker,
}

/// One subtask's ends of channels and mailbox.
pub struct SubtaskWiring {
    /// Who it is.
    pub id: SubtaskId,
    /// Wakes its slot.
    pub waker: Waker,
    inbox: Option<ErasedSend>,
    /// By edge.
    senders: HashMap<usize, Vec<ErasedSend>>,
    mail: crossbeam_channel::Receiver<Mail>,
}

/// The way to send mail to each subtask.
pub type Mailboxes = HashMap<SubtaskId, (crossbeam_channel::Sender<Mail>, Waker)>;

/// Whether a channel leads from sending subtask `from` to receiving subtask `to`.
fn connects(graph: &JobGraph, edge: &Edge, from: u32, to: u32) -> bool {
    !one_to_one(graph, edge) || from == to
}

fn one_to_one(graph: &JobGraph, edge: &Edge) -> bool {
    edge.spread.is_forward() && graph.parallelism_of(edge.from) == graph.parallelism_of(edge.to)
}

/// Makes every channel and mailbox. `waker` wakes the thread of a subtask.
pub fn wire(
    graph: &JobGraph,
    credits: u32,
    waker: impl Fn(SubtaskId) -> Waker,
) -> (Vec<SubtaskWiring>, Mailboxes) {
    let (mut wirings, mut mailboxes) = (Vec::new(), Mailboxes::new());
    for vertex in &graph.vertices {
        for index in 0..vertex.parallelism {
            let id = SubtaskId { vertex: vertex.id, index };
            let (mail_tx, mail) = crossbeam_channel::bounded(MAIL_CAPACITY);
            mailboxes.insert(id, (mail_tx, waker(id)));
            let waker = waker(id);
            wirings.push(SubtaskWiring { id, waker, inbox: None, senders: HashMap::new(), mail });
        }
    }
    let position: HashMap<SubtaskId, usize> = wirings.iter().enumerate().map(|(at, w)| (w.id, at)).collect();
    for vertex in &graph.vertices {
        let head = vertex.nodes[0];
        let inputs: Vec<(usize, &Edge)> =
            graph.edges.iter().enumerate().filter(|(_, e)| e.to == head).collect();
        if inputs.is_empty() {
            continue;
        }
        for to in 0..vertex.parallelism {
            let ends = ends_of(graph, &inputs, to);
            let sending = ends.iter().map(|(edge, from)| waker(sending_subtask(graph, *edge, *from)));
            let sending: Vec<Waker> = sending.collect();
            let node = &graph.nodes[head.0].node;
            let id = SubtaskId { vertex: vertex.id, index: to };
            let (senders, inbox) = node.inbox(&sending, credits, &waker(id));
            wirings[position[&id]].inbox = Some(inbox);
            for ((edge, from), sender) in ends.into_iter().zip(senders) {
                let sending = &mut wirings[position[&sending_subtask(graph, edge, from)]];
                sending.senders.entry(edge).or_default().push(sender);
            }
        }
    }
    (wirings, mailboxes)
}

fn sending_subtask(graph: &JobGraph, edge: usize, index: u32) -> SubtaskId {
    SubtaskId { vertex: graph.vertex_of(graph.edges[edge].from).id, index }
}

/// The channels of receiving subtask `to`: (edge, sending subtask).
fn ends_of(graph: &JobGraph, inputs: &[(usize, &Edge)], to: u32) -> Vec<(usize, u32)> {
    let mut ends = Vec::new();
    for (at, edge) in inputs {
        let senders = (0..graph.parallelism_of(edge.from)).filter(|from| connects(graph, edge, *from, to));
        ends.extend(senders.map(|from| (*at, from)));
    }
    ends
}

/// Builds one subtask.
///
/// # Errors
/// State that does not fit, or a connector that cannot take it.
pub fn build_subtask(
    graph: &JobGraph,
    setup: &InstantiateSetup,
    mut wiring: SubtaskWiring,
) -> Result<Subtask, EngineError> {
    let id = wiring.id;
    let name = graph.plan().subtask_name(id);
    let io = NamedIo::shared(Arc::clone(&setup.io), Arc::clone(&setup.presence), name.as_str());
    let connector = ConnectorContext {
        clock: Arc::clone(&setup.clock),
        io: Arc::clone(&io),
        waker: Arc::clone(&wiring.waker),
        checkpoint_timeout: setup.checkpoint_timeout,
        claim: setup.claim.clone(),
    };
    let head = build_head(graph, setup, &mut wiring, connector)?;
    Ok(Subtask::new(SubtaskSetup {
        id,
        name,
        attempt: setup.identity.attempt,
        head,
        limits: setup.limits,
        mail: wiring.mail,
        reports: setup.reports.clone(),
        master: Arc::clone(&setup.master),
        clock: Arc::clone(&setup.clock),
        checkpointer: CheckpointerSetup {
            subtask: id.index,
            attempt: setup.identity.attempt,
            storage: setup.storage.clone(),
            io,
            waker: wiring.waker,
        },
    }))
}

fn build_head(
    graph: &JobGraph,
    setup: &InstantiateSetup,
    wiring: &mut SubtaskWiring,
    connector: ConnectorContext,
) -> Result<Box<dyn crate::taskworker::Head>, EngineError> {
    let (vertex, index) = (&graph.vertices[wiring.id.vertex.0 as usize], wiring.id.index);
    let cx = BuildContext {
        subtask: index,
        parallelism: vertex.parallelism,
        max_parallelism: graph.max_parallelism,
        connector,
        limits: setup.limits,
        restored: &setup.restored,
        identity: &setup.identity,
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
                let senders = wiring.senders.remove(&at).unwrap_or_default();
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
    let inbox = wiring.inbox.take().expect("a vertex with input has an inbox per subtask");
    Ok(graph.nodes[head.0].node.gate_head(inbox, stage))
}
