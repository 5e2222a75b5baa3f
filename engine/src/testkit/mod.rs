//! What an author tests a job with: the job as it is, its sources fed by hand, its sinks looked into, time moved by hand.
//!
//! The operators are those of a run; sources and sinks are exchanged for scripts. Everything happens on the test's thread, one step at a
//! time, so a test neither sleeps nor polls. There are no checkpoints: crashes are the simulation's subject.
//!
//! Owns: [`JobHarness`] and its two scripts. Does not own: the operators. Runs on: the test's thread.

mod harness;
mod script;

#[cfg(test)]
mod tests;

pub use harness::JobHarness;
pub use script::{CollectedSink, ScriptedSource};

pub(crate) use script::Script;
