//! Credits bound each channel by itself; control elements pass without.

use std::sync::Arc;

use super::*;
use crate::element::{Batch, EventTime};
use crate::io::NoWake;

fn records() -> Element<u64> {
    Element::Records(Batch::of(vec![1]))
}

#[test]
fn a_channel_without_credit_is_refused_and_the_others_are_not() {
    let waker: Waker = Arc::new(NoWake);
    let (senders, inbox) = Inbox::<u64>::new(&[waker.clone(), waker.clone()], 3, &waker);
    for _ in 0..3 {
        senders[0].try_send(records()).unwrap();
    }
    assert!(senders[0].try_send(records()).is_err());
    senders[1].try_send(records()).unwrap();
    senders[0].try_send(Element::Watermark(EventTime(1))).unwrap();
    let (channel, _) = inbox.try_recv().unwrap();
    assert!(senders[0].try_send(records()).is_err(), "taken from the inbox is not yet taken up");
    inbox.give_back(channel);
    senders[0].try_send(records()).unwrap();
}

#[test]
fn order_within_a_channel_is_kept() {
    let waker: Waker = Arc::new(NoWake);
    let (senders, inbox) = Inbox::<u64>::new(std::slice::from_ref(&waker), 8, &waker);
    senders[0].try_send(records()).unwrap();
    senders[0].try_send(Element::Watermark(EventTime(5))).unwrap();
    senders[0].try_send(Element::EndOfData).unwrap();
    let order: Vec<_> =
        std::iter::from_fn(|| inbox.try_recv()).map(|(_, e)| std::mem::discriminant(&e)).collect();
    assert_eq!(order.len(), 3);
    assert_eq!(order[2], std::mem::discriminant(&Element::<u64>::EndOfData));
}

/// Counts how often it was woken.
#[derive(Default)]
struct Counted(std::sync::atomic::AtomicU32);

impl crate::io::Wake for Counted {
    fn wake(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn control_has_a_bound_of_its_own_and_its_sender_is_woken_for_room() {
    let (counted, quiet): (Arc<Counted>, Waker) = (Arc::default(), Arc::new(NoWake));
    let sending: Waker = Arc::clone(&counted) as Waker;
    let (senders, inbox) = Inbox::<u64>::new(std::slice::from_ref(&sending), 1, &quiet);
    for at in 0..i64::from(CONTROL_ROOM) {
        senders[0].try_send(Element::Watermark(EventTime(at))).unwrap();
    }
    let late = Element::Watermark(EventTime(99));
    assert!(!senders[0].has_room(&late) && senders[0].try_send(late).is_err());
    senders[0].try_send(records()).unwrap();
    assert_eq!(counted.0.load(Ordering::Relaxed), 0);
    inbox.try_recv().unwrap();
    assert_eq!(counted.0.load(Ordering::Relaxed), 1, "the first place that is free again");
    inbox.try_recv().unwrap();
    assert_eq!(counted.0.load(Ordering::Relaxed), 1, "and only that one");
    assert!(senders[0].has_room(&Element::EndOfData));
}

#[test]
fn what_is_sent_to_a_subtask_that_is_gone_is_dropped() {
    let waker: Waker = Arc::new(NoWake);
    let (senders, inbox) = Inbox::<Arc<u64>>::new(std::slice::from_ref(&waker), 1, &waker);
    let record = Arc::new(7);
    senders[0].try_send(Element::Records(Batch::of(vec![Arc::clone(&record)]))).unwrap();
    drop(inbox);
    assert_eq!(Arc::strong_count(&record), 1, "the queue is emptied");
    for _ in 0..10 {
        senders[0].try_send(Element::Records(Batch::of(vec![Arc::clone(&record)]))).unwrap();
    }
    assert_eq!(Arc::strong_count(&record), 1);
}
