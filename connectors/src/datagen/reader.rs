//! Makes the records of its splits.
//!
//! Owns: the position in each split. Does not own: time (its context's clock). Runs on: its slot's thread; no I/O.

use tidegate_engine::api::{ConnectorError, ReadStatus, SourceOutput, SplitReader};
use tidegate_engine::clock::SharedClock;

use super::DatagenSplit;
use crate::rate::{Grant, SharedRate};

/// Reader of a [`super::Datagen`].
pub struct DatagenReader<T, F: Fn(u64) -> T> {
    generate: F,
    rate: Option<SharedRate>,
    clock: SharedClock,
    splits: Vec<DatagenSplit>,
    restored_records: u64,
}

impl<T, F: Fn(u64) -> T> DatagenReader<T, F> {
    pub(crate) fn new(generate: F, rate: Option<SharedRate>, clock: SharedClock) -> Self {
        Self { generate, rate, clock, splits: Vec::new(), restored_records: 0 }
    }

    /// The unfinished split that lies furthest behind, so that several splits of one reader go on side by side.
    fn furthest_behind(&mut self) -> Option<&mut DatagenSplit> {
        self.splits.iter_mut().filter(|split| !split.is_finished()).min_by_key(|split| split.next)
    }
}

impl<T: 'static, F: Fn(u64) -> T + 'static> SplitReader for DatagenReader<T, F> {
    type Record = T;
    type Split = DatagenSplit;

    fn add_splits(&mut self, splits: Vec<DatagenSplit>) -> Result<(), ConnectorError> {
        self.restored_records += splits.iter().map(DatagenSplit::handed_out).sum::<u64>();
        self.splits.extend(splits);
        Ok(())
    }

    fn poll(&mut self, output: &mut SourceOutput<T>) -> Result<ReadStatus, ConnectorError> {
        if self.furthest_behind().is_none() {
            return Ok(ReadStatus::Idle);
        }
        let mut granted = output.room();
        if let Some(rate) = &self.rate {
            match rate.grant(self.clock.now(), granted) {
                Grant::Records(records) => granted = records,
                Grant::Wait(moment) => return Ok(ReadStatus::Pending(Some(moment))),
            }
        }
        let mut unfinished = self.splits.iter_mut().filter(|split| !split.is_finished());
        if let (Some(only), None) = (unfinished.next(), unfinished.next()) {
            let indices = std::iter::from_fn(|| only.take()).take(granted);
            output.emit_all(indices.map(&self.generate));
            return Ok(ReadStatus::More);
        }
        for _ in 0..granted {
            let Some(index) = self.furthest_behind().and_then(DatagenSplit::take) else { break };
            output.emit((self.generate)(index));
        }
        Ok(ReadStatus::More)
    }

    fn snapshot(&self) -> Vec<DatagenSplit> {
        self.splits.clone()
    }

    fn restored_records(&self) -> u64 {
        self.restored_records
    }
}
