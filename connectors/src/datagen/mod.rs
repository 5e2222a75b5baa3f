//! Records made from their index: for benchmarks, demos and tests.
//!
//! The record at index *i* is a function of *i* alone, so a restore makes the same records again, whatever the parallelism. At the
//! first start the indices are dealt out in strides, one split per subtask; splits are list state, so a rescale moves whole splits.
//!
//! Owns: the settings ([`Datagen`]). Does not own: event time (the job's watermarks assign it). Runs on: see each part.

mod enumerator;
mod random;
mod reader;
mod split;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;

pub use enumerator::{DatagenEnumerator, DatagenProgress};
pub use random::Random;
pub use reader::DatagenReader;
pub use split::DatagenSplit;

use tidegate_engine::api::{ConnectorContext, ConnectorError, Source};

use crate::rate::SharedRate;

/// A source that calls a function of the index.
#[derive(Debug)]
pub struct Datagen<T, F> {
    generate: F,
    count: Option<u64>,
    rate: Option<SharedRate>,
    makes: PhantomData<fn() -> T>,
}

impl<T, F> Datagen<T, F>
where
    T: Clone + Send + 'static,
    F: Fn(u64) -> T + Clone + Send + 'static,
{
    /// An unbounded source: record *i* is `generate(i)`, from 0.
    pub fn new(generate: F) -> Self {
        Self { generate, count: None, rate: None, makes: PhantomData }
    }

    /// Ends after `count` records.
    #[must_use]
    pub fn bounded(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// At most this many records per second, over all readers of a process together. A pause is made up for by one batch at most.
    #[must_use]
    pub fn rate_per_second(mut self, rate: u64) -> Self {
        self.rate = Some(SharedRate::per_second(rate));
        self
    }
}

/// A function of the index and of random numbers that are the same at every run: see [`seeded`].
pub fn seeded<T>(
    seed: u64,
    generate: impl Fn(u64, &mut Random) -> T + Clone + Send + 'static,
) -> impl Fn(u64) -> T + Clone + Send + 'static {
    move |index| generate(index, &mut Random::of(seed, index))
}

impl<T, F: Clone> Clone for Datagen<T, F> {
    fn clone(&self) -> Self {
        Self {
            generate: self.generate.clone(),
            count: self.count,
            rate: self.rate.clone(),
            makes: PhantomData,
        }
    }
}

impl<T, F> Source for Datagen<T, F>
where
    T: Clone + Send + 'static,
    F: Fn(u64) -> T + Clone + Send + 'static,
{
    type Record = T;
    type Split = DatagenSplit;
    type Enumerator = DatagenEnumerator;
    type Reader = DatagenReader<T, F>;

    fn validate(&self) -> Result<(), ConnectorError> {
        match &self.rate {
            Some(rate) if rate.records_per_second() == 0 => Err(ConnectorError::fatal(
                "datagen: a rate of 0 records per second never ends; leave the rate away for no limit",
            )),
            _ => Ok(()),
        }
    }

    fn enumerator(&self, parallelism: u32) -> DatagenEnumerator {
        DatagenEnumerator::new(self.count, parallelism)
    }

    fn reader(&self, context: ConnectorContext, _subtask: u32) -> DatagenReader<T, F> {
        DatagenReader::new(self.generate.clone(), self.rate.clone(), context.clock)
    }

    fn total_records(&self) -> Option<u64> {
        self.count
    }
}
