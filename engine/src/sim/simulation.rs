//! The scheduler: picks what happens next, crashes the process, restarts it, and judges the outcome.
//!
//! Owns: the order of events, crashes, the deadline. Does not own: what the parts do. Runs on: one thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use object_store::ObjectStore;
use object_store::memory::InMemory;
use tidegate_state::CheckpointStorage;
use tidegate_state::storage::FaultyStore;

use super::clock::SimClock;
use super::database::Database;
use super::io::SimIo;
use super::rng::Rng;
use super::scenario::Scenario;
use super::sink::Line;
use super::store::SimStoreFaults;
use crate::checkpoint::commit_log::LogError;
use crate::error::EngineError;
use crate::execution::{ExecutionNotice, ExecutionSetup, ExecutionStep, JobExecution, JobOutcome};
use crate::fault::{SimulatedCrash, set_handler};
use crate::io::{Io, NoWake};
use crate::jobmanager::MasterNotice;
use crate::taskworker::Step;

/// Steps in which a seed must come to its end.
const STEPS_MAX: u64 = 3_000_000;
/// Crashes of a seed.
const CRASHES: std::ops::RangeInclusive<u64> = 2..=4;

/// What a clean run came to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SimReport {
    /// The seed.
    pub seed: u64,
    /// Scheduler steps.
    pub steps: u64,
    /// Simulated time, in microseconds.
    pub micros: u64,
    /// Crashes between steps, and at fault points by name.
    pub crashes: BTreeMap<&'static str, u64>,
    /// Checkpoints completed.
    pub completed: u64,
    /// Checkpoints that failed.
    pub failed: u64,
    /// Restored transactions that recovery committed.
    pub recovered_commits: u64,
    /// Left-overs that recovery rolled back.
    pub rolled_back: u64,
    /// Puts refused, and puts applied and answered with an error.
    pub store_faults: (u64, u64),
    /// Restarts inside one process.
    pub restarts: u64,
}

/// Why a seed is not clean.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("seed {seed}: {what}")]
pub struct SimFailure {
    /// The seed: the same seed gives the same run.
    pub seed: u64,
    /// What went wrong.
    pub what: String,
}

/// One seed.
pub struct Simulation {
    rng: Rng,
    clock: Arc<SimClock>,
    io: Arc<SimIo>,
    store: Arc<dyn ObjectStore>,
    faults: Arc<SimStoreFaults>,
    database: Database,
    line: Line,
    scenario: Scenario,
    execution: Option<JobExecution>,
    idle: u64,
    plan: CrashPlan,
    report: SimReport,
    tracing: bool,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").field("report", &self.report).finish_non_exhaustive()
    }
}

/// When the process dies next.
#[derive(Debug)]
struct CrashPlan {
    left: u64,
    at_step: Option<u64>,
    /// Passes of fault points until one strikes; shared with the handler.
    passes_left: Rc<RefCell<Option<u64>>>,
    completed_at_last: u64,
}

enum Verdict {
    GoOn,
    Finished,
}

impl Simulation {
    /// Runs one seed.
    ///
    /// # Errors
    /// [`SimFailure`]: output, left-overs or progress are not as promised.
    pub fn run(seed: u64) -> Result<SimReport, SimFailure> {
        let mut simulation = Self::new(seed);
        let result = simulation.run_to_end();
        set_handler(None);
        let report = simulation.finish_report();
        match result {
            Ok(()) => Ok(report),
            Err(what) => Err(SimFailure { seed, what: format!("{what}\n  {report:?}") }),
        }
    }

    fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let clock = SimClock::shared();
        let latency = [0, 200, 1_500, 6_000][usize::try_from(rng.below(4)).unwrap_or(0)];
        let fault_one_in = [1_000_000, 60, 15][usize::try_from(rng.below(3)).unwrap_or(0)];
        let faults = Arc::new(SimStoreFaults::new(Arc::clone(&clock), rng.fork(), latency, fault_one_in));
        let store: Arc<dyn ObjectStore> =
            Arc::new(FaultyStore::new(Arc::new(InMemory::new()), Arc::clone(&faults) as _));
        let line = Line {
            clock: Arc::clone(&clock),
            rng: Arc::new(Mutex::new(rng.fork())),
            latency_us_max: [0, 300, 2_000][usize::try_from(rng.below(3)).unwrap_or(0)],
            stall_one_in: [1_000_000, 3_000, 400][usize::try_from(rng.below(3)).unwrap_or(0)],
            stalls_left: Arc::new(AtomicU64::new(rng.between(0, 3))),
            calm: Arc::clone(&faults.calm),
        };
        let scenario = Scenario::draw(&mut rng);
        let plan = CrashPlan {
            left: rng.between(*CRASHES.start(), *CRASHES.end()),
            at_step: None,
            passes_left: Rc::default(),
            completed_at_last: 0,
        };
        Self {
            io: SimIo::new(Arc::clone(&clock)),
            rng,
            clock,
            store,
            faults,
            database: Database::default(),
            line,
            scenario,
            execution: None,
            idle: 0,
            plan,
            report: SimReport { seed, ..SimReport::default() },
            tracing: std::env::var_os("TIDEGATE_SIM_TRACE").is_some(),
        }
    }

    fn run_to_end(&mut self) -> Result<(), String> {
        self.arm_handler();
        loop {
            self.report.steps += 1;
            if self.report.steps > STEPS_MAX {
                return Err(format!("no end within {STEPS_MAX} steps; I/O waiting: {:?}", self.io.names()));
            }
            if self.plan.at_step == Some(self.report.steps) {
                self.crash("between two steps");
            }
            self.plan_crash();
            let step = catch_unwind(AssertUnwindSafe(|| self.step()));
            match step {
                Ok(Ok(Verdict::GoOn)) => {}
                Ok(Ok(Verdict::Finished)) => return self.judge(),
                Ok(Err(what)) => return Err(what),
                Err(panic) => match panic.downcast_ref::<SimulatedCrash>() {
                    Some(crash) => self.crash(crash.point),
                    None => resume_unwind(panic),
                },
            }
        }
    }

    /// Arms the thread's fault points: the pass that brings the count to zero kills the process.
    fn arm_handler(&self) {
        let left = Rc::clone(&self.plan.passes_left);
        set_handler(Some(Box::new(move |point| {
            let mut left = left.borrow_mut();
            match *left {
                Some(0) => {
                    *left = None;
                    drop(left);
                    resume_unwind(Box::new(SimulatedCrash { point }));
                }
                Some(n) => *left = Some(n - 1),
                None => {}
            }
        })));
    }

    /// Chooses the next crash, once a checkpoint has completed since the last one.
    fn plan_crash(&mut self) {
        let planned = self.plan.at_step.is_some() || self.plan.passes_left.borrow().is_some();
        if planned || self.plan.left == 0 || self.report.completed == self.plan.completed_at_last {
            return;
        }
        if self.rng.one_in(2) {
            self.plan.at_step = Some(self.report.steps + self.rng.between(1, 2_500));
        } else {
            *self.plan.passes_left.borrow_mut() = Some(self.rng.below(120));
        }
    }

    fn crash(&mut self, place: &'static str) {
        self.trace(|| format!("crash {place}"));
        *self.report.crashes.entry(place).or_default() += 1;
        self.plan.left = self.plan.left.saturating_sub(1);
        self.plan.at_step = None;
        *self.plan.passes_left.borrow_mut() = None;
        self.plan.completed_at_last = self.report.completed;
        if self.plan.left == 0 {
            self.faults.calm.store(true, Ordering::Relaxed);
        }
        set_handler(None);
        self.execution = None;
        self.io.crash();
        self.idle = 0;
        self.arm_handler();
    }

    fn start(&mut self) -> Result<(), String> {
        let graph =
            self.scenario.graph(&mut self.rng, &self.database, &self.line).map_err(|e| e.to_string())?;
        let execution = JobExecution::new(ExecutionSetup {
            graph,
            config: self.scenario.config.clone(),
            storage: Some(CheckpointStorage::over(Arc::clone(&self.store), "simulated://checkpoints")),
            io: Arc::clone(&self.io) as Arc<dyn Io>,
            clock: Arc::clone(&self.clock) as _,
            waker: Arc::new(NoWake),
            slots: crate::execution::Slots::Inline,
            seed: u128::from(self.rng.draw()) << 64 | u128::from(self.rng.draw()),
        });
        self.execution = Some(execution.map_err(|e| e.to_string())?);
        Ok(())
    }

    /// One thing that could happen next does.
    fn step(&mut self) -> Result<Verdict, String> {
        if self.execution.is_none() {
            self.start()?;
        }
        let ready = self.io.ready();
        let pick = self.rng.below(10);
        if pick < 4 && ready > 0 {
            let nth = usize::try_from(self.rng.below(ready as u64)).unwrap_or(0);
            if let Some(index) = self.io.nth_ready(nth) {
                self.io.poll(index);
            }
            self.idle = 0;
        } else if pick == 9 {
            self.clock.advance(self.rng.below(120));
        } else {
            let verdict = self.step_job()?;
            if let Verdict::Finished = verdict {
                return Ok(verdict);
            }
        }
        self.take_notices()?;
        self.leap(ready);
        Ok(Verdict::GoOn)
    }

    fn step_job(&mut self) -> Result<Verdict, String> {
        let Some(execution) = &mut self.execution else { return Ok(Verdict::GoOn) };
        let progress = if let Some(attempt) = execution.attempt() {
            let unit = usize::try_from(self.rng.below(attempt.subtasks() as u64 + 1)).unwrap_or(0);
            let progress = match unit.checked_sub(1) {
                None => attempt.step_master(),
                Some(subtask) => attempt.step_subtask(subtask) == Step::Progress,
            };
            match execution.settle_end() {
                Some(ExecutionStep::Over(result)) => return Self::over(result),
                Some(_) => true,
                None => progress,
            }
        } else {
            match execution.step() {
                // The store failed before anything was claimed: whoever started the process starts it again.
                ExecutionStep::Over(Err(EngineError::Storage(_))) => {
                    self.execution = None;
                    self.io.crash();
                    return Ok(Verdict::GoOn);
                }
                ExecutionStep::Over(result) => return Self::over(result),
                ExecutionStep::Progress => true,
                ExecutionStep::Idle(_) => false,
            }
        };
        self.idle = if progress { 0 } else { self.idle + 1 };
        Ok(Verdict::GoOn)
    }

    fn over(result: Result<JobOutcome, EngineError>) -> Result<Verdict, String> {
        match result {
            Ok(JobOutcome::Finished) => Ok(Verdict::Finished),
            Ok(JobOutcome::Canceled) => Err("the job was canceled by nobody".to_owned()),
            // The process died between the entry `finished` and its own end.
            Err(EngineError::Log(e)) if matches!(*e, LogError::AlreadyFinished { .. }) => {
                Ok(Verdict::Finished)
            }
            Err(error) => Err(format!("the job ended with: {error}")),
        }
    }

    /// When nothing moves, time does.
    fn leap(&mut self, ready: usize) {
        let subtasks = match &mut self.execution {
            Some(execution) => execution.attempt().map_or(1, |a| a.subtasks() as u64 + 1),
            None => 1,
        };
        if ready == 0 && self.idle > 8 * subtasks {
            self.idle = 0;
            let now = self.clock.micros();
            let sleeper = self.clock.next_sleeper().map_or(u64::MAX, |at| at.saturating_sub(now));
            self.clock.advance(sleeper.clamp(1, 1_000));
        }
    }

    fn take_notices(&mut self) -> Result<(), String> {
        let Some(execution) = &mut self.execution else { return Ok(()) };
        let mut notices = Vec::new();
        while let Some(notice) = execution.take_notice() {
            notices.push(notice);
        }
        for notice in notices {
            match notice {
                ExecutionNotice::Master(MasterNotice::CheckpointCompleted(_)) => self.report.completed += 1,
                ExecutionNotice::Master(MasterNotice::CheckpointFailed(stats)) => {
                    self.report.failed += 1;
                    self.trace(|| format!("checkpoint {} failed: {:?}", stats.id, stats.outcome));
                }
                ExecutionNotice::Master(MasterNotice::Recovered { committed, rolled_back }) => {
                    self.report.recovered_commits += committed;
                    self.report.rolled_back += rolled_back;
                }
                ExecutionNotice::Restarting { cause, .. } => {
                    self.report.restarts += 1;
                    self.trace(|| format!("restart: {cause}"));
                    if cause.contains("panicked") {
                        return Err(cause);
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Says what happens, where `TIDEGATE_SIM_TRACE` is set.
    fn trace(&self, line: impl FnOnce() -> String) {
        if self.tracing {
            eprintln!("{:>12} us  step {:>8}  {}", self.clock.micros(), self.report.steps, line());
        }
    }

    /// At FINISHED: output as the oracle says, nothing prepared or staged left.
    fn judge(&self) -> Result<(), String> {
        self.scenario.check(&self.database)?;
        let left = self.database.left_overs();
        if left.is_empty() { Ok(()) } else { Err(format!("left over at FINISHED: {left:?}")) }
    }

    fn finish_report(mut self) -> SimReport {
        self.report.micros = self.clock.micros();
        self.report.store_faults = (
            self.faults.refused.load(Ordering::Relaxed),
            self.faults.applied_with_error.load(Ordering::Relaxed),
        );
        self.report
    }
}
