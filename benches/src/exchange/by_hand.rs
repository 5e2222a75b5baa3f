//! The shuffle that a programmer would write without an engine.
//!
//! Owns: it. Does not own: records. Runs on: threads of its own.

use std::hint::black_box;

use crossbeam_channel::Sender;

use super::Payload;
use crate::error::BenchError;
use crate::harness::Run;
use crate::stopwatch::Stopwatch;

/// Records in a batch.
const BATCH: usize = 1_024;
/// Batches in a channel, for each source.
const CHANNEL: usize = 8;

/// `parallelism` source threads, and as many receiving ones.
pub(super) fn run<const REST: usize>(records: u64, parallelism: u32) -> Result<Run, BenchError> {
    let watch = Stopwatch::start();
    let got: u64 = std::thread::scope(|scope| {
        let channels = (0..parallelism).map(|_| crossbeam_channel::bounded(CHANNEL * parallelism as usize));
        let (senders, receivers): (Vec<Sender<Vec<Payload<REST>>>>, Vec<_>) = channels.unzip();
        for maker in 0..parallelism {
            let senders = senders.clone();
            scope.spawn(move || send_share(records, u64::from(maker), &senders));
        }
        drop(senders);
        let receive = receivers.into_iter().map(|receiver| {
            scope.spawn(move || receiver.iter().map(|batch| black_box(batch).len() as u64).sum::<u64>())
        });
        let receiving: Vec<_> = receive.collect();
        receiving.into_iter().map(|thread| thread.join().unwrap_or(0)).sum()
    });
    let run = watch.stop(records);
    if got == records {
        return Ok(run);
    }
    Err(BenchError::WrongResult { candidate: "by hand".to_owned(), got, expected: records })
}

fn send_share<const REST: usize>(records: u64, maker: u64, senders: &[Sender<Vec<Payload<REST>>>]) {
    let empty = || Vec::with_capacity(BATCH);
    let mut batches: Vec<Vec<Payload<REST>>> = senders.iter().map(|_| empty()).collect();
    for index in (maker..records).step_by(senders.len()) {
        let record = Payload::make(index);
        let place = (((record.key >> 32) * senders.len() as u64) >> 32) as usize;
        let batch = &mut batches[place];
        batch.push(record);
        if batch.len() == BATCH && senders[place].send(std::mem::replace(batch, empty())).is_err() {
            return;
        }
    }
    for (batch, sender) in batches.into_iter().zip(senders) {
        let _ = sender.send(batch);
    }
}
