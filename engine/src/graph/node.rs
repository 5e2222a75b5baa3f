//! A node of the stream graph, with its types erased.
//!
//! Owns: the traits and the three kinds of node (source, operator, sink). Does not own: the graph. Runs on: recorded in `main`;
//! builds stages on the slot's thread.

use std::sync::Arc;

use tidegate_state::{KeyGroupRange, MaxParallelism, StateDescriptor, range_of};

use super::edge::{Erased, ErasedSend};
use crate::api::build_stage::PlainSink;
use crate::api::{
    AnyEnumerator, AskCommitted, ConnectorContext, ConnectorError, ErasedEnumerator, PreflightContext,
    PreflightResult, Source,
};
use crate::error::{EngineError, JobError};
use crate::exchange::{Inbox, InputGate};
use crate::ids::{AttemptId, JobName, Lineage, LogId, OperatorUid};
use crate::io::{BoxFuture, Waker};
use crate::jobmanager::plan::OperatorKind;
use crate::operator::{Downstream, Stage, StageLimits, TransactionName, TransactionScope};
use crate::sim::any_record::Erasing;
use crate::sim::simulated_ends::SimulatedEnds;
use crate::taskworker::Head;
use crate::taskworker::gate_head::GateHead;
use crate::taskworker::restore::{Restored, StateCheck};
use crate::taskworker::source_head::{SPLITS, SourceHead};
use crate::testkit::{CollectedSink, Script, ScriptedSource};

/// What is known of a node without its types.
#[derive(Clone, Debug)]
pub struct NodeInfo {
    /// Name for people.
    pub name: String,
    /// Stable identity.
    pub uid: Option<OperatorUid>,
    /// Kind of state.
    pub kind: OperatorKind,
    /// Declared keyed states.
    pub states: Vec<StateDescriptor>,
    /// Whether it emits at end of data.
    pub has_on_end: bool,
    /// For a sink: whether prepared transactions hold row locks.
    pub holds_locks: bool,
    /// For a sink: whether it merges rows by a key, so that rows of one key must come to one subtask.
    pub merges_by_key: bool,
    /// Whether its functions may block: then its subtasks have threads of their own.
    pub blocking: bool,
    /// Own parallelism, if it was set.
    pub parallelism: Option<u32>,
}

/// What a stage is built with.
pub struct BuildContext<'a> {
    /// Index of the subtask.
    pub subtask: u32,
    /// Number of subtasks.
    pub parallelism: u32,
    /// Number of key groups.
    pub max_parallelism: MaxParallelism,
    /// Clock, I/O, waker.
    pub connector: ConnectorContext,
    /// Batch limits.
    pub limits: StageLimits,
    /// What to restore from.
    pub restored: &'a Restored,
    /// For transaction names.
    pub identity: &'a JobIdentity,
    /// Transactions a sink may hold: max concurrent + tolerable failures + 2.
    pub places: usize,
}

/// Who this attempt is.
#[derive(Clone, Debug)]
pub struct JobIdentity {
    /// The job.
    pub job: JobName,
    /// Its commit log.
    pub log_id: LogId,
    /// The lineage.
    pub lineage: Lineage,
    /// The attempt.
    pub attempt: AttemptId,
}

impl BuildContext<'_> {
    /// The subtask's key groups.
    pub fn range(&self) -> KeyGroupRange {
        range_of(self.subtask, self.parallelism, self.max_parallelism)
    }

    /// Whether the subtask's operator `uid` had forwarded `EndOfData` in the restored checkpoint.
    pub fn ended(&self, uid: Option<&OperatorUid>) -> bool {
        uid.is_some_and(|uid| self.restored.ended(uid, self.subtask, self.parallelism))
    }

    /// The name template of a sink's transactions.
    pub fn transaction_name(&self, uid: &OperatorUid) -> TransactionName {
        let JobIdentity { job, log_id, lineage, attempt } = self.identity.clone();
        TransactionName {
            scope: TransactionScope { job, log_id, lineage, uid: uid.clone() },
            subtask: self.subtask,
            opened_after: self.restored.checkpoint,
            attempt,
        }
    }
}

