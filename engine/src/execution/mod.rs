//! Carries a job out in one process: claim, restore, build, step, restart, end.
//!
//! Owns: the life of a job over its attempts, and the carrying out of what the job master decides. Does not own: decisions
//! ([`crate::jobmanager`], [`crate::checkpoint`]). Runs on: the thread that steps it; claim, restore and log run on [`crate::io::Io`].

pub mod attempt;
mod begin_attempt;
pub mod config;
pub mod control;
pub mod delivery;
pub mod io_scope;
pub mod job_execution;
pub mod local_runner;
pub mod output_look;
pub mod output_meter;
mod role;
pub mod start;

pub use attempt::Slots;
pub use config::{ExecutionConfig, RestoreFrom};
pub use delivery::{Delivery, Packet, SharedDelivery, Straight};
pub use job_execution::{ExecutionNotice, ExecutionSetup, ExecutionStep, JobExecution, JobOutcome};
pub use local_runner::{CancelHandle, LocalRunner};
pub use output_meter::OutputFigures;
pub use role::Role;
