//! What a connector may look at before a job runs: its server, with the settings that the job will use.
//!
//! A preflight runs at the first start of a process, before the job is claimed: what it refuses leaves no trace in the commit log. A
//! restart does not repeat it. (A job without checkpoints has no preflight: its connectors find out when they open.)
//!
//! Owns: what is told to a preflight. Does not own: when it runs ([`crate::execution`]). Runs on: the I/O side.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
    /// What all operators of the job need together.
    pub needs: JobNeeds,
}

/// What the operators of a job need together, such as sessions of a server that several sinks write to. Each adds its share and learns
/// the sum so far; whoever brings it above a limit refuses, so that it does not matter who asks first.
#[derive(Clone, Debug, Default)]
pub struct JobNeeds {
    /// A mutex, since looks may run on any thread; held for one addition.
    sums: Arc<Mutex<BTreeMap<String, u64>>>,
}

impl JobNeeds {
    /// Adds a share of `what`, which all operators that need it call alike; the sum.
    pub fn add(&self, what: &str, share: u64) -> u64 {
        let mut sums = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = sums.entry(what.to_owned()).or_default();
        *sum = sum.saturating_add(share);
        *sum
    }
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
