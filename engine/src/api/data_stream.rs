//! [`DataStream`]: a cloneable handle to nodes of the graph.
//!
//! Owns: the methods a job is written with. Does not own: operators. Runs on: `main`.

use std::marker::PhantomData;

use tidegate_state::StateType;

use super::build_stage::{Function, PlainSink, Stateless, TwoPhaseSinkStage};
use super::environment::{StreamEnvironment, info, stateless};
use super::keyed_stream::KeyedStream;
use super::sink::{Sink, TwoPhaseSink};
use crate::exchange::Partitioner;
use crate::graph::node::StageNode;
use crate::graph::{AnyNode, NodeId, NodeInfo};
use crate::ids::OperatorUid;
use crate::jobmanager::plan::OperatorKind;
use crate::operator::Operator;
use crate::operator::filter::Filter;
use crate::operator::flat_map::FlatMap;
use crate::operator::map::Map;
use crate::operator::pipe::{Pipe, Piped};
use crate::operator::process_function::ProcessFunction;
use crate::operator::watermarks::{AssignWatermarks, WatermarkStrategy};

/// A stream of records of type `T`. It can be named in signatures, stored, and used twice.
pub struct DataStream<T> {
    pub(crate) env: StreamEnvironment,
    pub(crate) nodes: Vec<NodeId>,
    record: PhantomData<fn() -> T>,
}

impl<T> Clone for DataStream<T> {
    fn clone(&self) -> Self {
        Self { env: self.env.clone(), nodes: self.nodes.clone(), record: PhantomData }
    }
}

impl<T> std::fmt::Debug for DataStream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataStream").field("nodes", &self.nodes).finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> DataStream<T> {
    pub(crate) fn of(env: &StreamEnvironment, node: NodeId) -> Self {
        Self { env: env.clone(), nodes: vec![node], record: PhantomData }
    }

    /// Adds a node behind this stream.
    pub(crate) fn then(&self, info: NodeInfo, node: Box<dyn AnyNode>, spread: &Partitioner<T>) -> NodeId {
        let to = self.env.add(info, node);
        for from in &self.nodes {
            self.env.connect(*from, to, Box::new(spread.clone()));
        }
        to
    }

    fn operator<Out, Op>(&self, name: &str, make: impl Fn() -> Op + Clone + Send + 'static) -> DataStream<Out>
    where
        Out: Clone + Send + 'static,
        Op: Operator<T, Out>,
    {
        let node = StageNode::<T, _>::new(Stateless::<Out, _>::new(make));
        DataStream::of(&self.env, self.then(stateless(name), Box::new(node), &Partitioner::Forward))
    }

    /// One record out for each record in.
    pub fn map<Out, F>(&self, function: F) -> DataStream<Out>
    where
        Out: Clone + Send + 'static,
        F: FnMut(T) -> Out + Clone + Send + 'static,
    {
        self.operator("map", move || Map(function.clone()))
    }

    /// Keeps the records for which the predicate holds.
    pub fn filter<F>(&self, predicate: F) -> DataStream<T>
    where
        F: FnMut(&T) -> bool + Clone + Send + 'static,
    {
        self.operator("filter", move || Filter(predicate.clone()))
    }

    /// Any number of records out for each record in. However many: they are taken one by one, as there is room.
    pub fn flat_map<Out, I, F>(&self, function: F) -> DataStream<Out>
    where
        Out: Clone + Send + 'static,
        I: IntoIterator<Item = Out> + 'static,
        F: FnMut(T) -> I + Clone + Send + 'static,
    {
        self.operator("flat_map", move || FlatMap::<F, I>::new(function.clone()))
    }

    /// Several small steps, composed at compile time into one operator: `stream.pipe(map(f).filter(g).map(h))`.
    pub fn pipe<P>(&self, pipe: P) -> DataStream<P::Out>
    where
        P: Pipe<T>,
        P::Out: Clone + Send + 'static,
    {
        self.operator("pipe", move || Piped(pipe.clone()))
    }

    /// Assigns event times and makes watermarks. Place it right behind the source.
    pub fn watermarks(&self, strategy: WatermarkStrategy<T>) -> DataStream<T> {
        let strategy = Shared(strategy);
        self.operator("watermarks", move || AssignWatermarks::new(strategy.0.clone()))
    }

    /// Both streams as one. Order is kept within each only.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut union = self.clone();
        union.nodes.extend(other.nodes.iter().filter(|n| !self.nodes.contains(n)));
        union
    }

    /// Spreads records evenly over the subtasks of the next operator.
    #[must_use]
    pub fn rebalance(&self) -> Self {
        let node = StageNode::<T, _>::new(Stateless::<T, _>::new(|| crate::operator::map::Identity));
        let info = stateless("rebalance");
        DataStream::of(&self.env, self.then(info, Box::new(node), &Partitioner::Rebalance))
    }

    /// Records of one key meet in one subtask, with that key's state.
    pub fn key_by<K, KF>(&self, key_of: KF) -> KeyedStream<T, K, KF>
    where
        K: StateType + Eq,
        KF: Fn(&T) -> K + Clone + Send + Sync + 'static,
    {
        KeyedStream::new(self.clone(), key_of)
    }

    /// Runs a [`ProcessFunction`]: operator state, and a last word at the end of data.
    pub fn process_function<Out, F>(&self, uid: &str, function: F) -> DataStream<Out>
    where
        Out: Clone + Send + 'static,
        F: ProcessFunction<T, Out>,
    {
        let info = NodeInfo { has_on_end: F::HAS_ON_END, ..info(uid, OperatorKind::Function) };
        let build = Function::<Out, F> { uid: OperatorUid::from(uid), function, out: PhantomData };
        let node = StageNode::<T, _>::new(build);
        DataStream::of(&self.env, self.then(info, Box::new(node), &Partitioner::Forward))
    }

    /// Ends the stream in a sink. Its uid is the identity of its pending transactions.
    pub fn sink<M>(&self, uid: &str, sink: impl IntoSinkNode<T, M>) -> SinkHandle {
        let (info, node) = sink.into_node(uid);
        let node = self.then(info, node, &Partitioner::Forward);
        SinkHandle { env: self.env.clone(), node }
    }

    /// Names the last operator for people; its identity is its uid.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.nodes.iter().for_each(|n| self.env.change(*n, |info| info.name = name.to_owned()));
        self
    }

    /// Gives the last operator a stable identity.
    #[must_use]
    pub fn uid(self, uid: &str) -> Self {
        self.nodes.iter().for_each(|n| self.env.change(*n, |info| info.uid = Some(OperatorUid::from(uid))));
        self
    }

    /// Says that the last operator's function may block (a call over the network, a sleep): its subtasks then have threads of their
    /// own, and hold nobody up but those behind them.
    #[must_use]
    pub fn blocking(self) -> Self {
        self.nodes.iter().for_each(|n| self.env.change(*n, |info| info.blocking = true));
        self
    }

    /// Gives the last operator its own number of subtasks.
    #[must_use]
    pub fn parallelism(self, subtasks: u32) -> Self {
        self.nodes.iter().for_each(|n| self.env.change(*n, |info| info.parallelism = Some(subtasks)));
        self
    }
}

