//! Deterministic simulation: the production subtasks, coordinator, commit log, recovery and sink driver, stepped by one thread
//! that owns time, over a simulated store, network and database, with processes that die or stand still between any two steps.
//!
//! One seed decides everything: the graph, the input, parallelism at each start, batch and channel sizes, latencies, faults of
//! store, network and database, when processes are struck (also at fault points) and go on, and which of the things that could
//! happen next does. The same seed gives the same run.
//!
//! A *process* ([`process`]) is a job execution with its own futures. Several may live at once: one that stood still beside its
//! successor is a zombie. The *world* ([`world`]) outlives them. The *schedule* ([`blow`], [`striker`]) says who is struck where.
//! The *oracle* ([`oracle`]) is a plain loop over the input; [`judge`] says which output counts.
//!
//! Owns: time, the executor of I/O futures, faults, database models, the scheduler, the oracle. Does not own: a single line of what
//! it tests. Runs on: one thread.

pub mod any_record;
pub mod author_job;
pub mod blow;
pub mod broker;
pub mod broker_client;
pub mod broker_committer;
pub mod broker_log;
pub mod broker_request;
pub mod broker_sink;
pub mod campaign;
pub mod clock;
pub mod coverage;
pub mod database;
mod falls;
pub mod file_folder;
pub mod file_sink;
pub mod file_system;
pub mod floating;
mod functions;
pub mod io;
pub mod judge;
pub mod line;
pub mod network;
pub mod options;
pub mod oracle;
pub mod process;
pub mod report;
pub mod rng;
pub mod scenario;
mod server;
pub mod shrink;
pub mod simulated_ends;
pub mod simulation;
pub mod sink;
pub mod source;
pub mod store;
pub mod striker;
pub mod subject;
mod verdict;
pub mod world;
pub mod xa_client;
pub mod xa_database;
pub mod xa_sink;

pub use campaign::{Campaign, MINIMUM};
pub use coverage::{Area, Coverage};
pub use options::{ServerKind, SimOptions};
pub use report::{SimFailure, SimReport, Timeline};
pub use rng::Rng;
pub use shrink::shrink;
pub use simulation::Simulation;
