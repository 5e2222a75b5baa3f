//! The scheduler: picks what happens next, strikes processes, starts successors.
//!
//! Owns: the order of events, the deadline. Does not own: what the parts do, blows (see [`super::falls`]), nor the judgement (see
//! [`super::judge`] and [`super::verdict`]). Runs on: one thread.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tidegate_state::CheckpointStorage;

use super::blow::{Blow, ExplicitRestore};
use super::coverage::{Area, BETWEEN_STEPS};
use super::io::SimIo;
use super::judge::{Cut, history};
use super::network::ProcessNetwork;
use super::options::SimOptions;
use super::process::{Process, Stepped};
use super::report::{SimFailure, SimReport, Timeline};
use super::rng::Rng;
use super::scenario::Scenario;
use super::striker::{Next, Striker};
use super::verdict::End;
use super::world::{DrawSubject, World};
use crate::execution::{ExecutionSetup, JobExecution, RestoreFrom, Slots};
use crate::fault::SimulatedCrash;
use crate::ids::AttemptId;
use crate::io::{Io, NoWake};
use crate::operator::TransactionName;

/// Steps in which a seed must come to its end.
const STEPS_MAX: u64 = 2_500_000;
/// Once faults have stopped the job must come to its end within so much simulated time.
const DEADLINE_US: u64 = 60_000_000;
/// Faults stop so long after the last blow but late ones.
const CALM_AFTER_US: u64 = 3_000_000;
/// Faults stop after so much simulated time at the latest, so that no schedule waits for ever for a checkpoint.
const FAULTS_US_MAX: u64 = 12_000_000;
/// Checkpoints that complete before the whole input is written.
const COMPLETED_MIN: u64 = 3;

/// One seed.
pub struct Simulation<'a> {
    pub(super) rng: Rng,
    pub(super) world: World<'a>,
    pub(super) processes: Vec<Process>,
    pub(super) striker: Striker,
    pub(super) report: SimReport,
    pub(super) timeline: Timeline,
    /// The process that is being stepped.
    pub(super) current: u32,
    /// Crashes after which no recovery has completed.
    pub(super) unrecovered: Vec<&'static str>,
    /// What the next process restores.
    pub(super) next_restore: Option<ExplicitRestore>,
    /// What explicit restores have cut off, as far as the scheduler has seen them begin.
    pub(super) cuts: Vec<Cut>,
    /// Whether somebody is to roll a transaction back by hand, and which one it was.
    pub(super) hand: Hand,
    /// Parallelism of the process that was struck last.
    pub(super) parallelism_before: Vec<u32>,
    /// Attempts that may have had statements on their way when the last sweep was made.
    pub(super) excused: Vec<AttemptId>,
    /// Zombies are being driven to their end: the job has finished.
    pub(super) draining: bool,
    pub(super) idle: u64,
    normal_done_at: Option<u64>,
    pub(super) disturbed_at: u64,
}

/// The planted rollback by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hand {
    /// None in this seed.
    Still,
    /// At the first crash that leaves a listed transaction uncommitted.
    Waiting,
    /// It was this one.
    Done(TransactionName),
}

impl std::fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").field("report", &self.report).finish_non_exhaustive()
    }
}

impl<'a> Simulation<'a> {
    /// Runs one seed with everything that can happen.
    ///
    /// # Errors
    /// [`SimFailure`]: output, left-overs or progress are not as promised.
    pub fn run(seed: u64) -> Result<SimReport, SimFailure> {
        Self::run_with(seed, &SimOptions::default()).map(|(report, _)| report)
    }

    /// Runs one seed, and gives its timeline also when it is clean.
    ///
    /// # Errors
    /// As for [`Simulation::run`].
    pub fn run_with(seed: u64, options: &SimOptions) -> Result<(SimReport, Timeline), SimFailure> {
        Self::run_subject(
            seed,
            options,
            Box::new(|rng, options, calm, coverage| Box::new(Scenario::draw(rng, options, calm, coverage))),
        )
    }

