//! Deterministic simulation: the production subtasks, coordinator, commit log, recovery and sink driver, stepped by one thread
//! that owns time, over in-memory storage and an in-memory two-phase sink, with crashes between any two steps.
//!
//! One seed decides everything: the graph, the input, parallelism at each start, batch and channel sizes, latencies, faults of
//! the store, the moments (or fault points) of crashes, and which of the things that could happen next does. The same seed gives
//! the same run.
//!
//! Owns: time, the executor of I/O futures, the store's faults, the database model, the scheduler, the oracle. Does not own: a
//! single line of what it tests. Runs on: one thread.

pub mod clock;
pub mod database;
pub mod io;
pub mod oracle;
pub mod rng;
pub mod scenario;
pub mod simulation;
pub mod sink;
pub mod source;
pub mod store;

pub use rng::Rng;
pub use simulation::{SimFailure, SimReport, Simulation};
