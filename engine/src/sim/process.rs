//! One simulated process: a job execution with its own futures, over the world's store, database and clock.
//!
//! It can die (its futures are gone, what it has sent may still arrive), or stand still and go on later.
//!
//! Owns: its execution and futures, what it has claimed. Does not own: when it is stepped. Runs on: the simulation's thread.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::blow::ExplicitRestore;
use super::io::SimIo;
use super::rng::Rng;
use crate::clock::Moment;
use crate::error::EngineError;
use crate::execution::{ExecutionNotice, ExecutionStep, JobExecution, JobOutcome, Packet, Role};
use crate::ids::{AttemptId, CheckpointId};
use crate::taskworker::Step;
use crate::taskworker::mail::{TaskEvent, TaskFailure, TaskReport};

/// Why a process does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It runs.
    No,
    /// It goes on at this step.
    Until(u64),
    /// It never goes on.
    ForEver,
}

/// What an attempt has lost.
#[derive(Clone, Copy, Debug)]
struct Bereft {
    attempt: AttemptId,
    lost: Role,
    told_at_us: u64,
}

/// See the module.
pub struct Process {
    /// Its number.
    pub id: u32,
    /// Its futures.
    pub io: Arc<SimIo>,
    /// Its job.
    pub execution: JobExecution,
    /// Attempts it has begun.
    pub attempts: BTreeSet<AttemptId>,
    /// Whether it stands still.
    pub standing: Standing,
    /// What it was told to restore, where that was not the newest checkpoint.
    pub explicit: Option<ExplicitRestore>,
    /// The checkpoint that it was told to rewind to.
    pub rewind: Option<CheckpointId>,
    /// Whether somebody has asked it to stop in order.
    pub canceled: bool,
    /// Whether a checkpoint of its attempt has failed and none has completed since.
    pub failed_before: bool,
    in_flight: u32,
    /// The part that has died, and when the other one is told.
    bereft: Option<Bereft>,
    /// The part that is being stepped, if it is one of them.
    at_work: Option<Role>,
}

impl std::fmt::Debug for Process {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Process")
            .field("id", &self.id)
            .field("standing", &self.standing)
            .finish_non_exhaustive()
    }
}

/// What a step of a process came to.
#[derive(Debug)]
pub enum Stepped {
    /// Something was done.
    Progress,
    /// Nothing could be done before this moment, as far as was looked.
    Nothing(Option<Moment>),
    /// The job is over for this process.
    Over(Result<JobOutcome, EngineError>),
}

impl Process {
    /// A process that runs.
    pub fn new(id: u32, io: Arc<SimIo>, execution: JobExecution, explicit: Option<ExplicitRestore>) -> Self {
        Self {
            id,
            io,
            execution,
            attempts: BTreeSet::new(),
            standing: Standing::No,
            explicit,
            rewind: None,
            canceled: false,
            failed_before: false,
            in_flight: 0,
            bereft: None,
            at_work: None,
        }
    }

    /// Whether it runs.
    pub fn runs(&self) -> bool {
        self.standing == Standing::No
    }

    /// Whether it runs, and with a job manager.
    pub fn leads(&self) -> bool {
        self.runs() && !self.bereft.is_some_and(|b| b.lost == Role::JobManager)
    }

    /// Whether the attempt that runs has lost its worker.
    pub fn lacks_worker(&mut self) -> bool {
        let running = self.execution.attempt().map(|a| a.master().attempt());
        self.bereft.is_some_and(|b| b.lost == Role::Worker && running == Some(b.attempt))
    }

    /// The part that was being stepped when a crash struck.
    pub fn at_work(&self) -> Option<Role> {
        self.at_work
    }

    /// One part of it dies. `false`: no attempt runs that has two.
    pub fn lose(&mut self, part: Role, told_at_us: u64) -> bool {
        let Some(attempt) = self.execution.attempt() else { return false };
        attempt.lose(part);
        self.bereft = Some(Bereft { attempt: attempt.master().attempt(), lost: part, told_at_us });
        true
    }