    /// Runs one seed of something else than the seed's own job.
    ///
    /// # Errors
    /// As for [`Simulation::run`].
    pub fn run_subject(
        seed: u64,
        options: &SimOptions,
        subject: Box<DrawSubject<'a>>,
    ) -> Result<(SimReport, Timeline), SimFailure> {
        let mut simulation = Self::new(seed, options, subject);
        let result = simulation.run_to_end();
        simulation.striker.disarm_thread();
        match result {
            Ok(()) => {
                simulation.finish_report();
                Ok((simulation.report, simulation.timeline))
            }
            Err(what) => Err(SimFailure { seed, what, timeline: simulation.timeline }),
        }
    }

    /// How many blows the schedule of a seed has.
    pub fn blows(seed: u64) -> usize {
        Blow::draw_all(&mut Rng::new(seed).fork()).len()
    }

    fn new(seed: u64, options: &SimOptions, subject: Box<DrawSubject<'a>>) -> Self {
        let mut rng = Rng::new(seed);
        let mut blows = Blow::draw_all(&mut rng.fork());
        let world = World::draw(&mut rng, options, subject);
        Blow::aim_all(&mut blows, world.subject.has_files(), &mut rng);
        let explicit = blows.iter().any(|b| b.restore.is_some());
        let tampered = rng.one_in(10) && !explicit && world.subject.may_be_tampered_with();
        let hand = if tampered { Hand::Waiting } else { Hand::Still };
        let report = SimReport {
            seed,
            records: world.subject.records(),
            vertices: u64::MAX,
            batches_per_channel: world.subject.batches_per_channel(),
            ..SimReport::default()
        };
        Self {
            striker: Striker::new(blows, &options.spared),
            rng,
            world,
            processes: Vec::new(),
            report,
            timeline: Timeline::default(),
            current: 0,
            unrecovered: Vec::new(),
            next_restore: None,
            cuts: Vec::new(),
            hand,
            parallelism_before: Vec::new(),
            excused: Vec::new(),
            draining: false,
            idle: 0,
            normal_done_at: None,
            disturbed_at: 0,
        }
    }

    fn run_to_end(&mut self) -> Result<(), String> {
        self.striker.arm_thread();
        loop {
            if let Some(end) = self.turn()? {
                return self.conclude(end);
            }
        }
    }

    /// What is due before a step, the step, and the blow that it ran into.
    pub(super) fn turn(&mut self) -> Result<Option<End>, String> {
        self.report.steps += 1;
        self.check_deadline()?;
        self.resume_due();
        self.tell_bereft();
        if !self.draining {
            self.write_input();
            if self.processes.iter().any(Process::leads) {
                match self.striker.next(self.report.steps, self.report.completed, self.all_written()) {
                    Next::Step => {}
                    Next::Fall(fall) => self.fall(fall, None),
                    Next::KillFirst => self.kill_newest(BETWEEN_STEPS),
                }
            }
        }
        let stepped = catch_unwind(AssertUnwindSafe(|| self.step()));
        match stepped {
            Ok(result) => {
                if let Next::Fall(fall) = self.striker.paused_at() {
                    self.fall(fall, Some(self.current));
                }
                result
            }
            Err(panic) => match panic.downcast_ref::<SimulatedCrash>() {
                Some(crash) => {
                    if let Next::Fall(fall) = self.striker.crashed_at(crash.point) {
                        self.fall(fall, Some(self.current));
                    }
                    Ok(None)
                }
                None => resume_unwind(panic),
            },
        }
    }