/// A node; erased.
pub trait AnyNode: Send {
    /// A copy with pristine closures.
    fn clone_box(&self) -> Box<dyn AnyNode>;
    /// Refuses bad settings before anything runs.
    ///
    /// # Errors
    /// What is wrong and how to mend it.
    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(())
    }
    /// The look of its connector at the server; none for what is no connector.
    fn preflight(&self, _context: PreflightContext) -> Option<BoxFuture<PreflightResult>> {
        None
    }
    /// How a sink in two phases is asked for what it has committed.
    fn ask_committed(&self) -> Option<AskCommitted> {
        None
    }
    /// The enumerator, for a source.
    fn enumerator(&self, parallelism: u32) -> Option<Box<dyn AnyEnumerator>> {
        let _ = parallelism;
        None
    }
    /// Says whether stored states can be read as this operator declares them.
    fn state_check(&self) -> Option<StateCheck> {
        None
    }
    /// The same node with a script in its place, for a source or a sink under test (see [`crate::testkit`]).
    fn scripted(&self, uid: &OperatorUid) -> (Box<dyn AnyNode>, Script);
    /// The same node with a model in its place, for a source or a sink under simulation (see [`crate::sim::author_job`]).
    ///
    /// # Errors
    /// A source without input, or with one of another type.
    fn simulated(
        &self,
        uid: &OperatorUid,
        kind: OperatorKind,
        ends: &SimulatedEnds<'_>,
    ) -> Result<Box<dyn AnyNode>, JobError>;
    /// How many records a source has in all, if it knows.
    fn total_records(&self) -> Option<u64> {
        None
    }
    /// The head, for a source; `downstream` are erased `Box<dyn Stage<Out>>`s.
    ///
    /// # Errors
    /// State that does not fit.
    fn source_head(
        &self,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Option<Box<dyn Head>>, EngineError> {
        let _ = (cx, downstream);
        Ok(None)
    }
    /// The stage, for anything but a source: an erased `Box<dyn Stage<In>>`.
    ///
    /// # Errors
    /// State that does not fit.
    fn stage(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Erased, EngineError>;
    /// An erased `Inbox<In>` and its erased senders; `sending` wakes the slot at the other end of each channel.
    fn inbox(&self, sending: &[Waker], credits: u32, waker: &Waker) -> (Vec<ErasedSend>, ErasedSend);
    /// A head over that inbox.
    fn gate_head(&self, inbox: ErasedSend, stage: Erased) -> Box<dyn Head>;
}

/// Recovers the stages' type.
pub(crate) fn typed_downstream<T: Clone + 'static>(stages: Vec<Erased>) -> Downstream<T> {
    Downstream::new(
        stages
            .into_iter()
            .map(|s| *s.downcast::<Box<dyn Stage<T>>>().expect("both ends of an edge have one type"))
            .collect(),
    )
}

pub(crate) fn typed_inbox<T: Send + 'static>(
    sending: &[Waker],
    credits: u32,
    waker: &Waker,
) -> (Vec<ErasedSend>, ErasedSend) {
    let (senders, inbox) = Inbox::<T>::new(sending, credits, waker);
    (senders.into_iter().map(|s| Box::new(s) as ErasedSend).collect(), Box::new(inbox))
}

pub(crate) fn typed_gate_head<T: 'static>(inbox: ErasedSend, stage: Erased) -> Box<dyn Head> {
    let inbox = *inbox.downcast::<Inbox<T>>().expect("an inbox is opened by the node that made it");
    let stage = *stage.downcast::<Box<dyn Stage<T>>>().expect("a stage is placed behind its own inbox");
    Box::new(GateHead::new(InputGate::new(inbox), stage))
}

/// A node that takes `In`: `build` makes its stage.
pub struct StageNode<In, B> {
    build: B,
    types: std::marker::PhantomData<fn(In)>,
}

impl<In, B> StageNode<In, B> {
    /// A node built by `build`.
    pub fn new(build: B) -> Self {
        Self { build, types: std::marker::PhantomData }
    }
}

/// Makes the stage of a node.
pub trait BuildStage<In>: Clone + Send + 'static {
    /// Makes it.
    ///
    /// # Errors
    /// State that does not fit.
    fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<In>>, EngineError>;

    /// Refuses bad settings.
    ///
    /// # Errors
    /// What is wrong and how to mend it.
    fn validate(&self) -> Result<(), ConnectorError> {
        Ok(())
    }

    /// See [`AnyNode::preflight`].
    fn preflight(&self, _context: PreflightContext) -> Option<BoxFuture<PreflightResult>> {
        None
    }

    /// See [`AnyNode::ask_committed`].
    fn ask_committed(&self) -> Option<AskCommitted> {
        None
    }

    /// See [`AnyNode::state_check`].
    fn state_check(&self) -> Option<StateCheck> {
        None
    }
}