    /// The part that an attempt has lost, if the other one is told by now, in microseconds.
    pub fn take_bereft(&mut self, now: u64) -> Option<(AttemptId, Role)> {
        self.bereft.take_if(|b| b.told_at_us <= now).map(|b| (b.attempt, b.lost))
    }

    /// Whether an attempt of it runs, or has run.
    pub fn has_begun(&self) -> bool {
        !self.attempts.is_empty()
    }

    /// The job manager hears that its worker is gone: of each subtask, as from a connection that has broken.
    pub fn tell_worker_is_gone(&mut self, of: AttemptId) {
        let plan = Arc::clone(self.execution.plan());
        let Some(attempt) = self.execution.attempt() else { return };
        for subtask in plan.subtasks() {
            let failure = TaskFailure::Operator {
                operator: plan.subtask_name(subtask),
                message: "its worker does not answer any more".to_owned(),
                restartable: true,
            };
            let event = TaskEvent::Failed(failure);
            attempt.deliver(Packet::Report(TaskReport { attempt: of, subtask, event }));
        }
    }

    /// Subtasks that have not answered an orderly cancel, for a report.
    pub fn not_canceled(&mut self) -> Vec<String> {
        match self.canceled {
            true => self.execution.attempt().map_or_else(Vec::new, |a| a.master().not_canceled()),
            false => Vec::new(),
        }
    }

    /// The job manager and each subtask, as the scheduler counts them.
    pub fn units(&mut self) -> u64 {
        self.execution.attempt().map_or(1, |a| a.subtasks() as u64 + 1)
    }

    /// One step of one unit.
    pub fn step_one(&mut self, rng: &mut Rng) -> Stepped {
        self.at_work = None;
        let Some(attempt) = self.execution.attempt() else { return self.step_all() };
        let unit = usize::try_from(rng.below(attempt.subtasks() as u64 + 1)).unwrap_or(0);
        self.at_work = Some(if unit == 0 { Role::JobManager } else { Role::Worker });
        let progress = match unit.checked_sub(1) {
            None => attempt.step_master(),
            Some(subtask) => attempt.step_subtask(subtask) == Step::Progress,
        };
        match self.execution.settle_end() {
            Some(ExecutionStep::Over(result)) => Stepped::Over(result),
            Some(_) => Stepped::Progress,
            None if progress => Stepped::Progress,
            None => Stepped::Nothing(None),
        }
    }

    /// One poll of the nth future that can go on.
    pub fn poll_one(&mut self, nth: usize) {
        let Some(index) = self.io.nth_ready(nth) else { return };
        self.at_work = match self.io.name(index) {
            "start" => None,
            "log entry" | "cleaner" | "discovery" | "orphan sweep" | "last sweep" => Some(Role::JobManager),
            _ => Some(Role::Worker),
        };
        self.io.poll(index);
    }

    /// One step of every unit.
    pub fn step_all(&mut self) -> Stepped {
        self.at_work = None;
        match self.execution.step() {
            ExecutionStep::Over(result) => Stepped::Over(result),
            ExecutionStep::Progress => Stepped::Progress,
            ExecutionStep::Idle(moment) => Stepped::Nothing(moment),
        }
    }

    /// What it has to tell.
    pub fn take_notices(&mut self) -> Vec<ExecutionNotice> {
        let mut notices = Vec::new();
        while let Some(notice) = self.execution.take_notice() {
            notices.push(notice);
        }
        notices
    }

    /// Whether two checkpoints are in flight, where that was not so at the last look.
    pub fn has_two_in_flight(&mut self) -> bool {
        let in_flight = self.execution.attempt().map_or(0, |a| a.master().checkpoints_in_flight());
        let before = std::mem::replace(&mut self.in_flight, in_flight);
        in_flight >= 2 && before < 2
    }

    /// Parallelism of each vertex.
    pub fn parallelism(&self) -> Vec<u32> {
        self.execution.plan().vertices.iter().map(|v| v.parallelism).collect()
    }

    /// It dies: nothing is cleaned up.
    pub fn die(self) {
        let Self { io, execution, .. } = self;
        drop(execution);
        io.crash();
    }
}
