//! A sink that keeps every record in memory, for tests and examples.
//!
//! Owns: the list. Does not own: an order between subtasks. Runs on: the slot's thread; it waits for nothing.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_engine::api::{ConnectorContext, ConnectorError, Sink, Writer};
use tidegate_engine::element::Batch;

/// Keeps every record. Clones share one list. In one phase: after a restore, records appear again.
#[derive(Debug)]
pub struct CollectSink<T> {
    /// Guards the list. A mutex and no message, since the reader wants what is there now; never held over an await.
    records: Arc<Mutex<Vec<T>>>,
}

impl<T> CollectSink<T> {
    /// An empty list.
    pub fn new() -> Self {
        Self { records: Arc::new(Mutex::new(Vec::new())) }
    }
}

impl<T: Clone> CollectSink<T> {
    /// The records so far: those of one subtask in order, subtasks interleaved as they came.
    pub fn records(&self) -> Vec<T> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl<T> Default for CollectSink<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for CollectSink<T> {
    fn clone(&self) -> Self {
        Self { records: Arc::clone(&self.records) }
    }
}

impl<T: Clone + Send + 'static> Sink for CollectSink<T> {
    type Record = T;
    type Writer = CollectWriter<T>;

    const NEVER_WAITS: bool = true;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<T> {
        std::future::ready(Ok(CollectWriter { sink: self.clone() }))
    }
}

/// Writer of a [`CollectSink`].
#[derive(Debug)]
pub struct CollectWriter<T> {
    sink: CollectSink<T>,
}

impl<T: Clone + Send + 'static> Writer for CollectWriter<T> {
    type Record = T;

    async fn write(&mut self, batch: Batch<T>) -> Result<(), ConnectorError> {
        self.sink.records.lock().unwrap_or_else(PoisonError::into_inner).extend(batch.values);
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
    fn records_are_kept_in_order() {
        let sink = CollectSink::new();
        testing::run(async {
            let mut writer = sink.open(Bench::new().context(), 0).await.unwrap();
            writer.write(Batch::of(vec!["a", "b"])).await.unwrap();
            writer.write(Batch::of(vec!["c"])).await.unwrap();
        });
        assert_eq!(sink.records(), ["a", "b", "c"]);
    }
}
