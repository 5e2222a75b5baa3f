//! Trigger, acknowledge, entry, completion, and every way to give a checkpoint up.

use super::harness::*;
use crate::checkpoint::CheckpointConfig;
use crate::checkpoint::commit_log::{Nonce, Settled};
use crate::ids::{AttemptId, CheckpointId, EntryNumber, SubtaskId};
use crate::jobmanager::job_master::{Control, MasterAction, MasterEvent};
use crate::jobmanager::{AttemptEnd, AttemptFailure};
use crate::operator::{LostTransaction, TransactionName, TransactionScope};
use crate::taskworker::mail::{MailBody, TaskEvent, TaskFailure, TaskReport};

fn decline(h: &mut Harness, id: u64) {
    h.say(SINKS[0], TaskEvent::Decline { id: CheckpointId(id), reason: "not now".into() });
}

#[test]
fn nothing_is_triggered_before_every_subtask_has_recovered() {
    let mut h = Harness::new(config());
    h.tell(MasterEvent::Start);
    h.tell(MasterEvent::Control(Control::TriggerCheckpoint));
    [SOURCES[0], SOURCES[1], SINKS[0]].into_iter().for_each(|s| h.say(s, TaskEvent::Recovered));
    h.pass(ms(10_000));
    assert!(h.triggers().is_empty());
    h.say(SINKS[1], TaskEvent::Recovered);
    assert_eq!(h.triggers(), [1]);
}

#[test]
fn a_checkpoint_is_complete_when_its_entry_stands_and_not_before() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    assert_eq!(h.triggers(), [1]);
    h.all_ack(1);
    let (number, entry) = h.appended()[0];
    assert_eq!((number, entry.attempt), (6, ATTEMPT));
    assert_eq!(entry.nonce, Nonce(77).of_entry(EntryNumber(6)));
    assert_eq!((h.notified(), h.master.newest_completed()), (vec![], CheckpointId(0)));
    h.settle(6, Settled::Ours);
    assert_eq!(h.notified().len(), 4);
    assert_eq!(h.master.newest_completed(), CheckpointId(1));
}

#[cfg(feature = "mutations")]
#[test]
fn the_mutation_commit_before_completion_tells_it_too_early() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    crate::mutation::set(Some(crate::mutation::Mutation::CommitBeforeCompletion));
    h.all_ack(1);
    crate::mutation::set(None);
    assert_eq!(h.notified().len(), 4);
}

#[test]
fn every_entry_goes_at_own_last_plus_one_and_says_what_all_subtasks_of_a_sink_have_committed() {
    let mut h = Harness::recovered(config());
    h.complete(1, 6);
    h.complete(2, 7);
    h.tell(MasterEvent::Control(Control::TriggerCheckpoint));
    h.all_ack(3);
    h.settle(8, Settled::Ours);
    h.committed(SINKS[0], 3, false);
    h.take();
    h.tell(MasterEvent::Control(Control::TriggerCheckpoint));
    h.all_ack(4);
    assert_eq!(h.appended()[0].0, 9);
    assert_eq!(h.committed_in_entry(), [("sink".into(), CheckpointId(2))]);
}

#[test]
fn a_foreign_entry_ends_the_attempt_and_nothing_more_is_said() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.all_ack(1);
    h.take();
    h.settle(6, Settled::Fenced);
    assert!(matches!(h.take()[..], [MasterAction::End(AttemptEnd::Fenced { at: EntryNumber(6) })]));
    h.settle(6, Settled::Ours);
    h.pass(ms(60_000));
    assert!(h.take().is_empty() && h.master.next_timer().is_none());
}

#[test]
fn acknowledgements_of_an_older_attempt_and_doubled_ones_change_nothing() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    for subtask in SOURCES.into_iter().chain(SINKS) {
        let event = TaskEvent::Acknowledge(ack(1, false));
        h.tell(MasterEvent::Task(TaskReport { attempt: AttemptId(4), subtask, event }));
    }
    (0..5).for_each(|_| h.ack(SOURCES[0], 1));
    assert_eq!(h.appended().len(), 0);
    h.all_ack(1);
    assert_eq!(h.appended().len(), 1);
    h.all_ack(1);
    assert_eq!(h.appended().len(), 1);
}

#[test]
fn an_aborted_checkpoint_is_told_and_the_next_one_completes() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.ack(SOURCES[0], 1);
    decline(&mut h, 1);
    assert_eq!(h.aborted(), [1].into());
    h.all_ack(1); // too late
    assert_eq!(h.appended().len(), 0);
    h.pass(ms(1_000));
    assert_eq!(h.triggers(), [1, 2]);
    h.all_ack(2);
    h.settle(6, Settled::Ours);
    assert_eq!(h.master.newest_completed(), CheckpointId(2));
}

