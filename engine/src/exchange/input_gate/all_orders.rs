//! Every order in which barriers, ends of data and ends of partitions of several channels can reach a gate.
//!
//! A channel may skip a barrier (the subtask in front of it declined that checkpoint, and sent the later barrier in its place), and may end
//! in front of any barrier. Whatever the order: a checkpoint is told once, as aligned or as declined; what is aligned is whole; and the
//! gate comes to its end.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::element::{AlignmentMode, Batch, CheckpointKind};
use crate::exchange::ChannelSender;
use crate::io::{NoWake, Waker};

/// One element of a channel's script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Record,
    Barrier(u64),
    EndOfData,
    EndOfPartition,
}

use Sent::{Barrier, EndOfData, EndOfPartition, Record};

/// When the chain takes what has arrived.
#[derive(Clone, Copy, Debug)]
enum Pace {
    /// All of it after each arrival.
    Eager,
    /// One element after each arrival.
    OneByOne,
    /// Nothing before everything has arrived.
    Late,
}

/// A gate and what came out of it.
struct Bench<'a> {
    scripts: &'a [&'a [Sent]],
    senders: Vec<ChannelSender<(usize, usize)>>,
    gate: InputGate<(usize, usize)>,
    /// Records that came out, by channel.
    taken: Vec<Vec<usize>>,
    aligned: BTreeMap<u64, u32>,
    declined: BTreeMap<u64, u32>,
}

impl<'a> Bench<'a> {
    fn of(scripts: &'a [&'a [Sent]]) -> Self {
        let waker: Waker = Arc::new(NoWake);
        let (senders, inbox) = Inbox::new(&vec![Arc::clone(&waker); scripts.len()], 8, &waker);
        let taken = vec![Vec::new(); scripts.len()];
        let (aligned, declined) = (BTreeMap::new(), BTreeMap::new());
        Self { scripts, senders, gate: InputGate::new(inbox), taken, aligned, declined }
    }

    fn send(&self, channel: usize, at: usize) {
        let element = match self.scripts[channel][at] {
            Record => Element::Records(Batch::of(vec![(channel, at)])),
            Barrier(id) => Element::Barrier(CheckpointBarrier {
                id: CheckpointId(id),
                kind: CheckpointKind::Checkpoint,
                alignment: AlignmentMode::Aligned,
                newest_completed: CheckpointId(0),
                triggered_at_us: 0,
            }),
            EndOfData => Element::EndOfData,
            EndOfPartition => Element::EndOfPartition,
        };
        self.senders[channel].try_send(element).unwrap();
    }

    /// What a subtask does in one step: barriers are noted, an aligned one is taken, else one element.
    fn step(&mut self) -> bool {
        let mut any = self.gate.note();
        for id in self.gate.take_declined() {
            *self.declined.entry(id.0).or_default() += 1;
        }
        if let Some(barrier) = self.gate.take_aligned() {
            *self.aligned.entry(barrier.id.0).or_default() += 1;
            self.check_whole(barrier.id.0);
            return true;
        }
        let element = self.gate.next_element();
        any |= element.is_some() || self.gate.aligned.is_some();
        if let Some(StageElement::Records(batch)) = element {
            batch.values.into_iter().for_each(|(channel, at)| self.taken[channel].push(at));
        }
        any
    }

    /// Exactly the records in front of barrier `id` have come out of every channel; of one without it, all records.
    fn check_whole(&self, id: u64) {
        for (channel, script) in self.scripts.iter().enumerate() {
            let barrier = script.iter().position(|sent| *sent == Barrier(id));
            assert!(
                barrier.is_some() || !skips(script, id),
                "{id} is aligned, and channel {channel} skipped it"
            );
            let before = &script[..barrier.unwrap_or(script.len())];
            assert_eq!(self.taken[channel], records(before), "snapshot {id}, channel {channel}");
        }
    }
}

