//! Makers of stages: what a node of the graph builds on its slot's thread, from clones of the author's closures.
//!
//! Owns: one maker per kind of operator. Does not own: operators. Runs on: the slot's thread.

use std::marker::PhantomData;
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_state::{StateDeclaration, StateType};

use super::preflight::{PreflightContext, PreflightResult};
use super::sink::{AskCommitted, Prepared, Sink, TwoPhaseContext, TwoPhaseSink};
use super::source::ConnectorError;
use crate::error::EngineError;
use crate::graph::edge::Erased;
use crate::graph::node::{BuildContext, BuildStage, NodeInfo, typed_downstream};
use crate::ids::OperatorUid;
use crate::io::BoxFuture;
use crate::operator::inline_sink::InlineSinkStage;
use crate::operator::keyed_process::{KeyedFunction, KeyedParts, KeyedProcess};
use crate::operator::plain_sink::PlainSinkStage;
use crate::operator::process_function::{FUNCTION_STATE, ProcessFunction, RunFunction};
use crate::operator::sink_io::ToRecover;
use crate::operator::sink_operator::{COMMITTABLES, SinkStage, StoredCommittable};
use crate::operator::{Chained, Operator, Stage};
use crate::taskworker::restore::StateCheck;

/// Makes a stateless operator from a function that clones the pristine closures.
pub struct Stateless<Out, M> {
    make: M,
    out: PhantomData<fn() -> Out>,
}

impl<Out, M: Clone> Clone for Stateless<Out, M> {
    fn clone(&self) -> Self {
        Self { make: self.make.clone(), out: PhantomData }
    }
}

impl<Out, M> Stateless<Out, M> {
    /// `make` gives a fresh operator.
    pub fn new(make: M) -> Self {
        Self { make, out: PhantomData }
    }
}

impl<In, Out, Op, M> BuildStage<In> for Stateless<Out, M>
where
    In: 'static,
    Out: Clone + 'static,
    Op: Operator<In, Out>,
    M: Fn() -> Op + Clone + Send + 'static,
{
    fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<In>>, EngineError> {
        let name = Arc::from(info.name.as_str());
        let next = typed_downstream::<Out>(downstream);
        let ended = cx.ended(info.uid.as_ref());
        Ok(Box::new(Chained::new(name, (self.make)(), next, cx.limits.batch_records, ended)))
    }
}

/// Makes a keyed operator.
pub struct Keyed<K, Out, S, KF, F> {
    pub(crate) uid: OperatorUid,
    pub(crate) states: S,
    pub(crate) key_of: KF,
    pub(crate) function: F,
    pub(crate) types: PhantomData<fn() -> (K, Out)>,
}

impl<K, Out, S: Clone, KF: Clone, F: Clone> Clone for Keyed<K, Out, S, KF, F> {
    fn clone(&self) -> Self {
        Self {
            uid: self.uid.clone(),
            states: self.states.clone(),
            key_of: self.key_of.clone(),
            function: self.function.clone(),
            types: PhantomData,
        }
    }
}

impl<In, K, Out, S, KF, F> BuildStage<In> for Keyed<K, Out, S, KF, F>
where
    In: 'static,
    Out: Clone + 'static,
    K: StateType + Eq,
    S: StateDeclaration<K>,
    KF: Fn(&In) -> K + Clone + Send + 'static,
    F: KeyedFunction<K, In, S, Out>,
{
    fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<In>>, EngineError> {
        let range = cx.range();
        let files = cx.restored.keyed_files(&self.uid, range)?;
        let parts = KeyedParts {
            uid: self.uid.clone(),
            states: self.states.clone(),
            key_of: self.key_of.clone(),
            function: self.function.clone(),
        };
        let op = KeyedProcess::<K, S, KF, F>::open(parts, range, cx.max_parallelism, &files)
            .map_err(|e| cx.restored.state_error(&self.uid, "keyed state", e))?;
        let next = typed_downstream::<Out>(downstream);
        let ended = cx.ended(info.uid.as_ref());
        Ok(Box::new(Chained::new(Arc::from(info.name.as_str()), op, next, cx.limits.batch_records, ended)))
    }

    fn state_check(&self) -> Option<StateCheck> {
        let (uid, states) = (self.uid.clone(), Mutex::new(self.states.clone()));
        Some(Box::new(move |stored| {
            let states = states.lock().unwrap_or_else(PoisonError::into_inner);
            states.check(uid.as_str(), stored)
        }))
    }
}

