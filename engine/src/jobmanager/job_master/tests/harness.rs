//! A job of a source with two subtasks and a two-phase sink with two subtasks, and a hand that plays everybody else.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::super::*;
use crate::api::source::{AnyEnumerator, AnyFound, ConnectorError};
use crate::checkpoint::commit_log::{EntryBody, LogEntry, Nonce, Settled};
use crate::checkpoint::manifest::Manifest;
use crate::ids::{EntryNumber, Lineage, OperatorUid};
use crate::jobmanager::plan::{OperatorKind, OperatorPlan, VertexPlan};
use crate::taskworker::mail::{SubtaskAck, TaskEvent, TaskReport};

pub(super) const ATTEMPT: AttemptId = AttemptId(5);
pub(super) const SOURCES: [SubtaskId; 2] = subtasks(0);
pub(super) const SINKS: [SubtaskId; 2] = subtasks(1);

const fn subtasks(vertex: u32) -> [SubtaskId; 2] {
    let vertex = VertexId(vertex);
    [SubtaskId { vertex, index: 0 }, SubtaskId { vertex, index: 1 }]
}

/// Finds the splits it is told of, one list for each subtask; complete when told so.
#[derive(Clone, Default)]
pub(super) struct TestEnumerator {
    pub(super) state: Arc<Mutex<EnumeratorState>>,
}

#[derive(Default)]
pub(super) struct EnumeratorState {
    pub(super) handed_out: u8,
    pub(super) complete: bool,
    pub(super) restored: Option<Vec<u8>>,
}

impl AnyEnumerator for TestEnumerator {
    fn restore(&mut self, state: &[u8], _parallelism: u32) -> Result<(), ConnectorError> {
        self.state.lock().unwrap().restored = Some(state.to_vec());
        Ok(())
    }

    fn discover(&mut self, _io: &SharedIo) -> Option<BoxFuture<Result<AnyFound, ConnectorError>>> {
        None
    }

    fn on_found(&mut self, found: AnyFound) -> Result<Vec<(u32, Vec<u8>)>, ConnectorError> {
        let splits = *found.downcast::<u8>().unwrap();
        self.state.lock().unwrap().handed_out += splits;
        Ok((0..splits).map(|n| (u32::from(n % 2), vec![n])).collect())
    }

    fn interval(&self) -> Option<Duration> {
        None
    }

    fn is_complete(&self) -> bool {
        self.state.lock().unwrap().complete
    }

    fn snapshot(&self) -> Vec<u8> {
        vec![self.state.lock().unwrap().handed_out]
    }
}

pub(super) fn plan() -> JobPlan {
    let operator = |uid: &str, kind| OperatorPlan {
        uid: Some(uid.into()),
        name: uid.into(),
        kind,
        states: Vec::new(),
        has_on_end: false,
    };
    let vertex = |id, uid, kind, is_source| VertexPlan {
        id: VertexId(id),
        name: uid,
        parallelism: 2,
        max_parallelism: 128,
        is_source,
        upstream: Vec::new(),
        operators: vec![operator(if is_source { "orders" } else { "sink" }, kind)],
    };
    let source = vertex(0, "orders".to_owned(), OperatorKind::Source, true);
    let sink = vertex(1, "sink".to_owned(), OperatorKind::TwoPhaseSink, false);
    JobPlan { job: "orders".into(), vertices: vec![source, sink] }
}

pub(super) struct Harness {
    pub(super) master: JobMaster,
    pub(super) enumerator: TestEnumerator,
    pub(super) now: Moment,
    /// What was done and not yet looked at.
    pub(super) done: Vec<MasterAction>,
}

impl Harness {
    /// An attempt 5 that restored nothing.
    pub(super) fn new(config: CheckpointConfig) -> Self {
        Self::with(config, |_| {})
    }

    pub(super) fn with(config: CheckpointConfig, change: impl FnOnce(&mut MasterSetup)) -> Self {
        let enumerator = TestEnumerator::default();
        let mut setup = MasterSetup {
            plan: Arc::new(plan()),
            config,
            attempt: ATTEMPT,
            lineage: Lineage(5),
            log_id: "feed".into(),
            nonce: Nonce(77),
            restored: None,
            committed: Vec::new(),
            next_checkpoint: CheckpointId(1),
            last_entry: EntryNumber(5),
            retained: Vec::new(),
            left_over: Vec::new(),
            enumerators: vec![(VertexId(0), Box::new(enumerator.clone()))],
            lock_holding_sinks: Vec::new(),
        };
        change(&mut setup);
        Self { master: JobMaster::new(setup), enumerator, now: Moment::ZERO, done: Vec::new() }
    }

    /// One that has started and recovered.
    pub(super) fn recovered(config: CheckpointConfig) -> Self {
        let mut h = Self::new(config);
        h.start_and_recover();
        h
    }

    pub(super) fn start_and_recover(&mut self) {
        self.tell(MasterEvent::Start);
        self.all_say(|| TaskEvent::Recovered);
        self.done.clear();
    }

    pub(super) fn tell(&mut self, event: MasterEvent) {
        let actions = self.master.handle(self.now, 1_000, event);
        self.done.extend(actions);
    }

