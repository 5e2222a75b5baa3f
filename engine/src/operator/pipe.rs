//! `pipe`: several small steps composed at compile time into one operator.
//!
//! `stream.pipe(map(f).filter(g).map(h))` runs one loop over the batch with everything inlined; between operators of a chain there
//! is otherwise one `dyn` call per batch.
//!
//! Owns: the combinators. Does not own: batching. Runs on: the slot's thread.

use super::{BatchCursor, Operator, Output, Progress};
use crate::error::JobError;

/// A step from one record to at most one record.
pub trait Pipe<In>: Clone + Send + 'static {
    /// What comes out.
    type Out;

    /// Runs the step; `None` drops the record.
    fn run(&mut self, value: In) -> Option<Self::Out>;
}

/// Builds pipes: start with [`map`] or [`filter`].
#[derive(Clone, Debug)]
pub struct Steps<P>(P);

/// The step of [`map`].
#[derive(Clone, Debug)]
pub struct MapStep<F>(F);

/// The step of [`filter`].
#[derive(Clone, Debug)]
pub struct FilterStep<F>(F);

/// One step behind another.
#[derive(Clone, Debug)]
pub struct Then<A, B>(A, B);

/// Starts a pipe with a function.
pub fn map<F>(function: F) -> Steps<MapStep<F>> {
    Steps(MapStep(function))
}

/// Starts a pipe with a predicate.
pub fn filter<F>(predicate: F) -> Steps<FilterStep<F>> {
    Steps(FilterStep(predicate))
}

impl<P> Steps<P> {
    /// Adds a function.
    pub fn map<F>(self, function: F) -> Steps<Then<P, MapStep<F>>> {
        Steps(Then(self.0, MapStep(function)))
    }

    /// Adds a predicate.
    pub fn filter<F>(self, predicate: F) -> Steps<Then<P, FilterStep<F>>> {
        Steps(Then(self.0, FilterStep(predicate)))
    }
}

impl<In, P: Pipe<In>> Pipe<In> for Steps<P> {
    type Out = P::Out;

    #[inline]
    fn run(&mut self, value: In) -> Option<P::Out> {
        self.0.run(value)
    }
}

impl<In, Out, F: FnMut(In) -> Out + Clone + Send + 'static> Pipe<In> for MapStep<F> {
    type Out = Out;

    #[inline]
    fn run(&mut self, value: In) -> Option<Out> {
        Some((self.0)(value))
    }
}

impl<T, F: FnMut(&T) -> bool + Clone + Send + 'static> Pipe<T> for FilterStep<F> {
    type Out = T;

    #[inline]
    fn run(&mut self, value: T) -> Option<T> {
        (self.0)(&value).then_some(value)
    }
}

impl<In, A: Pipe<In>, B: Pipe<A::Out>> Pipe<In> for Then<A, B> {
    type Out = B::Out;

    #[inline]
    fn run(&mut self, value: In) -> Option<B::Out> {
        self.1.run(self.0.run(value)?)
    }
}

/// A pipe as an operator.
#[derive(Clone, Debug)]
pub struct Piped<P>(pub P);

impl<In: 'static, P: Pipe<In>> Operator<In, P::Out> for Piped<P>
where
    P::Out: 'static,
{
    fn process(
        &mut self,
        input: &mut BatchCursor<In>,
        out: &mut Output<P::Out>,
    ) -> Result<Progress, JobError> {
        let batch = input.take_rest();
        if batch.timestamps.is_empty() {
            let length = batch.len();
            let values = batch.values.into_iter().filter_map(|value| self.0.run(value));
            if out.batch.is_empty() && same_layout::<In, P::Out>() {
                // Collects into the allocation of the input.
                out.batch.values = values.collect();
            } else {
                out.batch.values.reserve(length);
                out.batch.values.extend(values);
            }
        } else {
            for (value, time) in batch.values.into_iter().zip(batch.timestamps) {
                if let Some(value) = self.0.run(value) {
                    out.batch.push(value, Some(time));
                }
            }
        }
        Ok(Progress::Done)
    }
}

fn same_layout<A, B>() -> bool {
    size_of::<A>() == size_of::<B>() && align_of::<A>() == align_of::<B>()
}
