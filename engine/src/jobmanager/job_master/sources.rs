//! The enumerators of a job's sources.
//!
//! Owns: when each looks for splits, and that "no more splits" is said once. Does not own: running a discovery, the mail.
//! Runs on: the job manager. Pure but for starting a discovery's future.

use std::sync::Arc;

use super::super::attempt_end::AttemptFailure;
use super::{JobMaster, MasterAction, Phase};
use crate::api::source::{AnyEnumerator, AnyFound, ConnectorError};
use crate::checkpoint::manifest::Manifest;
use crate::clock::Moment;
use crate::ids::{OperatorUid, SubtaskId, VertexId};
use crate::io::{BoxFuture, SharedIo};
use crate::jobmanager::plan::{JobPlan, OperatorKind};
use crate::taskworker::mail::MailBody;

pub(super) struct Sources {
    sources: Vec<SourceEnumerator>,
    restored: Option<Arc<Manifest>>,
}

struct SourceEnumerator {
    vertex: VertexId,
    uid: Option<OperatorUid>,
    name: String,
    parallelism: u32,
    enumerator: Box<dyn AnyEnumerator>,
    discovery: Discovery,
    no_more_said: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Discovery {
    Due(Moment),
    Running,
    Over,
}

/// Something to do for a source.
pub(super) enum SourceAction {
    Discover(VertexId),
    Post(SubtaskId, MailBody),
}

type SourceResult = Result<Vec<SourceAction>, AttemptFailure>;

impl Sources {
    pub(super) fn new(
        plan: &JobPlan,
        enumerators: Vec<(VertexId, Box<dyn AnyEnumerator>)>,
        restored: Option<Arc<Manifest>>,
    ) -> Self {
        let source = |(vertex, enumerator)| {
            let at = plan.vertex(vertex);
            let operator =
                at.and_then(|v| v.operators.iter().find(|o| matches!(o.kind, OperatorKind::Source)));
            SourceEnumerator {
                vertex,
                uid: operator.and_then(|o| o.uid.clone()),
                name: operator.map_or_else(|| vertex.to_string(), |o| o.name.clone()),
                parallelism: at.map_or(0, |v| v.parallelism),
                enumerator,
                discovery: Discovery::Due(Moment::ZERO),
                no_more_said: false,
            }
        };
        Self { sources: enumerators.into_iter().map(source).collect(), restored }
    }

    /// Gives restored state to the enumerators, and begins to look.
    pub(super) fn restore(&mut self) -> SourceResult {
        let restored = self.restored.take();
        let state_of = |uid: &OperatorUid| restored.as_ref()?.operator(uid)?.enumerator.as_deref();
        for source in &mut self.sources {
            if let Some(state) = source.uid.as_ref().and_then(state_of) {
                let done = source.enumerator.restore(state, source.parallelism);
                done.map_err(|e| source.failed(e))?;
            }
        }
        Ok(Vec::new())
    }

    /// Snapshots of all of them.
    pub(super) fn snapshot(&self) -> Vec<(OperatorUid, Vec<u8>)> {
        self.sources.iter().filter_map(|s| Some((s.uid.clone()?, s.enumerator.snapshot()))).collect()
    }

    /// Whose time has come.
    pub(super) fn due(&mut self, now: Moment) -> Vec<SourceAction> {
        let mut actions = Vec::new();
        for source in &mut self.sources {
            source.say_no_more(&mut actions);
            if matches!(source.discovery, Discovery::Due(at) if now >= at) {
                source.discovery = Discovery::Running;
                actions.push(SourceAction::Discover(source.vertex));
            }
        }
        actions
    }

    pub(super) fn next_due(&self) -> Option<Moment> {
        let due = |s: &SourceEnumerator| match s.discovery {
            Discovery::Due(at) => Some(at),
            // A discovery that found nothing to look for may have left the enumerator complete.
            Discovery::Over if !s.no_more_said && s.enumerator.is_complete() => Some(Moment::ZERO),
            Discovery::Over | Discovery::Running => None,
        };
        self.sources.iter().filter_map(due).min()
    }

    pub(super) fn discover(
        &mut self,
        now: Moment,
        vertex: VertexId,
        io: &SharedIo,
    ) -> Option<BoxFuture<Result<AnyFound, ConnectorError>>> {
        let source = self.sources.iter_mut().find(|s| s.vertex == vertex)?;
        let future = source.enumerator.discover(io);
        if future.is_none() {
            source.rest(now);
        }
        future
    }

    fn found(
        &mut self,
        now: Moment,
        vertex: VertexId,
        found: Result<AnyFound, ConnectorError>,
    ) -> SourceResult {
        let mut actions = Vec::new();
        if let Some(source) = self.sources.iter_mut().find(|s| s.vertex == vertex) {
            let assignments = found.and_then(|found| source.enumerator.on_found(found));
            for (index, splits) in assignments.map_err(|e| source.failed(e))? {
                actions
                    .push(SourceAction::Post(SubtaskId { vertex, index }, MailBody::AssignSplits { splits }));
            }
            source.rest(now);
            source.say_no_more(&mut actions);
        }
        Ok(actions)
    }
}

impl SourceEnumerator {
    fn rest(&mut self, now: Moment) {
        self.discovery = match self.enumerator.interval() {
            Some(interval) if !self.enumerator.is_complete() => Discovery::Due(now + interval),
            _ => Discovery::Over,
        };
    }

    fn say_no_more(&mut self, actions: &mut Vec<SourceAction>) {
        if self.no_more_said || !self.enumerator.is_complete() {
            return;
        }
        self.no_more_said = true;
        self.discovery = Discovery::Over;
        let vertex = self.vertex;
        let post = |index| SourceAction::Post(SubtaskId { vertex, index }, MailBody::NoMoreSplits);
        actions.extend((0..self.parallelism).map(post));
    }

    fn failed(&self, source: ConnectorError) -> AttemptFailure {
        AttemptFailure::Enumerator { source_name: self.name.clone(), source }
    }
}

impl JobMaster {
    pub(super) fn found(&mut self, vertex: VertexId, result: Result<AnyFound, ConnectorError>) {
        if matches!(self.phase, Phase::Running) && !self.cancel_wanted {
            let actions = self.sources.found(self.now, vertex, result);
            self.act_on_sources(actions);
        }
    }

    pub(super) fn act_on_sources(&mut self, actions: SourceResult) {
        match actions {
            Ok(actions) => {
                for action in actions {
                    match action {
                        SourceAction::Discover(vertex) => {
                            self.actions.push(MasterAction::Discover { vertex })
                        }
                        SourceAction::Post(to, body) => self.postbox.post(to, body),
                    }
                }
            }
            Err(failure) => self.fail(failure),
        }
    }
}
