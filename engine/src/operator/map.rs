//! `map`: one record out for each record in.
//!
//! Owns: the user's function. Does not own: batching. Runs on: the slot's thread.

use super::{BatchCursor, Operator, Output, Progress, SplitHearing};
use crate::element::Batch;
use crate::error::JobError;

/// Applies a function to each record; event times are kept.
#[derive(Clone, Debug)]
pub struct Map<F>(pub F);

impl<In: 'static, Out: 'static, F: FnMut(In) -> Out + 'static> Operator<In, Out> for Map<F> {
    fn process(&mut self, input: &mut BatchCursor<In>, out: &mut Output<Out>) -> Result<Progress, JobError> {
        let Batch { values, timestamps } = input.take_rest();
        out.batch.timestamps.extend(timestamps);
        if out.batch.values.is_empty() {
            // Reuses the allocation where both types have the same layout.
            out.batch.values = values.into_iter().map(&mut self.0).collect();
        } else {
            out.batch.values.extend(values.into_iter().map(&mut self.0));
        }
        Ok(Progress::Done)
    }
}

/// Hands every batch on as it is: the first stage behind a source, which gives it one downstream.
#[derive(Clone, Copy, Debug)]
pub struct Identity;

impl<T: 'static> Operator<T, T> for Identity {
    fn split_hearing(&self) -> SplitHearing {
        SplitHearing::HandsOn
    }

    fn process(&mut self, input: &mut BatchCursor<T>, out: &mut Output<T>) -> Result<Progress, JobError> {
        let mut batch = input.take_rest();
        if out.batch.is_empty() {
            out.batch = batch;
        } else {
            out.batch.values.append(&mut batch.values);
            out.batch.timestamps.append(&mut batch.timestamps);
        }
        Ok(Progress::Done)
    }
}