fn records(script: &[Sent]) -> Vec<usize> {
    script.iter().enumerate().filter(|(_, sent)| **sent == Record).map(|(at, _)| at).collect()
}

/// Whether a later barrier stands in the place of this one.
fn skips(script: &[Sent], id: u64) -> bool {
    !script.contains(&Barrier(id)) && script.iter().any(|sent| matches!(sent, Barrier(later) if *later > id))
}

/// One order of arrivals, given as the channel of each.
fn run(scripts: &[&[Sent]], order: &[usize], pace: Pace) {
    let mut bench = Bench::of(scripts);
    let mut next = vec![0; scripts.len()];
    for channel in order {
        bench.send(*channel, next[*channel]);
        next[*channel] += 1;
        match pace {
            Pace::Eager => while bench.step() {},
            Pace::OneByOne => {
                bench.step();
            }
            Pace::Late => {}
        }
    }
    while bench.step() {}
    let what = format!("{scripts:?} in the order {order:?}, {pace:?}");
    assert!(bench.gate.is_closed() && bench.gate.awaited().is_none(), "stuck: {what}");
    for (channel, script) in scripts.iter().enumerate() {
        assert_eq!(bench.taken[channel], records(script), "{what}");
    }
    for id in 1..=2 {
        let told = |ids: &BTreeMap<u64, u32>| ids.get(&id).copied().unwrap_or(0);
        let (aligned, declined) = (told(&bench.aligned), told(&bench.declined));
        assert!(aligned + declined <= 1, "checkpoint {id} is told twice: {what}");
        let sent = scripts.iter().any(|script| script.contains(&Barrier(id)));
        let whole = sent && !scripts.iter().any(|script| skips(script, id));
        assert_eq!(aligned == 1, whole, "checkpoint {id}: {what}");
    }
}

/// Every merge of sequences of these lengths.
fn merges(left: &mut Vec<usize>, order: &mut Vec<usize>, each: &mut dyn FnMut(&[usize])) {
    if left.iter().all(|left| *left == 0) {
        return each(order);
    }
    for channel in 0..left.len() {
        if left[channel] > 0 {
            left[channel] -= 1;
            order.push(channel);
            merges(left, order, each);
            order.pop();
            left[channel] += 1;
        }
    }
}

fn in_every_order(scripts: &[&[Sent]]) -> u64 {
    let mut orders = 0;
    let mut left: Vec<usize> = scripts.iter().map(|script| script.len()).collect();
    merges(&mut left, &mut Vec::new(), &mut |order| {
        orders += 1;
        for pace in [Pace::Eager, Pace::OneByOne, Pace::Late] {
            run(scripts, order, pace);
        }
    });
    orders
}

#[test]
fn field_case_24_in_every_order_of_barriers_and_ends_a_checkpoint_is_told_once_and_never_half() {
    let both = [Record, Barrier(1), Record, Barrier(2), EndOfData, EndOfPartition];
    let first_skipped = [Record, Barrier(2), Record, EndOfData, EndOfPartition];
    let barriers_behind_the_end = [Record, EndOfData, Barrier(1), Barrier(2), EndOfPartition];
    let ends_between = [Barrier(1), Record, EndOfData, EndOfPartition];
    let ends_at_once = [EndOfData, EndOfPartition];
    let scripts: [&[Sent]; 5] =
        [&both, &first_skipped, &barriers_behind_the_end, &ends_between, &ends_at_once];
    let mut orders = 0;
    for one in scripts {
        for other in scripts {
            orders += in_every_order(&[one, other]);
        }
    }
    // Three channels, each with less.
    let short = [Barrier(1), Record, EndOfData, EndOfPartition];
    let skipping = [Barrier(2), EndOfData, EndOfPartition];
    orders += in_every_order(&[&short, &skipping, &ends_at_once]);
    orders += in_every_order(&[&short, &short, &ends_at_once]);
    assert!(orders > 4_000, "{orders}");
}
