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
