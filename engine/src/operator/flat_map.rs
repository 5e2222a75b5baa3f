//! `flat_map`: any number of records out for each record in; can stop in the middle of one.
//!
//! Owns: the user's function and the iterator of the record it stopped in. Does not own: batching. Runs on: the slot's thread.

use super::{BatchCursor, Operator, Output, Progress};
use crate::element::EventTime;
use crate::error::JobError;

/// Applies a function that gives an iterator; the iterator is kept while the output is full.
#[derive(Debug)]
pub struct FlatMap<F, I: IntoIterator> {
    function: F,
    current: Option<(I::IntoIter, Option<EventTime>)>,
}

impl<F, I: IntoIterator> FlatMap<F, I> {
    /// Wraps a function.
    pub fn new(function: F) -> Self {
        Self { function, current: None }
    }
}

impl<In, Out, F, I> Operator<In, Out> for FlatMap<F, I>
where
    In: 'static,
    Out: 'static,
    I: IntoIterator<Item = Out> + 'static,
    F: FnMut(In) -> I + 'static,
{
    fn process(&mut self, input: &mut BatchCursor<In>, out: &mut Output<Out>) -> Result<Progress, JobError> {
        loop {
            if let Some((iterator, time)) = &mut self.current {
                loop {
                    if out.is_full() {
                        return Ok(Progress::More);
                    }
                    match iterator.next() {
                        Some(value) => out.batch.push(value, *time),
                        None => break,
                    }
                }
                self.current = None;
            }
            match input.next() {
                Some((value, time)) => self.current = Some(((self.function)(value).into_iter(), time)),
                None => return Ok(Progress::Done),
            }
        }
    }
}
