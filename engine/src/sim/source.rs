//! The source of a simulation: partitions of a log that show up one after the other; reads stay pending now and then.
//!
//! Owns: partitions. Does not own: when they are read. Runs on: the simulation's thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::rng::Rng;
use crate::api::{
    Assignment, ConnectorContext, ConnectorError, ReadStatus, Source, SourceOutput, SplitEnumerator,
    SplitReader,
};
use crate::clock::SharedClock;
use crate::io::{BoxFuture, SharedIo};

/// A reader whose partitions still grow looks again after this.
const LOOK_AGAIN: Duration = Duration::from_millis(4);

/// One record of input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    /// Unique in the whole input.
    pub id: u64,
    /// The key.
    pub key: u64,
    /// Added up per key.
    pub value: u64,
    /// Event time in milliseconds.
    pub time: i64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct SimSource {
    /// The input, by partition.
    pub partitions: Arc<Vec<Vec<Record>>>,
    /// Guards the stream of numbers; one thread uses it.
    pub rng: Arc<Mutex<Rng>>,
    /// One read in so many stays pending.
    pub pending_one_in: u64,
    /// For so many microseconds at most.
    pub pending_us_max: u64,
    /// How much of each partition has been written so far, in thousandths: the scheduler lets the input grow.
    pub written: Arc<AtomicU64>,
}

/// A partition and the position in it.
#[derive(Clone, Debug, tidegate_state::StateType)]
pub struct SimSplit {
    partition: u32,
    next: u64,
}

impl Source for SimSource {
    type Record = Record;
    type Split = SimSplit;
    type Enumerator = SimEnumerator;
    type Reader = SimReader;

    fn enumerator(&self, parallelism: u32) -> SimEnumerator {
        SimEnumerator { source: self.clone(), parallelism, assigned: Vec::new(), visible: 0 }
    }

    fn reader(&self, context: ConnectorContext, _subtask: u32) -> SimReader {
        SimReader { source: self.clone(), clock: context.clock, splits: Vec::new(), turn: 0 }
    }
}

/// Finds partitions step by step.
#[derive(Debug)]
pub struct SimEnumerator {
    source: SimSource,
    parallelism: u32,
    assigned: Vec<u32>,
    visible: u32,
}

impl SplitEnumerator for SimEnumerator {
    type Split = SimSplit;
    type Found = u32;
    type State = Vec<u32>;

    fn restore(&mut self, state: Vec<u32>, parallelism: u32) -> Result<(), ConnectorError> {
        self.assigned = state;
        self.parallelism = parallelism;
        Ok(())
    }

    fn discover(&mut self, io: &SharedIo) -> Option<BoxFuture<Result<u32, ConnectorError>>> {
        if self.is_complete() {
            return None;
        }
        let total = u32::try_from(self.source.partitions.len()).unwrap_or(u32::MAX);
        let mut rng = self.source.rng.lock().unwrap_or_else(PoisonError::into_inner);
        self.visible = (self.visible + u32::try_from(rng.between(1, 3)).unwrap_or(1)).min(total);
        let (visible, sleep) = (self.visible, io.sleep(Duration::from_micros(rng.below(4_000))));
        Some(Box::pin(async move {
            sleep.await;
            Ok(visible)
        }))
    }

    fn on_found(&mut self, visible: u32) -> Result<Vec<Assignment<SimSplit>>, ConnectorError> {
        let mut assignments = Vec::new();
        for partition in 0..visible {
            if !self.assigned.contains(&partition) {
                self.assigned.push(partition);
                let splits = vec![SimSplit { partition, next: 0 }];
                assignments.push(Assignment { subtask: partition % self.parallelism, splits });
            }
        }
        Ok(assignments)
    }

    fn interval(&self) -> Option<Duration> {
        Some(Duration::from_millis(3))
    }

    fn is_complete(&self) -> bool {
        self.assigned.len() == self.source.partitions.len()
    }

    fn snapshot(&self) -> Vec<u32> {
        self.assigned.clone()
    }
}

/// Reads its partitions in turn.
#[derive(Debug)]
pub struct SimReader {
    source: SimSource,
    clock: SharedClock,
    splits: Vec<SimSplit>,
    turn: usize,
}

impl std::fmt::Debug for dyn crate::clock::Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}

impl SplitReader for SimReader {
    type Record = Record;
    type Split = SimSplit;

    fn add_splits(&mut self, splits: Vec<SimSplit>) -> Result<(), ConnectorError> {
        self.splits.extend(splits);
        Ok(())
    }

    fn poll(&mut self, output: &mut SourceOutput<Record>) -> Result<ReadStatus, ConnectorError> {
        let mut rng = self.source.rng.lock().unwrap_or_else(PoisonError::into_inner);
        if rng.one_in(self.source.pending_one_in) {
            let span = Duration::from_micros(rng.between(100, self.source.pending_us_max));
            return Ok(ReadStatus::Pending(Some(self.clock.now() + span)));
        }
        let written = self.source.written.load(Ordering::Relaxed);
        let mut more_to_come = false;
        for _ in 0..self.splits.len() {
            self.turn = (self.turn + 1) % self.splits.len();
            let split = &mut self.splits[self.turn];
            let partition = &self.source.partitions[split.partition as usize];
            let there = partition.len() as u64 * written / 1_000;
            more_to_come |= there < partition.len() as u64;
            let left = there.saturating_sub(split.next);
            if left > 0 {
                let take = rng.between(1, left.min(output.room() as u64));
                let from = usize::try_from(split.next).unwrap_or(usize::MAX);
                let to = from + usize::try_from(take).unwrap_or(0);
                output.emit_all(partition[from..to].iter().copied());
                split.next += take;
                return Ok(ReadStatus::More);
            }
        }
        match more_to_come {
            true => Ok(ReadStatus::Pending(Some(self.clock.now() + LOOK_AGAIN))),
            false => Ok(ReadStatus::Idle),
        }
    }

    fn snapshot(&self) -> Vec<SimSplit> {
        self.splits.clone()
    }
}
