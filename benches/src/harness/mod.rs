//! The common part of all benchmarks: candidates run interleaved, several rounds, min / median / max.
//!
//! Every round runs every candidate once, in turn, so that a slow minute of the machine hits all of them; one short round before
//! the first is not counted. No figure is asserted anywhere: a benchmark reports.
//!
//! Owns: candidates, rounds, spreads, percentiles. Does not own: what is measured, nor how it is shown (see [`crate::report`]).
//! Runs on: the main thread.

mod candidate;
mod outcome;
mod rounds;
mod samples;
mod spread;

pub(crate) use candidate::{Candidate, Run};
pub(crate) use outcome::{Outcome, Shown, ratio};
pub(crate) use rounds::{Measured, Rounds};
pub(crate) use samples::Samples;
pub(crate) use spread::Spread;
