//! What a Kafka source has left out and how far behind it is, for people and metrics.
//!
//! Owns: the counts, the end of each partition as it was last seen. Does not own: the policy for bad records. Runs on: written by the
//! readers of a process, read anywhere.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts over all readers of this process, since it started. After a restart, what lies behind the restored position counts again.
#[derive(Clone, Debug, Default)]
pub struct KafkaCounters(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    records: AtomicU64,
    bad_records: AtomicU64,
    left_out: AtomicU64,
    dead_letters: AtomicU64,
    discoveries: AtomicU64,
    /// By partition. Guards two numbers each and is held for one look: several readers and whoever asks for the lag meet here.
    partitions: Mutex<BTreeMap<i32, Progress>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    position: i64,
    end: i64,
}

impl Progress {
    fn lag(&self) -> u64 {
        u64::try_from(self.end - self.position).unwrap_or(0)
    }
}

impl KafkaCounters {
    /// Records handed to the job.
    pub fn records(&self) -> u64 {
        self.0.records.load(Ordering::Relaxed)
    }

    /// Records that were no record to the deserializer: skipped, or sent to the dead-letter topic.
    pub fn bad_records(&self) -> u64 {
        self.0.bad_records.load(Ordering::Relaxed)
    }

    /// Records that the deserializer left out by its own choice, such as tombstones of a type that has no null.
    pub fn left_out(&self) -> u64 {
        self.0.left_out.load(Ordering::Relaxed)
    }

    /// Bad records that the dead-letter topic has taken.
    pub fn dead_letters(&self) -> u64 {
        self.0.dead_letters.load(Ordering::Relaxed)
    }

    /// How often the topic was looked at for partitions.
    pub fn discoveries(&self) -> u64 {
        self.0.discoveries.load(Ordering::Relaxed)
    }

    /// Offsets between what was handed to the job and the end of the topic as it was last seen (once a second, and whenever the end
    /// of a partition is reached), over the partitions that this process reads. 0 at the end, also behind transaction markers.
    pub fn lag(&self) -> u64 {
        self.partitions().values().map(Progress::lag).sum()
    }

    /// The same over these partitions.
    pub(super) fn lag_of(&self, of: impl Iterator<Item = i32>) -> u64 {
        let partitions = self.partitions();
        of.filter_map(|partition| partitions.get(&partition)).map(Progress::lag).sum()
    }

    pub(super) fn count_records(&self, records: u64) {
        self.0.records.fetch_add(records, Ordering::Relaxed);
    }

    /// The number with this one.
    pub(super) fn count_bad_record(&self) -> u64 {
        self.0.bad_records.fetch_add(1, Ordering::Relaxed) + 1
    }

    pub(super) fn count_left_out(&self) {
        self.0.left_out.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn count_dead_letters(&self, records: u64) {
        self.0.dead_letters.fetch_add(records, Ordering::Relaxed);
    }

    pub(super) fn count_discovery(&self) {
        self.0.discoveries.fetch_add(1, Ordering::Relaxed);
    }

    /// Everything before `position` was handed out.
    pub(super) fn note_position(&self, partition: i32, position: i64) {
        let mut partitions = self.partitions();
        let progress = partitions.entry(partition).or_insert(Progress { position, end: position });
        progress.position = position;
        progress.end = progress.end.max(position);
    }

    /// The partition ends at `end`, which `note_position` made known.
    pub(super) fn note_end(&self, partition: i32, end: i64) {
        if let Some(progress) = self.partitions().get_mut(&partition) {
            progress.end = end;
        }
    }

    fn partitions(&self) -> MutexGuard<'_, BTreeMap<i32, Progress>> {
        self.0.partitions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_is_what_lies_between_the_job_and_the_end() {
        let counters = KafkaCounters::default();
        counters.note_end(0, 50);
        assert_eq!(counters.lag(), 0, "a partition of another process is not counted");
        counters.note_position(0, 10);
        counters.note_position(1, 0);
        counters.note_end(0, 50);
        assert_eq!(counters.lag(), 40);
        counters.note_end(1, 7);
        assert_eq!((counters.lag(), counters.lag_of([0, 9].into_iter())), (47, 40), "those of one reader");
        counters.note_position(1, 7);
        counters.note_position(0, 50);
        assert_eq!(counters.lag(), 0);
        counters.note_position(0, 60);
        assert_eq!(counters.lag(), 0, "a position behind an end that was seen earlier");
    }
}
