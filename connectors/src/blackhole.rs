//! A sink that takes everything, keeps nothing and counts.
//!
//! Owns: the counter. Does not own: anything else. Runs on: the slot's thread; it waits for nothing.

use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_engine::api::{ConnectorContext, ConnectorError, Sink, Writer};
use tidegate_engine::element::Batch;

/// Drops every record. Clones share one counter.
#[derive(Debug)]
pub struct BlackholeSink<T> {
    records: Arc<AtomicU64>,
    takes: PhantomData<fn(T)>,
}

impl<T> BlackholeSink<T> {
    /// A blackhole whose counter stands at 0.
    pub fn new() -> Self {
        Self { records: Arc::new(AtomicU64::new(0)), takes: PhantomData }
    }

    /// How many records have gone, over all subtasks of this process and all attempts.
    pub fn records(&self) -> u64 {
        self.records.load(Ordering::Relaxed)
    }
}

impl<T> Default for BlackholeSink<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for BlackholeSink<T> {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records), takes: PhantomData }
    }
}

impl<T: Clone + Send + 'static> Sink for BlackholeSink<T> {
    type Record = T;
    type Writer = BlackholeWriter<T>;

    const NEVER_WAITS: bool = true;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<T> {
        std::future::ready(Ok(BlackholeWriter { sink: self.clone() }))
    }
}

/// Writer of a [`BlackholeSink`].
#[derive(Debug)]
pub struct BlackholeWriter<T> {
    sink: BlackholeSink<T>,
}

impl<T: Clone + Send + 'static> Writer for BlackholeWriter<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.sink.records.fetch_add(batch.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{self, Bench};

    #[test]
    fn it_counts_the_records_of_all_subtasks() {
        let sink = BlackholeSink::new();
        testing::run(async {
            let bench = Bench::new();
            for subtask in 0..3 {
                let mut writer = sink.open(bench.context(), subtask).await.unwrap();
                writer.write(Batch::of(vec![1, 2])).await.unwrap();
                writer.flush().await.unwrap();
            }
        });
        assert_eq!(sink.records(), 6);
    }
}
