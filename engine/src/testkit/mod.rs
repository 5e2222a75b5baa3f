//! What an author tests a job with: the job as it is, its sources fed by hand, its sinks looked into, time moved by hand.
//!
//! The operators are those of a run; sources and sinks are exchanged for scripts. Everything happens on the test's thread, one step at a
//! time, so a test neither sleeps nor polls. There are no checkpoints in a [`JobHarness`].
//!
//! [`Simulation`] runs the same job through crashes, lost messages, lying stores and rescales, and compares what comes out with a run in which
//! nothing goes wrong.
//!
//! Owns: [`JobHarness`] and its two scripts, [`Simulation`] and its comparison. Does not own: the operators, the simulated world
//! ([`crate::sim`]). Runs on: the test's thread.

mod harness;
mod script;
mod simulated_run;
mod simulation;

#[cfg(test)]
mod tests;

pub use harness::JobHarness;
pub use script::{CollectedSink, ScriptedSource};
pub use simulated_run::{Mismatch, SimulatedRun, SinkOutput};
pub use simulation::{Simulation, SimulationFailure, SimulationReport};

pub(crate) use script::Script;
