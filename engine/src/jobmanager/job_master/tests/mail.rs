//! Numbered mail, repeats, and the split law.

use std::sync::Arc;

use super::harness::*;
use crate::checkpoint::CompletedCheckpoint;
use crate::checkpoint::commit_log::Settled;
use crate::checkpoint::manifest::{Manifest, OperatorState};
use crate::element::CheckpointKind;
use crate::ids::{AttemptId, CheckpointId, EntryNumber, SubtaskId, VertexId};
use crate::jobmanager::job_master::{Control, MasterAction, MasterEvent};
use crate::taskworker::mail::{MailBody, TaskEvent};

fn numbered(h: &Harness, to: SubtaskId) -> Vec<(u64, &'static str)> {
    let mail = h.done.iter().filter_map(|action| match action {
        MasterAction::Mail { to: is, mail } if *is == to => Some((mail.seq?, word(&mail.body))),
        _ => None,
    });
    mail.collect()
}

fn word(body: &MailBody) -> &'static str {
    match body {
        MailBody::Trigger(_) => "trigger",
        MailBody::AssignSplits { .. } => "assign",
        MailBody::NoMoreSplits => "no more",
        _ => "other",
    }
}

fn find(h: &mut Harness, splits: u8) {
    h.tell(MasterEvent::Found { vertex: VertexId(0), result: Ok(Box::new(splits)) });
}

#[test]
fn assignments_made_after_the_enumerators_snapshot_are_behind_the_trigger() {
    let mut h = Harness::recovered(config());
    find(&mut h, 2);
    h.tell(MasterEvent::Control(Control::TriggerCheckpoint));
    find(&mut h, 2);
    assert_eq!(numbered(&h, SOURCES[0]), [(1, "assign"), (2, "trigger"), (3, "assign")]);
    h.all_ack(1);
    assert_eq!(
        h.manifest().operators[0].enumerator,
        Some(vec![2]),
        "the snapshot was taken before the last assignment"
    );
}

#[test]
fn numbered_mail_is_sent_again_in_order_until_it_is_acknowledged() {
    let mut h = Harness::recovered(config());
    find(&mut h, 2);
    h.enumerator.state.lock().unwrap().complete = true;
    find(&mut h, 0);
    assert_eq!(numbered(&h, SOURCES[0]), [(1, "assign"), (2, "no more")]);
    h.take();
    h.say(SOURCES[1], TaskEvent::MailAcked { seq: 2 });
    h.pass(ms(500));
    assert_eq!(numbered(&h, SOURCES[0]), [(1, "assign"), (2, "no more")]);
    assert_eq!(numbered(&h, SOURCES[1]), []);
    h.take();
    h.say(SOURCES[0], TaskEvent::MailAcked { seq: 1 });
    h.pass(ms(499));
    assert_eq!(numbered(&h, SOURCES[0]), []);
    h.pass(ms(1));
    let again = numbered(&h, SOURCES[0]);
    assert!(again.contains(&(2, "no more")) && !again.contains(&(1, "assign")), "{again:?}");
    h.say(SOURCES[0], TaskEvent::MailAcked { seq: 9 });
    h.take();
    h.enumerator.state.lock().unwrap().complete = true;
    find(&mut h, 0);
    assert_eq!(numbered(&h, SOURCES[0]), [], "no more splits is said once");
}

#[test]
fn an_enumerator_that_is_complete_from_the_start_says_so_and_looks_for_nothing() {
    let mut h = Harness::new(config());
    h.enumerator.state.lock().unwrap().complete = true;
    h.tell(MasterEvent::Start);
    assert_eq!(numbered(&h, SOURCES[1]), [(1, "no more")]);
    assert!(!h.done.iter().any(|a| matches!(a, MasterAction::Discover { .. })));
}

#[test]
fn a_restored_enumerator_gets_its_state_back_before_it_looks_for_splits() {
    let source = OperatorState {
        uid: "orders".into(),
        max_parallelism: 128,
        two_phase: false,
        has_on_end: false,
        subtasks: vec![Default::default(); 2],
        ended: vec![false; 2],
        upstream: Vec::new(),
        enumerator: Some(vec![9]),
    };
    let manifest = Manifest {
        job: "orders".into(),
        log_id: "feed".into(),
        lineage: Default::default(),
        checkpoint: CheckpointId(7),
        attempt: AttemptId(2),
        kind: CheckpointKind::Checkpoint,
        completed_at_ms: 0,
        operators: vec![source],
    };
    let restored = CompletedCheckpoint { number: EntryNumber(4), manifest: Arc::new(manifest) };
    let mut h = Harness::with(config(), |setup| {
        setup.restored = Some(restored);
        setup.next_checkpoint = CheckpointId(8);
    });
    h.tell(MasterEvent::Start);
    assert_eq!(h.enumerator.state.lock().unwrap().restored, Some(vec![9]));
    assert!(matches!(h.done[..], [MasterAction::Discover { vertex: VertexId(0) }]));
    assert_eq!(h.master.newest_completed(), CheckpointId(7));
}

#[test]
fn field_case_59_a_lost_completion_is_said_again_to_the_sinks_that_have_not_committed() {
    let mut h = Harness::recovered(config());
    h.pass(ms(1_000));
    h.all_ack(1);
    h.settle(6, Settled::Ours);
    h.take();
    h.committed(SINKS[0], 1, false);
    h.pass(ms(600));
    assert_eq!(h.notified(), [(SINKS[1], 1)]);
    h.take();
    h.committed(SINKS[1], 1, false);
    h.committed(SINKS[1], 0, false); // an older report that was late
    h.pass(ms(300));
    assert_eq!(h.notified(), []);
    h.tell(MasterEvent::Control(Control::TriggerCheckpoint));
    let newest = h.mail(|body| match body {
        MailBody::Trigger(barrier) => Some(barrier.newest_completed),
        _ => None,
    });
    assert!(newest.iter().all(|(_, id)| *id == CheckpointId(1)), "and the next barrier carries it");
}
