//! A sink that keeps nothing but times: of its first record, and from each record's making to here.
//!
//! Owns: the measured times. Does not own: the clock, which the source stamps by. Runs on: the I/O side.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tidegate_engine::api::{ConnectorContext, ConnectorError, Sink, Writer};
use tidegate_engine::clock::{Moment, SharedClock};
use tidegate_engine::element::Batch;

use crate::harness::Samples;

/// When a record was made, if it says so.
pub(crate) type MadeAt<T> = fn(&T) -> Option<Moment>;

/// Clones share what is measured.
pub(crate) struct TimedSink<T> {
    clock: SharedClock,
    made_at: MadeAt<T>,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    records: AtomicU64,
    /// Nanoseconds of the clock; 0 before the first record.
    first_at: AtomicU64,
    /// Guards what all writers have measured: they run on several threads and add a batch at a time.
    samples: Mutex<Samples>,
}

impl<T> Clone for TimedSink<T> {
    fn clone(&self) -> Self {
        Self { clock: Arc::clone(&self.clock), made_at: self.made_at, seen: Arc::clone(&self.seen) }
    }
}

impl<T> TimedSink<T> {
    /// Measures by `clock`.
    pub(crate) fn new(clock: SharedClock, made_at: MadeAt<T>) -> Self {
        Self { clock, made_at, seen: Arc::default() }
    }

    /// How many records have come.
    pub(crate) fn records(&self) -> u64 {
        self.seen.records.load(Ordering::Relaxed)
    }

    /// When the first one came.
    pub(crate) fn first_at(&self) -> Option<Moment> {
        let nanos = self.seen.first_at.load(Ordering::Relaxed);
        (nanos > 0).then(|| Moment::from_nanos(nanos))
    }

    /// From making to sink.
    pub(crate) fn samples(&self) -> Samples {
        self.seen.samples.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T: Clone + Send + 'static> Sink for TimedSink<T> {
    type Record = T;
    type Writer = TimedWriter<T>;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<T> {
        std::future::ready(Ok(TimedWriter { sink: self.clone() }))
    }
}

/// Writer of a [`TimedSink`].
pub(crate) struct TimedWriter<T> {
    sink: TimedSink<T>,
}

impl<T: Clone + Send + 'static> Writer for TimedWriter<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        let (seen, now) = (&self.sink.seen, self.sink.clock.now());
        if seen.records.fetch_add(batch.len() as u64, Ordering::Relaxed) == 0 {
            let nanos = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX).max(1);
            seen.first_at.store(nanos, Ordering::Relaxed);
        }
        let mut samples = seen.samples.lock().unwrap_or_else(PoisonError::into_inner);
        for made_at in batch.values.iter().filter_map(self.sink.made_at) {
            samples.add(now.saturating_sub(made_at));
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}