    fn check_deadline(&mut self) -> Result<(), String> {
        let now = self.world.clock.micros();
        if self.normal_done_at.is_none() && self.striker.normal_done() {
            self.normal_done_at = Some(now);
        }
        let long_ago = self.normal_done_at.is_some_and(|at| now > at + CALM_AFTER_US) || now > FAULTS_US_MAX;
        if !self.world.is_calm() && (self.striker.all_done() || long_ago) {
            self.world.calm.store(true, Ordering::Relaxed);
            self.disturbed_at = now;
            self.say(None, "faults stop".to_owned());
        }
        let too_late = self.world.is_calm() && now > self.disturbed_at + DEADLINE_US;
        if too_late || self.report.steps > STEPS_MAX {
            let processes = self.processes.iter_mut();
            let waiting: Vec<_> =
                processes.map(|p| (p.id, p.standing, p.not_canceled(), p.io.names())).collect();
            let (steps, seconds) = (self.report.steps, now / 1_000_000);
            return Err(format!("no end after {steps} steps and {seconds} s; I/O that waits: {waiting:?}"));
        }
        Ok(())
    }

    /// The input grows with the blows that have fallen; the rest of it comes when all but late ones have.
    fn write_input(&self) {
        let (fallen, normal) = self.striker.fallen();
        let all = self.striker.normal_done() && self.report.completed >= COMPLETED_MIN;
        let share = if all { 1_000 } else { (1_000 * (fallen.min(normal) + 1) / (normal + 2)).min(900) };
        let written = self.world.subject.written();
        if written.load(Ordering::Relaxed) < share {
            written.store(share, Ordering::Relaxed);
        }
    }

    fn all_written(&self) -> bool {
        self.world.subject.written().load(Ordering::Relaxed) >= 1_000
    }

    pub(super) fn next_id(&self) -> u32 {
        u32::try_from(self.report.processes).unwrap_or(u32::MAX) + 1
    }

    fn start(&mut self) -> Result<(), String> {
        let id = self.next_id();
        self.report.processes += 1;
        let explicit = self.next_restore.take();
        let graph = self.world.subject.graph(&mut self.rng, &self.world.line).map_err(|e| e.to_string())?;
        let mut config = self.world.subject.config().clone();
        config.restore = self.restore_from(explicit);
        let rewind = match config.restore {
            RestoreFrom::Rewind(checkpoint) => Some(checkpoint),
            RestoreFrom::Latest | RestoreFrom::None => None,
        };
        if config.restore != RestoreFrom::Latest {
            self.count(Area::Event, "explicit restore");
        }
        self.say(Some(id), format!("starts, restore {:?}", config.restore));
        let io = SimIo::new(Arc::clone(&self.world.clock));
        let execution = JobExecution::new(ExecutionSetup {
            graph,
            config,
            storage: Some(CheckpointStorage::over(Arc::clone(&self.world.store), "simulated://checkpoints")),
            io: Arc::clone(&io) as Arc<dyn Io>,
            clock: Arc::clone(&self.world.clock) as _,
            waker: Arc::new(NoWake),
            slots: Slots::Inline,
            seed: u128::from(self.rng.draw()) << 64 | u128::from(self.rng.draw()),
        });
        let network = ProcessNetwork { network: Arc::clone(&self.world.network), process: id };
        let execution = execution.map_err(|e| e.to_string())?.with_delivery(Arc::new(network));
        let mut process = Process::new(id, io, execution, explicit);
        process.rewind = rewind;
        self.report.vertices = self.report.vertices.min(process.parallelism().len() as u64);
        self.processes.push(process);
        Ok(())
    }

    fn restore_from(&self, explicit: Option<ExplicitRestore>) -> RestoreFrom {
        match explicit {
            None => RestoreFrom::Latest,
            Some(ExplicitRestore::None) => RestoreFrom::None,
            Some(ExplicitRestore::Rewind) => {
                let restorable = history(&self.world.objects).restorable();
                restorable.last().map_or(RestoreFrom::Latest, |c| RestoreFrom::Rewind(c.id()))
            }
        }
    }

