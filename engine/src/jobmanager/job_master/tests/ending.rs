//! End of data and cancel.

use super::harness::*;
use crate::checkpoint::commit_log::{EntryBody, Settled};
use crate::checkpoint::{CheckpointConfig, CheckpointMode};
use crate::ids::{CheckpointId, EntryNumber};
use crate::jobmanager::job_master::{Control, MasterEvent};
use crate::jobmanager::{AttemptEnd, AttemptFailure};
use crate::taskworker::mail::{MailBody, TaskEvent, TaskFailure};

fn finishes(h: &Harness) -> usize {
    h.mail(|body| matches!(body, MailBody::Finish).then_some(())).len()
}

fn cancels(h: &Harness) -> Vec<u64> {
    let ids = h.mail(|body| match body {
        MailBody::Cancel { newest_completed } => Some(newest_completed.0),
        _ => None,
    });
    ids.into_iter().map(|(_, id)| id).collect()
}

fn finished_entries(h: &Harness) -> Vec<u64> {
    h.appended().into_iter().filter(|(_, e)| e.body == EntryBody::Finished).map(|(n, _)| n).collect()
}

fn crash() -> TaskEvent {
    TaskEvent::Failed(TaskFailure::Operator {
        operator: "sink".into(),
        message: "no disk".into(),
        restartable: true,
    })
}

#[test]
fn the_last_checkpoint_is_repeated_until_complete_and_everything_is_committed_before_finished() {
    let mut h = Harness::recovered(config());
    h.all_say(|| TaskEvent::Ended);
    assert_eq!(h.triggers(), [1]);
    h.say(SINKS[0], TaskEvent::Decline { id: CheckpointId(1), reason: "not now".into() });
    h.pass(ms(100));
    assert_eq!(h.triggers(), [1, 2]);
    h.all_ack(2);
    h.settle(6, Settled::Ours);
    h.committed(SINKS[0], 2, true);
    h.committed(SINKS[1], 2, false); // committed, and has not swept once more
    h.pass(ms(2_000));
    assert_eq!((finished_entries(&h), h.triggers()), (vec![], vec![1, 2]));
    h.committed(SINKS[1], 2, true);
    assert_eq!((finished_entries(&h), finishes(&h)), (vec![7], 0));
    h.settle(7, Settled::Ours);
    assert_eq!(finishes(&h), 4);
    SOURCES.into_iter().chain([SINKS[0]]).for_each(|s| h.say(s, TaskEvent::Finished));
    h.take();
    h.pass(ms(600));
    assert_eq!((finishes(&h), h.end().is_none()), (1, true), "said again to the one that is silent");
    h.say(SINKS[1], TaskEvent::Finished);
    assert!(matches!(h.end(), Some(AttemptEnd::Finished)));
}

#[test]
fn the_last_checkpoint_comes_after_the_pending_one() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.all_say(|| TaskEvent::Ended);
    assert_eq!(h.triggers(), [1]);
    h.all_ack(1);
    h.pass(ms(3_000));
    assert_eq!(h.triggers(), [1], "its entry is not settled");
    h.settle(6, Settled::Ours);
    assert_eq!(h.triggers(), [1, 2]);
}

#[test]
fn no_periodic_checkpoint_follows_the_last_one() {
    let mut h = Harness::recovered(config());
    h.all_say(|| TaskEvent::Ended);
    h.all_ack(1);
    h.settle(6, Settled::Ours);
    h.pass(ms(5_000));
    assert_eq!(h.triggers(), [1]);
}

#[test]
fn a_job_that_is_fenced_at_finished_does_not_end_its_partitions() {
    let mut h = Harness::recovered(config());
    h.all_say(|| TaskEvent::Ended);
    h.all_ack(1);
    h.settle(6, Settled::Ours);
    SINKS.into_iter().for_each(|s| h.committed(s, 1, true));
    h.settle(7, Settled::Fenced);
    assert_eq!(finishes(&h), 0);
    assert!(matches!(h.end(), Some(AttemptEnd::Fenced { at: EntryNumber(7) })));
}

