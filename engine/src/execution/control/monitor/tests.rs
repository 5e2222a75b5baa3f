//! The monitor with notices made by hand.
//!
//! Owns: the cases. Does not own: what it tests. Runs on: the test's thread.

use std::time::Duration;

use crossbeam_channel::{Receiver, bounded};

use super::*;
use crate::element::CheckpointKind;
use crate::ids::{AttemptId, EntryNumber};

fn stats(id: u64, outcome: CheckpointOutcome) -> CheckpointStats {
    CheckpointStats {
        id: CheckpointId(id),
        kind: CheckpointKind::Checkpoint,
        end_to_end: Duration::from_millis(5),
        size_bytes: 0,
        acknowledged: 0,
        asked: 0,
        slowest: None,
        subtasks: std::sync::Arc::default(),
        missing: Vec::new(),
        outcome,
    }
}

fn completed(id: u64) -> ExecutionNotice {
    let outcome = CheckpointOutcome::Complete { entry: EntryNumber(id) };
    ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats(id, outcome)))
}

fn failed(id: u64, reason: FailureReason) -> ExecutionNotice {
    ExecutionNotice::Master(MasterNotice::CheckpointFailed(stats(id, CheckpointOutcome::Failed(reason))))
}

fn started(monitor: &mut JobMonitor) {
    let (attempt, after) = (AttemptId(3), Duration::ZERO);
    monitor.notice(0, &ExecutionNotice::Started { attempt, restored: Some(CheckpointId(6)), after });
}

fn trigger(monitor: &mut JobMonitor, may: MayTrigger) -> Receiver<CheckpointAnswer> {
    let (reply, answer) = bounded(1);
    monitor.ask(Question::Trigger(reply), || may);
    answer
}

fn status(monitor: &mut JobMonitor) -> JobStatus {
    let (reply, answer) = bounded(1);
    monitor.ask(Question::Status(reply), || MayTrigger::Off);
    answer.try_recv().unwrap()
}

#[test]
fn a_request_is_answered_by_a_checkpoint_triggered_after_it() {
    let mut monitor = JobMonitor::default();
    started(&mut monitor);
    let answer = trigger(&mut monitor, MayTrigger::Next(CheckpointId(8)));
    monitor.notice(10, &completed(7));
    assert!(answer.try_recv().is_err(), "checkpoint 7 was in flight before");
    monitor.notice(20, &failed(8, FailureReason::Subsumed { by: CheckpointId(9) }));
    assert!(answer.try_recv().is_err(), "what makes it needless answers");
    monitor.notice(30, &completed(9));
    let CheckpointAnswer::Ended(record) = answer.try_recv().unwrap() else { panic!("no record") };
    assert_eq!((record.attempt, record.ended_at_ms, record.stats.id), (AttemptId(3), 30, CheckpointId(9)));
}

#[test]
fn a_request_hears_of_a_failed_checkpoint_attempt_and_job() {
    let mut monitor = JobMonitor::default();
    started(&mut monitor);
    let expired = FailureReason::Expired { missing: Vec::new() };
    let answer = trigger(&mut monitor, MayTrigger::Next(CheckpointId(8)));
    monitor.notice(0, &failed(8, expired.clone()));
    let CheckpointAnswer::Ended(record) = answer.try_recv().unwrap() else { panic!("no record") };
    assert_eq!(record.stats.outcome, CheckpointOutcome::Failed(expired));

    let answer = trigger(&mut monitor, MayTrigger::Next(CheckpointId(9)));
    let restarting = ExecutionNotice::Restarting { cause: "no disk".into(), after: Duration::ZERO };
    monitor.notice(0, &restarting);
    assert_eq!(answer.try_recv().unwrap(), CheckpointAnswer::AttemptFailed { cause: "no disk".into() });

    let answer = trigger(&mut monitor, MayTrigger::Next(CheckpointId(9)));
    monitor.over(&JobEnd::Finished);
    assert_eq!(answer.try_recv().unwrap(), CheckpointAnswer::JobEnded(JobEnd::Finished));
    assert_eq!(trigger(&mut monitor, MayTrigger::Off).try_recv().unwrap(), CheckpointAnswer::Off);
    let not_now = CheckpointAnswer::NotNow(JobPhase::Over);
    assert_eq!(trigger(&mut monitor, MayTrigger::NotNow).try_recv().unwrap(), not_now);
}

#[test]
fn the_history_is_bounded_and_the_counts_are_not() {
    let mut monitor = JobMonitor::default();
    started(&mut monitor);
    assert_eq!(status(&mut monitor).newest, Some(CheckpointId(6)), "the restored one");
    (7..107).for_each(|id| monitor.notice(0, &completed(id)));
    let (reply, answer) = bounded(1);
    monitor.ask(Question::Checkpoints(reply), || MayTrigger::Off);
    let records = answer.try_recv().unwrap();
    assert_eq!((records.len(), records[0].stats.id), (HISTORY_MAX, CheckpointId(106)));
    let status = status(&mut monitor);
    assert_eq!((status.completed, status.newest), (100, Some(CheckpointId(106))));
}

#[test]
fn a_canceled_job_stays_canceling_until_it_is_over_and_tells_everybody() {
    let mut monitor = JobMonitor::default();
    let (reply, end) = bounded(1);
    monitor.ask(Question::End(reply), || MayTrigger::Off);
    monitor.canceling();
    started(&mut monitor);
    assert_eq!(status(&mut monitor).phase, JobPhase::Canceling);
    monitor.over(&JobEnd::Canceled);
    assert_eq!(end.try_recv().unwrap(), JobEnd::Canceled);
}
