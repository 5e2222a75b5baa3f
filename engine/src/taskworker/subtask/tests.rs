//! The order of a step: mail and barriers are read while the chain is blocked; numbered mail keeps its order.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::clock::ManualClock;
use crate::element::{AlignmentMode, CheckpointKind};
use crate::io::NoWake;
use crate::operator::{AnyStage, StageStatus};

/// What the job manager's mail and the input did to a subtask.
#[derive(Debug, Default)]
struct Log {
    controls: Vec<StageControl>,
    snapshots: Vec<u64>,
    taken: u32,
    blocked: bool,
    source_mail: Vec<&'static str>,
    barriers: Vec<CheckpointBarrier>,
    panics: bool,
    /// What each call of the chain takes.
    takes: Duration,
    /// The snapshot's part comes later; in the next poll, once it is told so.
    late: bool,
    late_parts: Vec<(CheckpointId, OperatorPart)>,
}

fn part(comes_later: bool) -> OperatorPart {
    let uid = crate::ids::OperatorUid::from("sink");
    OperatorPart { uid, keyed: None, lists: Vec::new(), ended: false, comes_later }
}

struct TestHead {
    log: Rc<RefCell<Log>>,
    chain: TestChain,
}

struct TestChain(Rc<RefCell<Log>>, Arc<ManualClock>);

impl AnyStage for TestChain {
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        cx.operator = Arc::from("test operator");
        self.1.advance(self.0.borrow().takes);
        assert!(!self.0.borrow().panics, "user code went wrong");
        Ok(if self.0.borrow().blocked { Flow::Blocked } else { Flow::Idle })
    }

    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        parts: &mut Vec<OperatorPart>,
        _cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        let mut log = self.0.borrow_mut();
        log.snapshots.push(barrier.id.0);
        self.1.advance(log.takes);
        parts.extend(log.late.then(|| part(true)));
        Ok(())
    }

    fn control(&mut self, control: StageControl, _cx: &mut StageContext) -> Result<(), TaskFailure> {
        self.0.borrow_mut().controls.push(control);
        Ok(())
    }

    fn poll(&mut self, cx: &mut StageContext) -> Result<bool, TaskFailure> {
        cx.late_parts.append(&mut self.0.borrow_mut().late_parts);
        Ok(false)
    }

    fn status(&self) -> StageStatus {
        StageStatus::SETTLED
    }
}

impl Head for TestHead {
    fn chain(&mut self) -> &mut dyn AnyStage {
        &mut self.chain
    }

    fn note(&mut self) -> bool {
        false
    }

    fn awaits_barrier(&self) -> bool {
        !self.log.borrow().barriers.is_empty()
    }

    fn take_barrier(&mut self) -> Option<CheckpointBarrier> {
        self.log.borrow_mut().barriers.pop()
    }

    fn take_declined(&mut self) -> Vec<CheckpointId> {
        Vec::new()
    }

    fn take_input(&mut self, _cx: &mut StageContext) -> Result<Taken, TaskFailure> {
        self.log.borrow_mut().taken += 1;
        Ok(Taken::Nothing)
    }

    fn freeze(&mut self, _barrier: &CheckpointBarrier, _cx: &mut StageContext) -> Option<OperatorPart> {
        None
    }

    fn source_mail(&mut self, mail: MailBody) -> Result<(), TaskFailure> {
        let word = match mail {
            MailBody::Trigger(_) => "trigger",
            MailBody::AssignSplits { .. } => "splits",
            _ => "other",
        };
        self.log.borrow_mut().source_mail.push(word);
        Ok(())
    }

    fn is_source(&self) -> bool {
        true
    }

    fn is_closed(&self) -> bool {
        true
    }

    fn notify_complete(&mut self, _id: CheckpointId) {}

    fn records_in(&self) -> u64 {
        0
    }
}

struct Bench {
    log: Rc<RefCell<Log>>,
    subtask: Subtask,
    mail: Sender<Mail>,
    reports: Receiver<TaskReport>,
    _runtime: tokio::runtime::Runtime,
}

const ATTEMPT: AttemptId = AttemptId(5);

fn bench() -> Bench {
    let log: Rc<RefCell<Log>> = Rc::default();
    let (mail_tx, mail) = crossbeam_channel::bounded(16);
    let (reports_tx, reports) = crossbeam_channel::bounded(64);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let io = crate::io::TokioIo::shared(runtime.handle().clone());
    let clock = ManualClock::shared();
    let chain = TestChain(Rc::clone(&log), Arc::clone(&clock));
    let head = TestHead { log: Rc::clone(&log), chain };
    let subtask = Subtask::new(SubtaskSetup {
        id: SubtaskId { vertex: crate::ids::VertexId(0), index: 0 },
        name: "test[0]".into(),
        attempt: ATTEMPT,
        head: Box::new(head),
        limits: StageLimits { batch_records: 8, batch_age: Duration::ZERO },
        mail,
        reports: reports_tx,
        master: Arc::new(NoWake),
        clock,
        checkpointer: CheckpointerSetup {
            subtask: 0,
            attempt: ATTEMPT,
            storage: None,
            io,
            waker: Arc::new(NoWake),
        },
    });
    Bench { log, subtask, mail: mail_tx, reports, _runtime: runtime }
}

impl Bench {
    fn send(&self, attempt: AttemptId, seq: Option<u64>, body: MailBody) {
        self.mail.send(Mail { attempt, seq, body }).unwrap();
    }

