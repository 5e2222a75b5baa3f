//! The loops that a programmer would write without an engine.
//!
//! One thread: fill a batch, update a hash table for each event, hand on a batch of (key, sum). Threads: source threads route events
//! into one batch per keyed thread, which go over bounded channels; each keyed thread has its own table.
//!
//! Owns: both. Does not own: events. Runs on: the main thread, and on threads of its own.

use std::hash::BuildHasher;
use std::hint::black_box;

use crossbeam_channel::{Receiver, Sender};
use foldhash::fast::FixedState;
use hashbrown::HashMap;

use super::event::{BenchKey, Event, Workload};
use crate::error::BenchError;
use crate::harness::Run;
use crate::stopwatch::Stopwatch;

/// Events in a batch.
const BATCH: usize = 1_024;
/// Batches in a channel.
const CHANNEL: usize = 8;

type Sums<K> = HashMap<K, i64, FixedState>;

/// Everything in one loop.
pub(super) fn one_thread<K: BenchKey>(load: Workload) -> Result<Run, BenchError> {
    let mut sums = Sums::<K>::default();
    let mut batch: Vec<Event<K>> = Vec::with_capacity(BATCH);
    let mut out: Vec<Event<K>> = Vec::with_capacity(BATCH);
    let mut written = 0;
    let watch = Stopwatch::start();
    let mut events = load.share(0, 1);
    loop {
        batch.extend(events.by_ref().take(BATCH));
        if batch.is_empty() {
            break;
        }
        written += sum_batch(black_box(&mut batch), &mut sums, &mut out);
    }
    let run = watch.stop(load.events);
    check("by hand, one thread", written, load.events).map(|()| run)
}

fn sum_batch<K: BenchKey>(batch: &mut Vec<Event<K>>, sums: &mut Sums<K>, out: &mut Vec<Event<K>>) -> u64 {
    for (key, value) in batch.drain(..) {
        let sum = match sums.get_mut(&key) {
            Some(sum) => sum,
            None => sums.entry(key.clone()).or_insert(0),
        };
        *sum += value;
        out.push((key, *sum));
    }
    let written = black_box(&mut *out).len() as u64;
    out.clear();
    written
}

/// `parallelism` source threads, and as many keyed threads.
pub(super) fn threads<K: BenchKey>(load: Workload, parallelism: u32) -> Result<Run, BenchError> {
    let makers = u64::from(parallelism);
    let watch = Stopwatch::start();
    let written = std::thread::scope(|scope| {
        let channels: Vec<_> =
            (0..parallelism).map(|_| crossbeam_channel::bounded(CHANNEL * parallelism as usize)).collect();
        let (senders, receivers): (Vec<Sender<Vec<Event<K>>>>, Vec<_>) = channels.into_iter().unzip();
        for maker in 0..makers {
            let senders = senders.clone();
            scope.spawn(move || send_share(load, maker, makers, &senders));
        }
        drop(senders);
        let keyed: Vec<_> =
            receivers.into_iter().map(|receiver| scope.spawn(move || sum_all(&receiver))).collect();
        keyed.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    let run = watch.stop(load.events);
    check("by hand, threads", written, load.events).map(|()| run)
}

fn send_share<K: BenchKey>(load: Workload, maker: u64, makers: u64, senders: &[Sender<Vec<Event<K>>>]) {
    let hasher = FixedState::default();
    let empty = || Vec::with_capacity(BATCH);
    let mut batches: Vec<Vec<Event<K>>> = senders.iter().map(|_| empty()).collect();
    for event in load.share::<K>(maker, makers) {
        let place = if senders.len() == 1 {
            0
        } else {
            (((hasher.hash_one(&event.0) >> 32) * senders.len() as u64) >> 32) as usize
        };
        let batch = &mut batches[place];
        batch.push(event);
        if batch.len() == BATCH && senders[place].send(std::mem::replace(batch, empty())).is_err() {
            return;
        }
    }
    for (batch, sender) in batches.into_iter().zip(senders) {
        let _ = sender.send(batch);
    }
}

fn sum_all<K: BenchKey>(receiver: &Receiver<Vec<Event<K>>>) -> u64 {
    let mut sums = Sums::<K>::default();
    let mut out = Vec::with_capacity(BATCH);
    receiver.iter().map(|mut batch| sum_batch(&mut batch, &mut sums, &mut out)).sum()
}

fn check(candidate: &str, got: u64, expected: u64) -> Result<(), BenchError> {
    if got == expected {
        return Ok(());
    }
    Err(BenchError::WrongResult { candidate: candidate.to_owned(), got, expected })
}