/// Makes the operator of a [`ProcessFunction`].
pub struct Function<Out, F> {
    pub(crate) uid: OperatorUid,
    pub(crate) function: F,
    pub(crate) out: PhantomData<fn() -> Out>,
}

impl<Out, F: Clone> Clone for Function<Out, F> {
    fn clone(&self) -> Self {
        Self { uid: self.uid.clone(), function: self.function.clone(), out: PhantomData }
    }
}

impl<In: 'static, Out: Clone + 'static, F: ProcessFunction<In, Out>> BuildStage<In> for Function<Out, F> {
    fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<In>>, EngineError> {
        let mut function = self.function.clone();
        let state = cx.restored.list::<F::State>(&self.uid, FUNCTION_STATE, cx.subtask, cx.parallelism)?;
        function.restore(state);
        let op = RunFunction::new(self.uid.clone(), function);
        let next = typed_downstream::<Out>(downstream);
        let ended = cx.ended(info.uid.as_ref());
        Ok(Box::new(Chained::new(Arc::from(info.name.as_str()), op, next, cx.limits.batch_records, ended)))
    }
}

/// Makes the stage of a two-phase sink.
#[derive(Clone, Debug)]
pub struct TwoPhaseSinkStage<S> {
    pub(crate) uid: OperatorUid,
    pub(crate) sink: S,
}

impl<S: TwoPhaseSink> BuildStage<S::Record> for TwoPhaseSinkStage<S> {
    fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        _downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<S::Record>>, EngineError> {
        let stored = cx.restored.list::<StoredCommittable<S::Committable>>(
            &self.uid,
            COMMITTABLES,
            cx.subtask,
            cx.parallelism,
        )?;
        // What an entry says is committed is not asked again: the server may have forgotten it since.
        let committed = cx.restored.committed_up_to(&self.uid);
        let listed = stored.into_iter().map(Prepared::<S::Committable>::from);
        let listed = listed.filter(|p| p.closed_by > committed).collect();
        let (forgotten, rewound_at) = (cx.restored.forgotten(&self.uid), cx.restored.rewound_at());
        let restored = ToRecover { listed, forgotten, rewound_at };
        let context = TwoPhaseContext {
            connector: cx.connector.clone(),
            subtask: cx.subtask,
            parallelism: cx.parallelism,
            places: cx.places,
            restored_attempt: cx.restored.attempt,
            name: cx.transaction_name(&self.uid),
        };
        let name = Arc::from(info.name.as_str());
        Ok(Box::new(SinkStage::start(name, self.sink.clone(), context, restored, cx.places)))
    }

    fn validate(&self) -> Result<(), ConnectorError> {
        self.sink.validate()
    }

    fn preflight(&self, context: PreflightContext) -> Option<BoxFuture<PreflightResult>> {
        Some(Box::pin(self.sink.preflight(context)))
    }

    fn ask_committed(&self) -> Option<AskCommitted> {
        let sink = Mutex::new(self.sink.clone());
        Some(Box::new(move |context, since| {
            let sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
            Box::pin(sink.newest_committed(context, since))
        }))
    }
}

/// Makes the stage of a sink without transactions.
#[derive(Clone, Debug)]
pub struct PlainSink<S> {
    pub(crate) uid: OperatorUid,
    pub(crate) sink: S,
}

impl<S: Sink> BuildStage<S::Record> for PlainSink<S> {
    fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        _downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<S::Record>>, EngineError> {
        let (name, uid) = (Arc::from(info.name.as_str()), self.uid.clone());
        let (mut sink, context) = (self.sink.clone(), cx.connector.clone());
        sink.placed(&cx.transaction_name(&self.uid), cx.parallelism);
        Ok(if S::NEVER_WAITS {
            Box::new(InlineSinkStage::new(name, uid, sink, context, cx.subtask))
        } else {
            Box::new(PlainSinkStage::start(name, uid, sink, context, cx.subtask))
        })
    }

    fn validate(&self) -> Result<(), ConnectorError> {
        self.sink.validate()
    }

    fn preflight(&self, context: PreflightContext) -> Option<BoxFuture<PreflightResult>> {
        Some(Box::pin(self.sink.preflight(context)))
    }
}