#[test]
fn without_checkpoints_the_end_of_all_is_the_end() {
    let mut h = Harness::new(CheckpointConfig { mode: CheckpointMode::None, ..config() });
    h.start_and_recover();
    h.pass(ms(60_000));
    assert!(h.triggers().is_empty());
    h.all_say(|| TaskEvent::Ended);
    assert_eq!((finishes(&h), h.appended().len()), (4, 0));
    h.all_say(|| TaskEvent::Finished);
    assert!(matches!(h.end(), Some(AttemptEnd::Finished)));
}

#[test]
fn a_cancel_first_settles_the_put_in_flight() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.all_ack(1);
    h.tell(MasterEvent::Control(Control::Cancel));
    h.pass(ms(60_000));
    assert_eq!(cancels(&h), Vec::<u64>::new());
    h.settle(6, Settled::Ours);
    assert_eq!(cancels(&h), [1; 4], "what the entry lists is committed, not rolled back");
    h.take();
    h.say(SINKS[1], TaskEvent::Canceled);
    h.pass(ms(600));
    assert_eq!(cancels(&h).len(), 3);
    h.all_say(|| TaskEvent::Canceled);
    assert!(matches!(h.end(), Some(AttemptEnd::Canceled)));
}

#[test]
fn a_cancel_gives_up_what_is_pending_and_takes_no_more() {
    let mut h = Harness::recovered(config());
    h.complete(1, 6);
    h.pass(ms(1_000));
    assert_eq!(h.triggers(), [2]);
    h.tell(MasterEvent::Control(Control::Cancel));
    assert_eq!(cancels(&h), [1; 4]);
    h.all_ack(2);
    h.pass(ms(10_000));
    assert_eq!((h.appended().len(), h.triggers()), (0, vec![2]));
}

#[test]
fn a_cancel_that_meets_a_foreign_entry_is_fenced() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.all_ack(1);
    h.tell(MasterEvent::Control(Control::Cancel));
    h.settle(6, Settled::Fenced);
    assert!(cancels(&h).is_empty() && matches!(h.end(), Some(AttemptEnd::Fenced { .. })));
}

#[test]
fn a_cancel_while_finished_is_being_put_lets_the_job_finish() {
    let mut h = Harness::recovered(config());
    h.all_say(|| TaskEvent::Ended);
    h.all_ack(1);
    h.settle(6, Settled::Ours);
    SINKS.into_iter().for_each(|s| h.committed(s, 1, true));
    h.tell(MasterEvent::Control(Control::Cancel));
    h.settle(7, Settled::Ours);
    h.all_say(|| TaskEvent::Finished);
    assert!(matches!(h.end(), Some(AttemptEnd::Finished)));
}

#[test]
fn a_failure_while_canceling_is_not_restarted() {
    let mut h = Harness::recovered(config());
    h.tell(MasterEvent::Control(Control::Cancel));
    h.say(SINKS[0], crash());
    let Some(AttemptEnd::Failed { cause }) = h.end() else { panic!("{:?}", h.end()) };
    assert!(matches!(cause, AttemptFailure::WhileCanceling(_)) && !cause.restartable());
}

#[test]
fn a_sink_that_finds_the_job_taken_over_ends_the_attempt_as_fenced_also_while_it_is_being_canceled() {
    for cancel in [false, true] {
        let mut h = Harness::recovered(config());
        if cancel {
            h.tell(MasterEvent::Control(Control::Cancel));
        }
        let (operator, message) = ("sink".to_owned(), "nothing was written".to_owned());
        let failure = TaskFailure::TakenOver { operator, message, by: EntryNumber(9) };
        h.say(SINKS[0], TaskEvent::Failed(failure));
        assert!(matches!(h.end(), Some(AttemptEnd::Fenced { at: EntryNumber(9) })), "{:?}", h.end());
    }
}

#[test]
fn a_failure_after_finished_stands_in_the_log_loses_nothing() {
    let mut h = Harness::recovered(config());
    h.all_say(|| TaskEvent::Ended);
    h.all_ack(1);
    h.settle(6, Settled::Ours);
    SINKS.into_iter().for_each(|s| h.committed(s, 1, true));
    h.settle(7, Settled::Ours);
    h.say(SINKS[0], crash());
    [SOURCES[0], SOURCES[1], SINKS[1]].into_iter().for_each(|s| h.say(s, TaskEvent::Finished));
    assert!(matches!(h.end(), Some(AttemptEnd::Finished)));
}
