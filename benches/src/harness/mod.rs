//! The common part of all benchmarks: candidates run interleaved, several rounds, min / median / max.
//!
//! Every round runs every candidate once, in turn, so that a slow minute of the machine hits all of them; one short round before
//! the first is not counted. No figure is asserted anywhere: a benchmark reports.
//!
//! Owns: candidates, rounds, spreads. Does not own: what is measured, nor how it is shown (see [`crate::report`]).
//! Runs on: the main thread.

mod candidate;
mod outcome;
mod rounds;
mod spread;

pub(crate) use candidate::{Candidate, Run};
pub(crate) use outcome::{Outcome, ratio};
pub(crate) use rounds::{Measured, Rounds};
pub(crate) use spread::Spread;