#[test]
fn field_case_25_an_abort_that_comes_before_its_barrier_leaves_later_checkpoints_whole() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    decline(&mut h, 1); // before any source subtask has taken the trigger out of its mail
    h.pass(ms(1_000));
    let numbered = h.mail(|_| Some(())).len();
    assert!(numbered >= 4, "trigger 1 stays in the sequence in front of trigger 2");
    h.ack(SOURCES[0], 1);
    h.all_ack(2);
    h.settle(6, Settled::Ours);
    assert_eq!(h.master.newest_completed(), CheckpointId(2));
    assert_eq!((h.master.history().completed(), h.master.history().failed()), (1, 1));
}

/// Every order of some events.
fn in_every_order<T: Copy>(events: &mut Vec<T>, at: usize, each: &mut dyn FnMut(&[T])) {
    if at == events.len() {
        return each(events);
    }
    for other in at..events.len() {
        events.swap(at, other);
        in_every_order(events, at + 1, each);
        events.swap(at, other);
    }
}

#[test]
fn field_case_24_in_every_order_of_declines_acknowledgements_and_ends_an_abort_is_told_once() {
    #[derive(Clone, Copy, Debug)]
    enum Said {
        Declines(usize),
        Acknowledges(SubtaskId),
        Ends,
    }
    let [first, second] = SOURCES;
    let mut events = vec![
        Said::Declines(0),
        Said::Declines(1),
        Said::Acknowledges(first),
        Said::Acknowledges(second),
        Said::Ends,
    ];
    let mut orders = 0;
    in_every_order(&mut events, 0, &mut |order| {
        orders += 1;
        let mut h = Harness::recovered(config());
        h.pass(ms(1_000));
        for said in order {
            match *said {
                Said::Declines(sink) => {
                    let reason = "not now".to_owned();
                    h.say(SINKS[sink], TaskEvent::Decline { id: CheckpointId(1), reason });
                }
                Said::Acknowledges(source) => h.ack(source, 1),
                Said::Ends => SOURCES.into_iter().for_each(|source| h.say(source, TaskEvent::Ended)),
            }
        }
        let told = h.mail(|body| matches!(body, MailBody::NotifyAbort { .. }).then_some(()));
        let told: Vec<SubtaskId> = told.into_iter().map(|(to, ())| to).collect();
        assert_eq!(told, [SOURCES, SINKS].concat(), "each subtask is told once: {order:?}");
        assert_eq!((h.appended().len(), h.master.history().failed()), (0, 1), "{order:?}");
        h.pass(ms(1_000));
        h.all_ack(2);
        h.settle(6, Settled::Ours);
        assert_eq!(h.master.newest_completed(), CheckpointId(2), "{order:?}");
    });
    assert_eq!(orders, 120);
}

#[test]
fn one_that_takes_too_long_expires_unless_its_entry_is_being_written() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.ack(SOURCES[0], 1);
    h.pass(ms(5_000));
    assert_eq!(h.aborted(), [1].into());
    h.take();
    h.all_ack(2);
    assert_eq!(h.appended().len(), 1);
    h.pass(ms(60_000));
    assert!(h.aborted().is_empty() && h.triggers().is_empty());
    h.settle(6, Settled::Ours);
    assert_eq!(h.master.newest_completed(), CheckpointId(2));
}

#[test]
fn more_failures_in_a_row_than_are_tolerable_end_the_attempt() {
    let mut h = Harness::recovered(CheckpointConfig { tolerable_failures: 1, ..config() });
    h.pass(ms(1_000));
    decline(&mut h, 1);
    assert!(h.end().is_none());
    h.pass(ms(1_000));
    decline(&mut h, 2);
    let Some(AttemptEnd::Failed { cause }) = h.end() else { panic!("{:?}", h.end()) };
    assert!(matches!(cause, AttemptFailure::CheckpointsFailed { failures: 2, tolerable: 1, .. }));
    assert!(cause.restartable());
}

#[test]
fn sinks_that_hold_locks_bear_no_failure_and_one_checkpoint_at_a_time() {
    let wide = CheckpointConfig { max_concurrent: 4, ..config() };
    let mut h = Harness::with(wide, |setup| setup.lock_holding_sinks.push("sink".into()));
    h.start_and_recover();
    h.pass(ms(4_500));
    assert_eq!(h.triggers(), [1]);
    decline(&mut h, 1);
    assert!(matches!(h.end(), Some(AttemptEnd::Failed { .. })));
}