    fn reports(&self) -> Vec<TaskEvent> {
        self.reports.try_iter().map(|r| r.event).collect()
    }
}

fn barrier(id: u64, newest_completed: u64) -> CheckpointBarrier {
    CheckpointBarrier {
        id: CheckpointId(id),
        kind: CheckpointKind::Checkpoint,
        alignment: AlignmentMode::Aligned,
        newest_completed: CheckpointId(newest_completed),
        triggered_at_us: 0,
    }
}

#[test]
fn a_blocked_subtask_takes_no_input_and_no_snapshot_but_reads_its_mail() {
    let mut bench = bench();
    bench.subtask.step();
    let before = bench.log.borrow().taken;
    bench.log.borrow_mut().blocked = true;
    bench.log.borrow_mut().barriers.push(barrier(2, 0));
    bench.send(ATTEMPT, None, MailBody::NotifyComplete { id: CheckpointId(1) });
    bench.subtask.step();
    {
        let log = bench.log.borrow();
        assert_eq!(log.controls, [StageControl::NotifyComplete(CheckpointId(1))]);
        assert_eq!((log.taken, log.snapshots.len()), (before, 0));
    }
    bench.log.borrow_mut().blocked = false;
    bench.subtask.step();
    assert_eq!(bench.log.borrow().snapshots, [2]);
}

#[test]
fn a_lost_completion_is_learnt_from_the_next_barrier() {
    let mut bench = bench();
    bench.subtask.step();
    bench.log.borrow_mut().barriers.push(barrier(3, 2));
    bench.subtask.step();
    assert_eq!(bench.log.borrow().controls, [StageControl::NotifyComplete(CheckpointId(2))]);
}

#[test]
fn mail_of_another_attempt_is_refused() {
    let mut bench = bench();
    bench.send(AttemptId(4), None, MailBody::NotifyComplete { id: CheckpointId(1) });
    bench.send(AttemptId(4), Some(1), MailBody::NoMoreSplits);
    bench.subtask.step();
    assert!(bench.log.borrow().controls.is_empty() && bench.log.borrow().source_mail.is_empty());
}

#[test]
fn numbered_mail_is_handled_in_order_and_once() {
    let mut bench = bench();
    bench.send(ATTEMPT, Some(2), MailBody::AssignSplits { splits: Vec::new() });
    bench.send(ATTEMPT, Some(1), MailBody::Trigger(barrier(1, 0)));
    bench.send(ATTEMPT, Some(1), MailBody::Trigger(barrier(1, 0)));
    bench.send(ATTEMPT, Some(2), MailBody::AssignSplits { splits: Vec::new() });
    bench.subtask.step();
    assert_eq!(bench.log.borrow().source_mail, ["trigger", "splits"]);
    let acked: Vec<u64> = bench
        .reports()
        .into_iter()
        .filter_map(|e| if let TaskEvent::MailAcked { seq } = e { Some(seq) } else { None })
        .collect();
    assert_eq!(acked, [0, 1, 1, 2]);
}

#[test]
fn a_panic_of_user_code_is_caught_and_named() {
    let mut bench = bench();
    bench.subtask.step();
    bench.log.borrow_mut().panics = true;
    bench.subtask.step();
    let failed = bench
        .reports()
        .into_iter()
        .find_map(|e| if let TaskEvent::Failed(f) = e { Some(f.to_string()) } else { None });
    assert_eq!(failed.as_deref(), Some("operator \"test operator\": panicked: user code went wrong"));
    assert_eq!(bench.subtask.step(), Step::Finished);
}

#[test]
fn a_subtask_without_sinks_cancels_and_finishes_when_told() {
    let mut bench = bench();
    bench.subtask.step();
    bench.send(ATTEMPT, None, MailBody::Cancel { newest_completed: CheckpointId(0) });
    bench.subtask.step();
    assert!(bench.reports().iter().any(|e| matches!(e, TaskEvent::Canceled)));
}

fn longest_step_ms(bench: &Bench) -> Option<u64> {
    let acked =
        |e| if let TaskEvent::Acknowledge(ack) = e { Some(ack.stats.longest_step_us / 1_000) } else { None };
    bench.reports().into_iter().find_map(acked)
}

#[test]
fn the_longest_step_counts_from_the_snapshot_to_the_acknowledgement() {
    let mut bench = bench();
    let takes = |bench: &Bench, ms| bench.log.borrow_mut().takes = Duration::from_millis(ms);
    takes(&bench, 50);
    bench.subtask.step();
    takes(&bench, 2);
    bench.log.borrow_mut().barriers.push(barrier(1, 0));
    bench.subtask.step();
    assert_eq!(
        longest_step_ms(&bench),
        Some(4),
        "acknowledged in the step of the snapshot: it resumes, then freezes"
    );

    bench.log.borrow_mut().late = true;
    bench.log.borrow_mut().barriers.push(barrier(2, 1));
    bench.subtask.step();
    takes(&bench, 9);
    bench.subtask.step();
    takes(&bench, 1);
    assert_eq!(longest_step_ms(&bench), None);
    bench.log.borrow_mut().late_parts.push((CheckpointId(2), part(false)));
    bench.subtask.step();
    takes(&bench, 70);
    bench.subtask.step();
    let longest = longest_step_ms(&bench).unwrap();
    assert!((9..=18).contains(&longest), "{longest} ms");
}
