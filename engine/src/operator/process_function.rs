//! A function with operator state and an end: for aggregates over all records of a subtask, buffers, tallies.
//!
//! Its state is operator list state: at a restore with another parallelism the elements are dealt out one by one (split).
//!
//! Owns: the calls of the user's function. Does not own: `ended` (see [`super::chained`]). Runs on: the slot's thread.

use tidegate_state::{Redistribution, StateType, encode_list};

use super::{BatchCursor, Operator, OperatorPart, Output, Progress};
use crate::element::EventTime;
use crate::error::JobError;
use crate::ids::OperatorUid;

/// A function over the records of one subtask, whatever their keys.
pub trait ProcessFunction<In, Out>: Clone + Send + 'static {
    /// One element of its state.
    type State: StateType;

    /// Whether it emits at the end of data. A checkpoint in which only some of its subtasks have ended restores only at its
    /// own parallelism (law 7).
    const HAS_ON_END: bool = false;

    /// Handles a record.
    ///
    /// # Errors
    /// Any: the subtask fails with the operator's name.
    fn process(
        &mut self,
        record: In,
        event_time_ms: Option<i64>,
        out: &mut Output<Out>,
    ) -> Result<(), JobError>;

    /// No record follows. Called once in the life of a job, also over restarts.
    ///
    /// # Errors
    /// As for `process`.
    fn on_end(&mut self, out: &mut Output<Out>) -> Result<(), JobError> {
        let _ = out;
        Ok(())
    }

    /// Its state now.
    fn snapshot(&self) -> Vec<Self::State>;

    /// Takes over restored state, before the first record.
    fn restore(&mut self, state: Vec<Self::State>);
}

/// Name of the operator list state of a [`ProcessFunction`].
pub const FUNCTION_STATE: &str = "function";

/// The operator around a [`ProcessFunction`].
#[derive(Debug)]
pub struct RunFunction<F> {
    uid: OperatorUid,
    function: F,
}

impl<F> RunFunction<F> {
    /// Wraps a function that has its restored state.
    pub fn new(uid: OperatorUid, function: F) -> Self {
        Self { uid, function }
    }
}

impl<In: 'static, Out: 'static, F: ProcessFunction<In, Out>> Operator<In, Out> for RunFunction<F> {
    fn process(&mut self, input: &mut BatchCursor<In>, out: &mut Output<Out>) -> Result<Progress, JobError> {
        while let Some((record, time)) = input.next() {
            out.time = time;
            self.function.process(record, time.map(|t| t.0), out)?;
            if out.is_full() {
                return Ok(if input.is_empty() { Progress::Done } else { Progress::More });
            }
        }
        Ok(Progress::Done)
    }

    fn on_end(&mut self, out: &mut Output<Out>) -> Result<Progress, JobError> {
        out.time = out.time.map(|_| EventTime::MAX);
        self.function.on_end(out)?;
        Ok(Progress::Done)
    }

    fn freeze(&mut self) -> Option<OperatorPart> {
        let state = encode_list(&self.function.snapshot());
        let lists = vec![(FUNCTION_STATE.to_owned(), Redistribution::Split, state)];
        Some(OperatorPart { uid: self.uid.clone(), keyed: None, lists, ended: false, comes_later: false })
    }
}
