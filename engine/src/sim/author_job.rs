//! An author's own job under simulation: its operators as they are, its sources and sinks exchanged for models.
//!
//! Its graph is recorded anew for each process that starts, as a real process would do it: what the author's function keeps outside of
//! Tidegate's state starts anew with it, or does not, exactly as it would.
//!
//! Owns: the drawing of settings, starts, the call of the author's check. Does not own: the models ([`super::simulated_ends`]), the
//! comparison ([`crate::testkit::Simulation`]). Runs on: the simulation's thread.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};

use super::judge::Cut;
use super::line::Line;
use super::rng::Rng;
use super::scenario::draw_config;
use super::simulated_ends::{Inputs, Outputs, SimulatedEnds};
use super::source::Reading;
use super::subject::Subject;
use crate::api::StreamEnvironment;
use crate::api::environment::DEFAULT_MAX_PARALLELISM;
use crate::error::JobError;
use crate::execution::ExecutionConfig;
use crate::graph::JobGraph;
use crate::ids::{CheckpointId, OperatorUid};
use crate::jobmanager::plan::OperatorKind;
use crate::operator::TransactionName;

/// Subtasks of an operator that has no parallelism of its own, at most.
const PARALLELISM_MAX: u64 = 4;

/// What an author's job is made of.
pub struct AuthorJobParts<'a> {
    /// Records the job.
    pub build: &'a dyn Fn(&StreamEnvironment) -> Result<(), JobError>,
    /// What its sources read.
    pub inputs: &'a Inputs,
    /// Where its output goes.
    pub outputs: &'a Outputs,
    /// Looks at the output when everything has come to its end.
    pub check: &'a dyn Fn(&Outputs) -> Result<(), String>,
}

/// See the module.
pub struct AuthorJob<'a> {
    parts: AuthorJobParts<'a>,
    config: ExecutionConfig,
    written: Arc<AtomicU64>,
    records: u64,
    parallelism: Option<u32>,
    pending_one_in: u64,
    pending_us_max: u64,
    /// Draws the parallelism of a job with a last word, the same at each start: one that has ended in part restores at no other.
    fixed: Rng,
}

impl std::fmt::Debug for AuthorJob<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthorJob").field("inputs", &self.parts.inputs).finish_non_exhaustive()
    }
}

impl<'a> AuthorJob<'a> {
    /// Draws the settings of a seed. `parallelism`: that of every start, instead of a drawn one.
    pub fn draw(rng: &mut Rng, parts: AuthorJobParts<'a>, parallelism: Option<u32>) -> Self {
        let records = parts.inputs.values().map(|input| input.records).sum();
        let batch_records = match rng.below(4) {
            0 => rng.between(13, 32),
            1 => rng.between(5, 12),
            _ => rng.between(1, 4),
        };
        Self {
            config: draw_config(rng, batch_records),
            written: Arc::default(),
            records,
            parallelism,
            pending_one_in: rng.between(3, 40),
            pending_us_max: if rng.one_in(4) { 60_000 } else { 6_000 },
            fixed: rng.fork(),
            parts,
        }
    }

    /// Exchanges sources and sinks for models.
    fn exchange(&self, env: &StreamEnvironment, ends: &SimulatedEnds<'_>) -> Result<(), JobError> {
        let nodes = &mut env.recorded.borrow_mut().nodes;
        for node in nodes.iter_mut() {
            let is_end = matches!(
                node.info.kind,
                OperatorKind::Source | OperatorKind::Sink | OperatorKind::TwoPhaseSink
            );
            if !is_end {
                continue;
            }
            let Some(uid) = node.info.uid.clone() else { continue };
            node.node = node.node.simulated(&uid, node.info.kind, ends)?;
            node.info.holds_locks = false;
        }
        let is_source = |uid: &str| {
            let uid = Some(OperatorUid::from(uid));
            nodes.iter().any(|n| n.info.kind == OperatorKind::Source && n.info.uid == uid)
        };
        match self.parts.inputs.keys().find(|uid| !is_source(uid)) {
            None => Ok(()),
            Some(uid) => {
                Err(JobError::msg(format!("an input is given for source \"{uid}\", which the job has not")))
            }
        }
    }
}

impl Subject for AuthorJob<'_> {
    fn records(&self) -> u64 {
        self.records
    }

    fn batches_per_channel(&self) -> u64 {
        let channels = PARALLELISM_MAX * PARALLELISM_MAX;
        self.records / (channels * self.config.batch_records as u64).max(1)
    }

    fn config(&self) -> &ExecutionConfig {
        &self.config
    }

    fn written(&self) -> &AtomicU64 {
        &self.written
    }

    fn has_files(&self) -> bool {
        false
    }

    fn may_restore_explicitly(&self) -> bool {
        false
    }

    fn may_be_tampered_with(&self) -> bool {
        false
    }

    fn graph(&self, rng: &mut Rng, line: &Line) -> Result<JobGraph, JobError> {
        let env = StreamEnvironment::new();
        (self.parts.build)(&env)?;
        let reading = Reading {
            rng: Arc::new(Mutex::new(rng.fork())),
            pending_one_in: self.pending_one_in,
            pending_us_max: self.pending_us_max,
            written: Arc::clone(&self.written),
        };
        let (inputs, outputs) = (self.parts.inputs, self.parts.outputs);
        self.exchange(&env, &SimulatedEnds { inputs, outputs, reading, line })?;
        let has_last_word = env.recorded.borrow().nodes.iter().any(|n| n.info.has_on_end);
        let mut drawn = if has_last_word { self.fixed.clone() } else { rng.fork() };
        let drawn = u32::try_from(drawn.between(1, PARALLELISM_MAX)).unwrap_or(1);
        let parallelism = self.parallelism.unwrap_or(drawn);
        Ok(env.into_graph("simulated", parallelism, DEFAULT_MAX_PARALLELISM)?)
    }

    fn check(&self, _cuts: &[Cut]) -> Result<(), String> {
        (self.parts.check)(self.parts.outputs)
    }

    fn settle(&self, _now: u64) {}

    fn next_due(&self) -> Option<u64> {
        None
    }

    fn hides_for_us(&self) -> Option<u64> {
        None
    }

    fn hidden(&self) -> usize {
        0
    }

    fn committed_sizes(&self) -> Vec<(CheckpointId, usize)> {
        self.parts.outputs.databases().iter().flat_map(|d| d.committed_sizes()).collect()
    }

    fn left_overs(&self) -> Vec<TransactionName> {
        self.parts.outputs.databases().iter().flat_map(|d| d.left_overs()).collect()
    }

    fn prepared(&self) -> Vec<TransactionName> {
        self.parts.outputs.databases().iter().flat_map(|d| d.prepared()).collect()
    }

    fn roll_back_by_hand(&self, _name: &TransactionName) {}
}
