//! What a connector may look at before a job runs: its server, with the settings that the job will use.
//!
//! A preflight runs at the first start of a process, before the job is claimed: what it refuses leaves no trace in the commit log. A
//! restart does not repeat it. (A job without checkpoints has no preflight: its connectors find out when they open.)
//!
//! Owns: what is told to a preflight. Does not own: when it runs ([`crate::execution`]). Runs on: the I/O side.

use super::ConnectorError;
use crate::checkpoint::CheckpointConfig;
use crate::clock::SharedClock;
use crate::ids::JobName;
use crate::io::{BoxFuture, SharedIo};

/// What a preflight is told.
#[derive(Clone)]
pub struct PreflightContext {
    /// The job.
    pub job: JobName,
    /// Time.
    pub clock: SharedClock,
    /// Where futures run.
    pub io: SharedIo,
    /// Number of subtasks of the operator that is asked.
    pub parallelism: u32,
    /// Transactions that a subtask of a two-phase sink may hold.
    pub places: usize,
    /// When checkpoints are taken and how many may fail, as the job will use it: with a sink that holds locks, fewer at a time.
    pub checkpoints: CheckpointConfig,
}

/// What a preflight found: warnings for people, a line each, or a refusal.
pub type PreflightResult = Result<Vec<String>, ConnectorError>;

/// The preflight of one operator, ready to run.
pub struct Preflight {
    /// Whose.
    pub operator: String,
    /// The look at the server.
    pub look: BoxFuture<PreflightResult>,
}
