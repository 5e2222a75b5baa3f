//! Alignment, event by event.

use proptest::prelude::*;

use super::*;
use crate::element::CheckpointKind;

fn barrier(id: u64) -> CheckpointBarrier {
    CheckpointBarrier {
        id: CheckpointId(id),
        kind: CheckpointKind::Checkpoint,
        alignment: AlignmentMode::Aligned,
        newest_completed: CheckpointId(0),
        triggered_at_us: 0,
    }
}

#[test]
fn a_channel_waits_from_its_barrier_until_all_have_come() {
    let mut aligner = BarrierAligner::new(2);
    assert_eq!(aligner.on_barrier(0, barrier(1)).aligned, None);
    assert!(aligner.holds(0) && !aligner.holds(1));
    assert_eq!(aligner.on_barrier(1, barrier(1)).aligned, Some(barrier(1)));
    assert!(!aligner.holds(0) && !aligner.holds(1));
}

#[test]
fn a_later_barrier_ends_an_earlier_alignment() {
    let mut aligner = BarrierAligner::new(2);
    aligner.on_barrier(0, barrier(1));
    let outcome = aligner.on_barrier(1, barrier(2));
    assert_eq!(outcome, BarrierOutcome { declined: Some(barrier(1)), aligned: None });
    assert!(!aligner.holds(0) && aligner.holds(1));
    assert_eq!(aligner.on_barrier(0, barrier(2)).aligned, Some(barrier(2)));
}

#[test]
fn a_straggler_of_a_declined_checkpoint_is_ignored() {
    let mut aligner = BarrierAligner::new(3);
    aligner.on_barrier(0, barrier(1));
    aligner.on_barrier(1, barrier(2));
    assert_eq!(aligner.on_barrier(2, barrier(1)), BarrierOutcome { declined: None, aligned: None });
    assert!(!aligner.holds(2));
}

#[test]
fn at_least_once_holds_nobody() {
    let mut aligner = BarrierAligner::new(2);
    let loose = CheckpointBarrier { alignment: AlignmentMode::AtLeastOnce, ..barrier(1) };
    aligner.on_barrier(0, loose);
    assert!(!aligner.holds(0));
}

#[test]
fn a_closed_channel_holds_nobody_up() {
    let mut aligner = BarrierAligner::new(2);
    aligner.on_barrier(0, barrier(1));
    assert_eq!(aligner.on_closed(1).aligned, Some(barrier(1)));
}

proptest! {
    /// Whatever the order, each channel's records before barrier n are before the snapshot of n, and those behind it after.
    #[test]
    fn every_interleaving_of_rising_barriers_aligns_the_last_one(
        picks in prop::collection::vec(0usize..3, 1..200), last in 1u64..6
    ) {
        let mut aligner = BarrierAligner::new(3);
        let mut next = [1u64; 3];
        let mut aligned = Vec::new();
        let deliver = |aligner: &mut BarrierAligner, next: &mut [u64; 3], channel: usize, aligned: &mut Vec<u64>| {
            if next[channel] > last || aligner.holds(channel) {
                return false;
            }
            let outcome = aligner.on_barrier(channel, barrier(next[channel]));
            next[channel] += 1;
            if let Some(done) = outcome.aligned {
                // Exactly the barriers up to n were taken from every channel.
                assert!(next.iter().all(|n| *n == done.id.0 + 1));
                aligned.push(done.id.0);
            }
            true
        };
        for channel in picks {
            deliver(&mut aligner, &mut next, channel, &mut aligned);
        }
        while (0..3).any(|c| deliver(&mut aligner, &mut next, c, &mut aligned)) {}
        prop_assert_eq!(aligned, (1..=last).collect::<Vec<_>>());
    }
}
