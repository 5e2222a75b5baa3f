//! A held channel keeps its elements in order and in bounds; the others go on.

use std::sync::Arc;

use super::*;
use crate::element::{AlignmentMode, Batch, CheckpointKind, EventTime};
use crate::exchange::ChannelSender;
use crate::io::{NoWake, Waker};

fn gate(channels: usize) -> (Vec<ChannelSender<u64>>, InputGate<u64>) {
    let waker: Waker = Arc::new(NoWake);
    let (senders, inbox) = Inbox::new(&vec![Arc::clone(&waker); channels], 8, &waker);
    (senders, InputGate::new(inbox))
}

fn barrier(id: u64) -> CheckpointBarrier {
    CheckpointBarrier {
        id: CheckpointId(id),
        kind: CheckpointKind::Checkpoint,
        alignment: AlignmentMode::Aligned,
        newest_completed: CheckpointId(0),
        triggered_at_us: 0,
    }
}

fn records(gate: &mut InputGate<u64>) -> Option<Vec<u64>> {
    match gate.next_element() {
        Some(StageElement::Records(batch)) => Some(batch.values),
        _ => None,
    }
}

#[test]
fn a_record_after_the_barrier_waits_until_all_channels_align() {
    let (senders, mut gate) = gate(2);
    senders[0].try_send(Element::Barrier(barrier(7))).unwrap();
    senders[0].try_send(Element::Records(Batch::of(vec![1]))).unwrap();
    senders[1].try_send(Element::Records(Batch::of(vec![2]))).unwrap();
    gate.note();
    assert_eq!(records(&mut gate), Some(vec![2]));
    assert!(gate.next_element().is_none());
    senders[1].try_send(Element::Barrier(barrier(7))).unwrap();
    gate.note();
    assert_eq!(gate.take_aligned(), Some(barrier(7)));
    assert_eq!(records(&mut gate), Some(vec![1]));
}

#[test]
fn the_queue_of_a_held_channel_is_bounded_by_its_credits() {
    let (senders, mut gate) = gate(2);
    senders[0].try_send(Element::Barrier(barrier(1))).unwrap();
    let mut sent = 0;
    for at in 0..10_000 {
        sent += usize::from(senders[0].try_send(Element::Records(Batch::of(vec![1]))).is_ok());
        senders[0].try_send(Element::Watermark(EventTime(at))).unwrap();
        gate.note();
    }
    assert_eq!(sent, 8);
    let waiting = gate.queues.iter().count();
    assert!(waiting <= 16, "{waiting} elements wait");
}