    pub(super) fn say(&mut self, subtask: SubtaskId, event: TaskEvent) {
        self.tell(MasterEvent::Task(TaskReport { attempt: ATTEMPT, subtask, event }));
    }

    pub(super) fn all_say(&mut self, event: impl Fn() -> TaskEvent) {
        SOURCES.into_iter().chain(SINKS).for_each(|subtask| self.say(subtask, event()));
    }

    /// Lets time pass, timer by timer.
    pub(super) fn pass(&mut self, span: Duration) {
        let until = self.now + span;
        while let Some(due) = self.master.next_timer().filter(|due| *due <= until) {
            assert!(due > self.now || due == Moment::ZERO, "a timer at {due:?} would spin at {:?}", self.now);
            self.now = due.max(self.now);
            self.tell(MasterEvent::Tick);
        }
        self.now = until;
    }

    pub(super) fn ack(&mut self, subtask: SubtaskId, id: u64) {
        self.say(subtask, TaskEvent::Acknowledge(ack(id, false)));
    }

    /// Every subtask acknowledges the checkpoint; source subtasks have handled their mail then.
    pub(super) fn all_ack(&mut self, id: u64) {
        SOURCES.into_iter().for_each(|source| self.say(source, TaskEvent::MailAcked { seq: u64::MAX }));
        SOURCES.into_iter().chain(SINKS).for_each(|subtask| self.ack(subtask, id));
    }

    pub(super) fn committed(&mut self, subtask: SubtaskId, up_to: u64, swept: bool) {
        let up_to = CheckpointId(up_to);
        self.say(subtask, TaskEvent::Committed { uid: "sink".into(), up_to, prepared: 0, swept });
    }

    pub(super) fn settle(&mut self, number: u64, outcome: Settled) {
        self.tell(MasterEvent::EntrySettled { number: EntryNumber(number), outcome });
    }

    /// Triggers by request, acknowledges, settles; everything of it is forgotten.
    pub(super) fn complete(&mut self, id: u64, entry: u64) {
        self.tell(MasterEvent::Control(Control::TriggerCheckpoint));
        self.all_ack(id);
        self.settle(entry, Settled::Ours);
        SINKS.into_iter().for_each(|sink| self.committed(sink, id, false));
        assert_eq!(self.master.newest_completed(), CheckpointId(id));
        self.done.clear();
    }

    /// What was done since the last look.
    pub(super) fn take(&mut self) -> Vec<MasterAction> {
        std::mem::take(&mut self.done)
    }

    /// Mail since the last look that is of this kind, with its receivers.
    pub(super) fn mail<T>(&self, kind: impl Fn(&MailBody) -> Option<T>) -> Vec<(SubtaskId, T)> {
        let mail = self.done.iter().filter_map(|action| match action {
            MasterAction::Mail { to, mail } => Some((*to, kind(&mail.body)?)),
            _ => None,
        });
        mail.collect()
    }

    pub(super) fn triggers(&self) -> Vec<u64> {
        let ids = self.mail(|body| match body {
            MailBody::Trigger(barrier) => Some(barrier.id.0),
            _ => None,
        });
        ids.into_iter().map(|(_, id)| id).collect::<BTreeSet<_>>().into_iter().collect()
    }

    pub(super) fn notified(&self) -> Vec<(SubtaskId, u64)> {
        self.mail(|body| match body {
            MailBody::NotifyComplete { id } => Some(id.0),
            _ => None,
        })
    }

    pub(super) fn aborted(&self) -> BTreeSet<u64> {
        let ids = self.mail(|body| match body {
            MailBody::NotifyAbort { id } => Some(id.0),
            _ => None,
        });
        ids.into_iter().map(|(_, id)| id).collect()
    }

    pub(super) fn appended(&self) -> Vec<(u64, &LogEntry)> {
        let appends = self.done.iter().filter_map(|action| match action {
            MasterAction::Append { number, entry } => Some((number.0, entry)),
            _ => None,
        });
        appends.collect()
    }

    pub(super) fn manifest(&self) -> &Manifest {
        self.appended().last().unwrap().1.manifest().unwrap()
    }

    pub(super) fn committed_in_entry(&self) -> Vec<(OperatorUid, CheckpointId)> {
        match &self.appended().last().unwrap().1.body {
            EntryBody::Checkpoint { committed, .. } => committed.clone(),
            other => panic!("{other:?}"),
        }
    }

    pub(super) fn end(&self) -> Option<&AttemptEnd> {
        self.done.iter().find_map(|action| match action {
            MasterAction::End(end) => Some(end),
            _ => None,
        })
    }
}

pub(super) fn ack(id: u64, ended: bool) -> SubtaskAck {
    let (operators, records_written) = (Vec::new(), 0);
    SubtaskAck { id: CheckpointId(id), operators, ended, records_written, stats: Default::default() }
}

pub(super) fn config() -> CheckpointConfig {
    CheckpointConfig { interval_ms: 1_000, timeout_ms: 5_000, ..Default::default() }
}

pub(super) fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}
