//! The commit law, line by line.

use super::*;
use crate::ids::{AttemptId, Lineage};
use crate::operator::TransactionScope;

fn name(subtask: u32, opened_after: u64, attempt: u64) -> TransactionName {
    TransactionName {
        scope: TransactionScope {
            job: "orders".into(),
            log_id: "log".into(),
            lineage: Lineage(1),
            uid: "sink".into(),
        },
        subtask,
        opened_after: CheckpointId(opened_after),
        attempt: AttemptId(attempt),
    }
}

fn prepared(closed_by: u64) -> Prepared<u8> {
    Prepared { name: name(0, closed_by - 1, 1), closed_by: CheckpointId(closed_by), committable: 0 }
}

fn closed(items: &[Prepared<u8>]) -> Vec<u64> {
    items.iter().map(|p| p.closed_by.0).collect()
}

fn driver() -> CommitDriver<u8> {
    CommitDriver::new(CheckpointId(0), 6)
}

fn barrier_and_prepare(driver: &mut CommitDriver<u8>, id: u64) -> Vec<u64> {
    driver.on_barrier(CheckpointId(id), CheckpointId(0)).unwrap();
    closed(&driver.on_prepared(CheckpointId(id), Some(prepared(id))))
}

#[test]
fn an_aborted_checkpoints_transaction_goes_with_the_next_completed_one() {
    let mut d = driver();
    assert_eq!(barrier_and_prepare(&mut d, 1), [1]);
    assert_eq!(d.on_abort(CheckpointId(1)), []);
    assert_eq!(barrier_and_prepare(&mut d, 2), [1, 2]);
    d.on_complete(CheckpointId(2));
    assert_eq!(closed(&d.next_commits()), [1, 2]);
}

#[test]
fn handing_over_does_not_end_pending() {
    let mut d = driver();
    barrier_and_prepare(&mut d, 1);
    d.on_complete(CheckpointId(1));
    assert_eq!(closed(&d.next_commits()), [1]);
    assert_eq!(barrier_and_prepare(&mut d, 2), [1, 2]);
    assert_eq!(d.committed_up_to(), CheckpointId(0));
    d.on_outcome(&name(0, 0, 1), CommitOutcome::Committed).unwrap();
    assert_eq!(d.committed_up_to(), CheckpointId(1));
    assert_eq!(barrier_and_prepare(&mut d, 3), [2, 3]);
}

#[test]
fn a_lost_notification_is_learnt_from_the_next_barrier() {
    let mut d = driver();
    barrier_and_prepare(&mut d, 1);
    assert!(d.next_commits().is_empty());
    d.on_barrier(CheckpointId(2), CheckpointId(1)).unwrap();
    assert_eq!(closed(&d.next_commits()), [1]);
}

#[test]
fn retry_after_holds_up_later_commits() {
    let mut d = driver();
    barrier_and_prepare(&mut d, 1);
    d.on_complete(CheckpointId(1));
    assert_eq!(closed(&d.next_commits()), [1]);
    d.on_outcome(&name(0, 0, 1), CommitOutcome::RetryAfter { ms: 1, reason: String::new() }).unwrap();
    barrier_and_prepare(&mut d, 2);
    d.on_complete(CheckpointId(2));
    assert!(d.next_commits().is_empty());
    d.on_outcome(&name(0, 0, 1), CommitOutcome::AlreadyCommitted).unwrap();
    assert_eq!(closed(&d.next_commits()), [2]);
}

#[test]
fn a_lost_transaction_is_named_with_its_range() {
    let mut d = driver();
    barrier_and_prepare(&mut d, 1);
    d.on_complete(CheckpointId(1));
    d.next_commits();
    let lost = d.on_outcome(&name(0, 0, 1), CommitOutcome::Lost { reason: "gone".into() }).unwrap_err();
    assert_eq!((lost.name.opened_after, lost.closed_by), (CheckpointId(0), CheckpointId(1)));
}

#[test]
fn every_barrier_since_the_newest_completed_checkpoint_takes_a_place() {
    let mut d = driver();
    for id in 1..=4 {
        d.on_barrier(CheckpointId(id), CheckpointId(0)).unwrap();
        d.on_prepared(CheckpointId(id), None);
        d.on_abort(CheckpointId(id));
    }
    assert_eq!(d.on_barrier(CheckpointId(5), CheckpointId(0)).unwrap_err().barriers, 5);
    let mut freed = driver();
    for id in 1..=9 {
        freed.on_barrier(CheckpointId(id), CheckpointId(id.saturating_sub(2))).unwrap();
    }
}

#[test]
fn a_writer_waits_while_late_commits_hold_every_place_and_not_longer() {
    let mut d = driver();
    for id in 1..=6 {
        assert!(d.has_place(0) && d.has_place(1) == (id < 6), "{id}");
        d.on_barrier(CheckpointId(id), CheckpointId(id - 1)).unwrap();
        d.on_prepared(CheckpointId(id), Some(prepared(id)));
        d.on_complete(CheckpointId(id));
        d.next_commits();
    }
    assert!(!d.has_place(0));
    d.on_outcome(&name(0, 0, 1), CommitOutcome::Committed).unwrap();
    assert!(d.has_place(0));
}

#[test]
fn an_epoch_without_records_makes_no_committable() {
    let mut d = driver();
    d.on_barrier(CheckpointId(1), CheckpointId(0)).unwrap();
    assert!(d.on_prepared(CheckpointId(1), None).is_empty());
    d.on_complete(CheckpointId(1));
    assert!(d.next_commits().is_empty());
    assert_eq!(d.committed_up_to(), CheckpointId(1));
}

#[test]
fn each_listed_branch_has_one_owner_at_any_parallelism() {
    let restored: Vec<_> = (0..3)
        .flat_map(|s| [(s, 0), (s, 1)])
        .map(|(s, o)| Prepared { name: name(s, o, 1), closed_by: CheckpointId(o + 1), committable: 0u8 })
        .collect();
    for parallelism in 1..=5 {
        let mut owned_by_any = 0;
        for subtask in 0..parallelism {
            let mine = owned(&restored, subtask, parallelism);
            assert!(mine.windows(2).all(|w| w[0].closed_by <= w[1].closed_by));
            owned_by_any += mine.len();
        }
        assert_eq!(owned_by_any, restored.len());
    }
}

#[test]
fn only_unlisted_branches_of_lower_attempts_of_this_log_are_rolled_back() {
    let own = name(0, 0, 5);
    let listed = name(0, 1, 4);
    let mut foreign = name(0, 1, 4);
    foreign.scope.log_id = "other".into();
    let left_overs =
        vec![name(0, 2, 4), listed.clone(), foreign, name(0, 0, 5), name(0, 0, 6), name(1, 2, 4)];
    assert_eq!(to_roll_back(left_overs, &[listed], &own, 2), [name(0, 2, 4)]);
}
