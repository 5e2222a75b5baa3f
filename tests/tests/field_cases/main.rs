//! Faults that users of other engines reported in public, each as the promise it broke: `field_case_NN_…`.
//!
//! Many stand beside the code or the scenario that they concern; `grep -r field_case_` finds all of them. What has no test of its own yet, and why:
//!
//! - 35 (a rescale of an unaligned checkpoint under back pressure): there are no unaligned checkpoints.
//! - 37 to 52 (windows): there are no windows. Watermarks, idleness and event-time timers have tests beside their code.
//! - 54, 57 (savepoints between incremental checkpoints): there are neither; what holds for the full checkpoints that there are is tested here.
//! - 62 (time to live): states have none.
//!
//! Owns: cases over whole jobs. Does not own: kills (the tests of the orders job). Runs on: the tests' threads and the jobs'.
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

mod bounded;
mod checkpoints;
mod upstream;
