//! The source of a simulation: partitions of a log that show up one after the other; reads stay pending now and then.
//!
//! Owns: partitions. Does not own: when they are read. Runs on: the simulation's thread.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::rng::Rng;
use crate::api::{
    Assignment, ConnectorContext, ConnectorError, ReadStatus, Source, SourceOutput, SplitEnumerator,
    SplitReader,
};
use crate::clock::SharedClock;
use crate::element::Batch;
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

/// The input of one source, by partition, with event times where it has them.
pub struct Partitions<T> {
    /// Guards what nobody changes: a source must be `Send`, and its records need not be `Sync`.
    partitions: Arc<Mutex<Vec<Batch<T>>>>,
}

impl<T> Clone for Partitions<T> {
    fn clone(&self) -> Self {
        Self { partitions: Arc::clone(&self.partitions) }
    }
}

impl<T> Partitions<T> {
    /// These.
    pub fn of(partitions: Vec<Batch<T>>) -> Self {
        Self { partitions: Arc::new(Mutex::new(partitions)) }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Batch<T>>> {
        self.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self) -> u32 {
        u32::try_from(self.lock().len()).unwrap_or(u32::MAX)
    }

    /// Records in all.
    pub fn records(&self) -> u64 {
        self.lock().iter().map(|partition| partition.len() as u64).sum()
    }
}

impl<T> std::fmt::Debug for Partitions<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Partitions({} records)", self.records())
    }
}

/// How a source of a seed reads.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Guards the stream of numbers; one thread uses it.
    pub rng: Arc<Mutex<Rng>>,
    /// One read in so many stays pending.
    pub pending_one_in: u64,
    /// For so many microseconds at most.
    pub pending_us_max: u64,
    /// How much of each partition has been written so far, in thousandths: the scheduler lets the input grow.
    pub written: Arc<AtomicU64>,
}

impl Reading {
    fn rng(&self) -> MutexGuard<'_, Rng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// See the module.
#[derive(Debug)]
pub struct SimSource<T> {
    /// The input.
    pub partitions: Partitions<T>,
    /// How it reads.
    pub reading: Reading,
}

impl<T> Clone for SimSource<T> {
    fn clone(&self) -> Self {
        Self { partitions: self.partitions.clone(), reading: self.reading.clone() }
    }
}

/// A partition and the position in it.
#[derive(Clone, Debug, tidegate_state::StateType)]
pub struct SimSplit {
    partition: u32,
    next: u64,
}

impl<T: Clone + Send + 'static> Source for SimSource<T> {
    type Record = T;
    type Split = SimSplit;
    type Enumerator = SimEnumerator;
    type Reader = SimReader<T>;

    fn enumerator(&self, parallelism: u32) -> SimEnumerator {
        let partitions = self.partitions.count();
        let reading = self.reading.clone();
        SimEnumerator { reading, partitions, parallelism, assigned: Vec::new(), visible: 0 }
    }

    fn reader(&self, context: ConnectorContext, _subtask: u32) -> SimReader<T> {
        SimReader { source: self.clone(), clock: context.clock, splits: Vec::new(), turn: 0 }
    }
}

/// Finds partitions step by step.
#[derive(Debug)]
pub struct SimEnumerator {
    reading: Reading,
    partitions: u32,
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
        let mut rng = self.reading.rng();
        self.visible = (self.visible + u32::try_from(rng.between(1, 3)).unwrap_or(1)).min(self.partitions);
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
        self.assigned.len() == self.partitions as usize
    }

    fn snapshot(&self) -> Vec<u32> {
        self.assigned.clone()
    }
}

/// Reads its partitions in turn.
#[derive(Debug)]
pub struct SimReader<T> {
    source: SimSource<T>,
    clock: SharedClock,
    splits: Vec<SimSplit>,
    turn: usize,
}

impl std::fmt::Debug for dyn crate::clock::Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Clock({:?})", self.now())
    }
}

impl<T: Clone + Send + 'static> SplitReader for SimReader<T> {
    type Record = T;
    type Split = SimSplit;

    fn add_splits(&mut self, splits: Vec<SimSplit>) -> Result<(), ConnectorError> {
        self.splits.extend(splits);
        Ok(())
    }

    fn poll(&mut self, output: &mut SourceOutput<T>) -> Result<ReadStatus, ConnectorError> {
        let SimSource { partitions, reading } = &self.source;
        let mut rng = reading.rng();
        if rng.one_in(reading.pending_one_in) {
            let span = Duration::from_micros(rng.between(100, reading.pending_us_max));
            return Ok(ReadStatus::Pending(Some(self.clock.now() + span)));
        }
        let written = reading.written.load(Ordering::Relaxed);
        let partitions = partitions.lock();
        let mut more_to_come = false;
        for _ in 0..self.splits.len() {
            self.turn = (self.turn + 1) % self.splits.len();
            let split = &mut self.splits[self.turn];
            let partition = &partitions[split.partition as usize];
            let there = partition.len() as u64 * written / 1_000;
            more_to_come |= there < partition.len() as u64;
            let left = there.saturating_sub(split.next);
            if left > 0 {
                let take = rng.between(1, left.min(output.room() as u64));
                let from = usize::try_from(split.next).unwrap_or(usize::MAX);
                let to = from + usize::try_from(take).unwrap_or(0);
                for (at, record) in partition.values[from..to].iter().enumerate() {
                    match partition.time(from + at) {
                        Some(time) => output.emit_at(record.clone(), time),
                        None => output.emit(record.clone()),
                    }
                }
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