impl<In: Clone + Send + 'static, B: BuildStage<In>> AnyNode for StageNode<In, B> {
    fn clone_box(&self) -> Box<dyn AnyNode> {
        Box::new(Self { build: self.build.clone(), types: std::marker::PhantomData })
    }

    fn validate(&self) -> Result<(), ConnectorError> {
        self.build.validate()
    }

    fn preflight(&self, context: PreflightContext) -> Option<BoxFuture<PreflightResult>> {
        self.build.preflight(context)
    }

    fn ask_committed(&self) -> Option<AskCommitted> {
        self.build.ask_committed()
    }

    fn state_check(&self) -> Option<StateCheck> {
        self.build.state_check()
    }

    fn scripted(&self, uid: &OperatorUid) -> (Box<dyn AnyNode>, Script) {
        let sink = CollectedSink::<In>::default();
        let build = PlainSink { uid: uid.clone(), sink: sink.clone() };
        (Box::new(StageNode::<In, _>::new(build)), Script::sink(sink))
    }

    fn simulated(
        &self,
        uid: &OperatorUid,
        kind: OperatorKind,
        ends: &SimulatedEnds<'_>,
    ) -> Result<Box<dyn AnyNode>, JobError> {
        Ok(Box::new(StageNode::<In, _>::new(Erasing(ends.sink(uid, kind)))))
    }

    fn stage(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Erased, EngineError> {
        Ok(Box::new(self.build.build(info, cx, downstream)?))
    }

    fn inbox(&self, sending: &[Waker], credits: u32, waker: &Waker) -> (Vec<ErasedSend>, ErasedSend) {
        typed_inbox::<In>(sending, credits, waker)
    }

    fn gate_head(&self, inbox: ErasedSend, stage: Erased) -> Box<dyn Head> {
        typed_gate_head::<In>(inbox, stage)
    }
}

/// A source.
#[derive(Clone, Debug)]
pub struct SourceNode<S> {
    uid: OperatorUid,
    source: S,
}

impl<S> SourceNode<S> {
    /// A source with its uid.
    pub fn new(uid: OperatorUid, source: S) -> Self {
        Self { uid, source }
    }
}

impl<S: Source> AnyNode for SourceNode<S> {
    fn clone_box(&self) -> Box<dyn AnyNode> {
        Box::new(self.clone())
    }

    fn validate(&self) -> Result<(), ConnectorError> {
        self.source.validate()
    }

    fn preflight(&self, context: PreflightContext) -> Option<BoxFuture<PreflightResult>> {
        Some(Box::pin(self.source.preflight(context)))
    }

    fn enumerator(&self, parallelism: u32) -> Option<Box<dyn AnyEnumerator>> {
        Some(Box::new(ErasedEnumerator(self.source.enumerator(parallelism))))
    }

    fn scripted(&self, uid: &OperatorUid) -> (Box<dyn AnyNode>, Script) {
        let source = ScriptedSource::<S::Record>::default();
        (Box::new(SourceNode::new(uid.clone(), source.clone())), Script::source(source))
    }

    fn simulated(
        &self,
        uid: &OperatorUid,
        _kind: OperatorKind,
        ends: &SimulatedEnds<'_>,
    ) -> Result<Box<dyn AnyNode>, JobError> {
        Ok(Box::new(SourceNode::new(uid.clone(), ends.source::<S::Record>(uid)?)))
    }

    fn total_records(&self) -> Option<u64> {
        self.source.total_records()
    }

    fn source_head(
        &self,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Option<Box<dyn Head>>, EngineError> {
        use crate::api::SplitReader;
        let mut reader = self.source.reader(cx.connector.clone(), cx.subtask);
        let splits = cx.restored.list::<S::Split>(&self.uid, SPLITS, cx.subtask, cx.parallelism)?;
        if !splits.is_empty() {
            reader.add_splits(splits).map_err(|e| EngineError::of_connector(self.uid.as_str(), &e))?;
        }
        let name: Arc<str> = Arc::from(self.uid.as_str());
        let chain = Box::new(crate::operator::chained::Chained::new(
            Arc::clone(&name),
            crate::operator::map::Identity,
            typed_downstream::<S::Record>(downstream),
            cx.limits.batch_records,
            false,
        ));
        Ok(Some(Box::new(SourceHead::new(name, self.uid.clone(), reader, chain))))
    }

    fn stage(
        &self,
        info: &NodeInfo,
        _cx: &BuildContext<'_>,
        _downstream: Vec<Erased>,
    ) -> Result<Erased, EngineError> {
        unreachable!("the graph never builds a stage for source {}", info.name)
    }

    fn inbox(&self, sending: &[Waker], credits: u32, waker: &Waker) -> (Vec<ErasedSend>, ErasedSend) {
        typed_inbox::<S::Record>(sending, credits, waker)
    }

    fn gate_head(&self, inbox: ErasedSend, stage: Erased) -> Box<dyn Head> {
        typed_gate_head::<S::Record>(inbox, stage)
    }
}
