//! `filter`: keeps the records for which a predicate holds.
//!
//! Owns: the user's predicate. Does not own: batching. Runs on: the slot's thread.

use super::{BatchCursor, Operator, Output, Progress};
use crate::error::JobError;

/// Keeps records for which the predicate is true; event times are kept with them.
#[derive(Clone, Debug)]
pub struct Filter<F>(pub F);

impl<T: 'static, F: FnMut(&T) -> bool + 'static> Operator<T, T> for Filter<F> {
    fn process(&mut self, input: &mut BatchCursor<T>, out: &mut Output<T>) -> Result<Progress, JobError> {
        let mut batch = input.take_rest();
        if batch.timestamps.is_empty() {
            batch.values.retain(&mut self.0);
            out.batch.values.append(&mut batch.values);
        } else {
            for (value, time) in batch.values.into_iter().zip(batch.timestamps) {
                if (self.0)(&value) {
                    out.batch.push(value, Some(time));
                }
            }
        }
        Ok(Progress::Done)
    }
}
