//! The loop that a programmer would write without an engine: a batch in, a batch out, buffers used again.
//!
//! Owns: it, and the floor below all candidates (making the records). Does not own: the steps. Runs on: the main thread.

use std::hint::black_box;

use super::records::{ChainRecord, kept};
use crate::error::BenchError;
use crate::harness::Run;
use crate::stopwatch::Stopwatch;

/// Records in a batch, as in the engine.
pub(super) const BATCH: u64 = 1_024;

/// Makes the records in batches and drops them.
pub(super) fn make_only<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    let mut batch: Vec<R> = Vec::with_capacity(BATCH as usize);
    let watch = Stopwatch::start();
    for start in (0..records).step_by(BATCH as usize) {
        batch.extend((start..records.min(start + BATCH)).map(R::make));
        black_box(&mut batch).clear();
    }
    Ok(watch.stop(records))
}

/// One static loop over each batch.
pub(super) fn run<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    let mut batch: Vec<R> = Vec::with_capacity(BATCH as usize);
    let mut out: Vec<R> = Vec::with_capacity(BATCH as usize);
    let mut written = 0;
    let watch = Stopwatch::start();
    for start in (0..records).step_by(BATCH as usize) {
        batch.extend((start..records.min(start + BATCH)).map(R::make));
        out.extend(black_box(&mut batch).drain(..).map(R::first).filter(R::keep).map(R::second));
        written += black_box(&mut out).len() as u64;
        out.clear();
    }
    let run = watch.stop(records);
    check("by hand", written, kept::<R>(records)).map(|()| run)
}

/// Refuses figures of a candidate that lost or made up records.
pub(super) fn check(candidate: &str, got: u64, expected: u64) -> Result<(), BenchError> {
    if got == expected {
        return Ok(());
    }
    Err(BenchError::WrongResult { candidate: candidate.to_owned(), got, expected })
}