#[test]
fn a_later_one_that_completes_first_subsumes_the_earlier_one() {
    let mut h = Harness::recovered(CheckpointConfig { max_concurrent: 2, ..config() });
    h.pass(ms(2_000));
    assert_eq!(h.triggers(), [1, 2]);
    h.ack(SOURCES[0], 1);
    h.all_ack(2);
    h.settle(6, Settled::Ours);
    assert_eq!(h.aborted(), [1].into());
    h.all_ack(1);
    assert_eq!(h.appended().len(), 1);
}

#[test]
fn two_that_all_have_acknowledged_are_written_one_after_the_other() {
    let mut h = Harness::recovered(CheckpointConfig { max_concurrent: 2, ..config() });
    h.pass(ms(2_000));
    h.all_ack(1);
    h.all_ack(2);
    assert_eq!(h.appended().len(), 1);
    h.settle(6, Settled::Ours);
    assert_eq!(h.appended().last().unwrap().0, 7);
    h.settle(7, Settled::Ours);
    assert_eq!(h.master.newest_completed(), CheckpointId(2));
}

#[test]
fn the_cleaner_deletes_what_the_newest_entry_does_not_name() {
    let mut h = Harness::recovered(CheckpointConfig { retained: 2, ..config() });
    h.complete(1, 6);
    h.complete(2, 7);
    h.tell(MasterEvent::Control(Control::TriggerCheckpoint));
    h.all_ack(3);
    h.settle(8, Settled::Ours);
    let plans: Vec<_> =
        h.done.iter().filter_map(|a| if let MasterAction::Clean(p) = a { Some(p) } else { None }).collect();
    let deleted: Vec<_> =
        plans.iter().flat_map(|p| &p.delete).map(|d| (d.number.0, d.folder.as_str())).collect();
    assert_eq!(deleted, [(6, "1-5")]);
}

#[test]
fn what_completes_while_a_cleaning_is_under_way_is_cleaned_after_it() {
    let mut h = Harness::recovered(CheckpointConfig { retained: 1, ..config() });
    let plans = |h: &mut Harness| -> Vec<Vec<u64>> {
        let done = h.take().into_iter();
        done.filter_map(|action| match action {
            MasterAction::Clean(plan) => Some(plan.delete.iter().map(|d| d.number.0).collect()),
            _ => None,
        })
        .collect()
    };
    let complete = |h: &mut Harness, id, entry| {
        h.tell(MasterEvent::Control(Control::TriggerCheckpoint));
        h.all_ack(id);
        h.settle(entry, Settled::Ours);
        SINKS.into_iter().for_each(|sink| h.committed(sink, id, false));
    };
    complete(&mut h, 1, 6);
    complete(&mut h, 2, 7);
    assert_eq!(plans(&mut h), [[6]]);
    complete(&mut h, 3, 8);
    assert_eq!(plans(&mut h), Vec::<Vec<u64>>::new());
    h.tell(MasterEvent::Cleaned { entries: vec![EntryNumber(6)] });
    assert_eq!(plans(&mut h), [[7]]);
    // What fails is left for the next completion: there is no cleaning for its own sake.
    h.tell(MasterEvent::Cleaned { entries: Vec::new() });
    assert_eq!(plans(&mut h), Vec::<Vec<u64>>::new());
}

#[test]
fn a_lost_transaction_ends_the_attempt_for_good() {
    let mut h = Harness::recovered(config());
    let scope = TransactionScope {
        job: "orders".into(),
        log_id: "feed".into(),
        lineage: Default::default(),
        uid: "sink".into(),
    };
    let name = TransactionName { scope, subtask: 0, opened_after: CheckpointId(3), attempt: AttemptId(4) };
    let lost = LostTransaction { name, closed_by: CheckpointId(4), reason: "unknown branch".into() };
    h.say(SINKS[0], TaskEvent::Failed(TaskFailure::Lost(Box::new(lost.clone()))));
    assert!(matches!(h.end(), Some(AttemptEnd::Lost(is)) if *is == lost));
}

#[test]
fn the_manifest_has_every_operator_with_a_uid_in_order_of_its_subtasks() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.say(SOURCES[1], TaskEvent::Acknowledge(ack(1, true)));
    h.all_ack(1);
    let manifest = h.manifest();
    let uids: Vec<_> =
        manifest.operators.iter().map(|o| (o.uid.as_str(), o.subtasks.len(), o.two_phase)).collect();
    assert_eq!(uids, [("orders", 2, false), ("sink", 2, true)]);
    assert_eq!(manifest.operators[0].ended, [false, true]);
    assert_eq!(manifest.operators[0].enumerator.as_deref(), Some(&[0][..]));
}