    /// One thing that could happen next does.
    fn step(&mut self) -> Result<Option<End>, String> {
        if !self.draining && !self.processes.iter().any(Process::leads) {
            self.start()?;
        }
        let running: Vec<usize> = (0..self.processes.len()).filter(|i| self.processes[*i].runs()).collect();
        if running.is_empty() {
            return Ok(None);
        }
        let at = running[usize::try_from(self.rng.below(running.len() as u64)).unwrap_or(0)];
        let process = &mut self.processes[at];
        self.current = process.id;
        let ready = process.io.ready();
        let pick = self.rng.below(10);
        let mut stepped = Stepped::Progress;
        if pick < 4 && ready > 0 {
            let nth = usize::try_from(self.rng.below(ready as u64)).unwrap_or(0);
            process.poll_one(nth);
        } else if pick == 9 {
            let micros = self.rng.below(120);
            self.world.advance(micros, &mut self.rng);
            stepped = Stepped::Nothing(None);
        } else {
            stepped = process.step_one(&mut self.rng);
        }
        self.mark(u64::from(self.current) << 32 | pick);
        let end = self.after_step(at, stepped)?;
        if end.is_none() && self.idle > 0 { self.leap(&running) } else { Ok(end) }
    }

    fn after_step(&mut self, at: usize, stepped: Stepped) -> Result<Option<End>, String> {
        let process = &mut self.processes[at];
        let (id, notices) = (process.id, process.take_notices());
        if process.has_two_in_flight() {
            self.world.coverage.count(Area::Event, "two checkpoints in flight");
        }
        for notice in notices {
            self.take_notice(id, notice)?;
        }
        match stepped {
            Stepped::Progress => self.idle = 0,
            Stepped::Nothing(_) => self.idle += 1,
            Stepped::Over(result) => {
                self.idle = 0;
                return self.over(id, result);
            }
        }
        Ok(None)
    }

    /// When nothing moves, time does.
    fn leap(&mut self, running: &[usize]) -> Result<Option<End>, String> {
        let units: u64 = running.iter().map(|i| self.processes[*i].units()).sum();
        if self.idle <= units + 4 || running.iter().any(|i| self.processes[*i].io.ready() > 0) {
            return Ok(None);
        }
        self.idle = 0;
        let mut next: Option<u64> = None;
        for at in running {
            self.current = self.processes[*at].id;
            match self.processes[*at].step_all() {
                Stepped::Nothing(moment) => {
                    let moment = moment.map(|m| u64::try_from(m.as_micros()).unwrap_or(u64::MAX));
                    next = [next, moment].into_iter().flatten().min();
                }
                stepped => return self.after_step(*at, stepped),
            }
        }
        let ids: Vec<u32> = running.iter().map(|i| self.processes[*i].id).collect();
        let next = [next, self.world.next_due(&ids)].into_iter().flatten().min();
        let now = self.world.clock.micros();
        let span = next.map_or(1_000, |at| at.saturating_sub(now)).clamp(1, 50_000);
        self.world.advance(span, &mut self.rng);
        Ok(None)
    }

    pub(super) fn count(&self, area: Area, what: &'static str) {
        self.world.coverage.count(area, what);
    }

    pub(super) fn say(&mut self, process: Option<u32>, text: String) {
        self.timeline.push(self.world.clock.micros(), self.report.steps, process, text);
    }

    /// Mixes something that happened into the checksum of the run.
    pub(super) fn mark(&mut self, what: u64) {
        let mixed = self.report.fingerprint ^ what ^ self.world.clock.micros().rotate_left(20);
        self.report.fingerprint = mixed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
    }

    fn finish_report(&mut self) {
        self.world.objects.count_settled_puts();
        self.report.micros = self.world.clock.micros();
        self.report.coverage = self.world.coverage.get();
        for (closed_by, rows) in self.world.subject.committed_sizes() {
            self.mark(closed_by.0 << 32 | rows as u64);
        }
    }
}