/// A strategy whose closure is `Send + Sync` although its record type need not be `Sync`.
struct Shared<T>(WatermarkStrategy<T>);

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// The end of a stream.
#[derive(Clone, Debug)]
pub struct SinkHandle {
    pub(super) env: StreamEnvironment,
    pub(super) node: NodeId,
}

impl SinkHandle {
    /// Names the sink for people.
    #[must_use]
    pub fn name(self, name: &str) -> Self {
        self.env.change(self.node, |info| info.name = name.to_owned());
        self
    }

    /// Gives the sink its own number of subtasks.
    #[must_use]
    pub fn parallelism(self, subtasks: u32) -> Self {
        self.env.change(self.node, |info| info.parallelism = Some(subtasks));
        self
    }
}

/// Anything that ends a stream: a [`Sink`] or a [`TwoPhaseSink`]; `M` tells the compiler which, and is never written.
pub trait IntoSinkNode<T, M> {
    /// The node.
    fn into_node(self, uid: &str) -> (NodeInfo, Box<dyn AnyNode>);
}

/// Marks sinks in one phase.
#[derive(Debug)]
pub enum OnePhase {}
/// Marks sinks in two phases.
#[derive(Debug)]
pub enum TwoPhases {}

impl<S: Sink> IntoSinkNode<S::Record, OnePhase> for S {
    fn into_node(self, uid: &str) -> (NodeInfo, Box<dyn AnyNode>) {
        let build = PlainSink { uid: OperatorUid::from(uid), sink: self };
        (info(uid, OperatorKind::Sink), Box::new(StageNode::<S::Record, _>::new(build)))
    }
}

impl<S: TwoPhaseSink> IntoSinkNode<S::Record, TwoPhases> for S {
    fn into_node(self, uid: &str) -> (NodeInfo, Box<dyn AnyNode>) {
        let (holds_locks, merges_by_key) = (self.holds_locks(), self.merges_by_key());
        let build = TwoPhaseSinkStage { uid: OperatorUid::from(uid), sink: self };
        let info = NodeInfo { holds_locks, merges_by_key, ..info(uid, OperatorKind::TwoPhaseSink) };
        (info, Box::new(StageNode::<S::Record, _>::new(build)))
    }
}
