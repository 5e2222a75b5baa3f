//! [`KeyedStream`]: records of one key meet in one subtask.
//!
//! Owns: keyed operators of the API. Does not own: tables. Runs on: `main`.

use std::marker::PhantomData;
use std::sync::Arc;

use tidegate_state::{StateDeclaration, StateType};

use super::build_stage::Keyed;
use super::data_stream::{DataStream, IntoSinkNode, SinkHandle};
use super::environment::info;
use crate::error::JobError;
use crate::exchange::Partitioner;
use crate::exchange::partitioner::KeyHasher;
use crate::graph::NodeInfo;
use crate::graph::node::StageNode;
use crate::ids::OperatorUid;
use crate::jobmanager::plan::OperatorKind;
use crate::operator::Output;
use crate::operator::keyed_process::{FromClosure, KeyedContext, KeyedFunction};

/// A stream partitioned by key.
pub struct KeyedStream<T, K, KF> {
    stream: DataStream<T>,
    key_of: KF,
    key: PhantomData<fn() -> K>,
}

impl<T, K, KF> std::fmt::Debug for KeyedStream<T, K, KF> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeyedStream").field("stream", &self.stream).finish_non_exhaustive()
    }
}

struct HashBy<K, KF> {
    name: Arc<str>,
    key_of: KF,
    key: PhantomData<fn() -> K>,
}

impl<T, K: StateType, KF: Fn(&T) -> K + Send + Sync> KeyHasher<T> for HashBy<K, KF> {
    fn name(&self) -> &Arc<str> {
        &self.name
    }

    fn hash_batch(&self, batch: &[T], hashes: &mut Vec<u64>) {
        hashes.extend(batch.iter().map(|record| (self.key_of)(record).key_hash()));
    }
}

impl<T, K, KF> KeyedStream<T, K, KF>
where
    T: Clone + Send + 'static,
    K: StateType + Eq,
    KF: Fn(&T) -> K + Clone + Send + Sync + 'static,
{
    pub(crate) fn new(stream: DataStream<T>, key_of: KF) -> Self {
        Self { stream, key_of, key: PhantomData }
    }

    /// Ends the stream in a sink: records of one key come to one subtask, in order. A table that is added to or overwritten by key
    /// wants its key in front of it. The uid is the identity of the sink's pending transactions.
    pub fn sink<M>(&self, uid: &str, sink: impl IntoSinkNode<T, M>) -> SinkHandle {
        let (info, node) = sink.into_node(uid);
        let node = self.stream.then(info, node, &self.by_hash(uid));
        SinkHandle { env: self.stream.env.clone(), node }
    }

    /// `to`: whose keys they are.
    fn by_hash(&self, to: &str) -> Partitioner<T> {
        let (name, key_of) = (format!("key_by in front of {to}").into(), self.key_of.clone());
        Partitioner::Hash { hasher: Arc::new(HashBy { name, key_of, key: PhantomData }) }
    }

    /// Runs a closure on each record, with the declared states of its key. Write its last parameter's type: `out: &mut Output<Total>`.
    pub fn process<S, Out, F>(&self, uid: &str, states: S, function: F) -> DataStream<Out>
    where
        S: StateDeclaration<K>,
        Out: Clone + Send + 'static,
        F: for<'a, 'b, 'c> FnMut(
                T,
                &'a mut S::Handles<'b>,
                &'a mut KeyedContext<'c, K>,
                &'a mut Output<Out>,
            ) -> Result<(), JobError>
            + Clone
            + Send
            + 'static,
    {
        self.process_with(uid, states, FromClosure(function))
    }

    /// Runs a [`KeyedFunction`]: records and event-time timers, with the declared states of their key.
    pub fn process_with<S, Out, F>(&self, uid: &str, states: S, function: F) -> DataStream<Out>
    where
        S: StateDeclaration<K>,
        Out: Clone + Send + 'static,
        F: KeyedFunction<K, T, S, Out>,
    {
        let info = NodeInfo { states: states.descriptors(), ..info(uid, OperatorKind::Keyed) };
        let build = Keyed::<K, Out, S, KF, F> {
            uid: OperatorUid::from(uid),
            states,
            key_of: self.key_of.clone(),
            function,
            types: PhantomData,
        };
        let node = self.stream.then(info, Box::new(StageNode::<T, _>::new(build)), &self.by_hash(uid));
        DataStream::of(&self.stream.env, node)
    }
}
