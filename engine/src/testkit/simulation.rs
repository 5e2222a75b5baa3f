//! [`Simulation`]: an author's job under crashes, lost messages, lying stores and rescales, compared with a run without any fault.
//!
//! Owns: the order of runs, what a failure says. Does not own: the runs (see [`crate::sim`]), the comparison (see [`SimulatedRun`]).
//! Runs on: the test's thread.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;

use super::simulated_run::{Mismatch, Reference, SimulatedRun};
use crate::api::StreamEnvironment;
use crate::element::{Batch, EventTime};
use crate::error::JobError;
use crate::sim::author_job::{AuthorJob, AuthorJobParts};
use crate::sim::simulated_ends::{Input, Inputs, Outputs};
use crate::sim::{Rng, SimFailure, SimOptions, SimReport, Simulation as Seed};

/// Seeds of a simulation that was not told which.
const SEEDS: Range<u64> = 0..50;
/// The runs without faults: their seeds and parallelism.
const CALM: [(u64, u32); 2] = [(0, 1), (1, 3)];
/// What is said when these two differ.
const DIFFERS_CALMLY: &str = "\n  this was a run without any fault, beside another one\n  \
     help: both must put out the same; what depends on time, on the order in which several inputs meet, or on anything kept outside \
     of Tidegate's state cannot be compared";
/// So many lines of the timeline stand in a failure.
const TIMELINE_LINES: usize = 25;

/// Records the author's job.
type RecordJob<'a> = Box<dyn Fn(&StreamEnvironment) -> Result<(), JobError> + 'a>;

/// A job under simulation. Each seed is one schedule of everything that can go wrong; the same seed gives the same run.
///
/// The job is first run twice without any fault, at different parallelism. What the first of the two put out is the *reference*; if the
/// second one differs, the job depends on something that no engine can keep for it. Then come the seeds, and each is compared with the reference:
/// processes die between any two steps and at every fault point, stand still and go on beside their successor; mail is lost, late and
/// doubled; the store refuses and lies; the line to the server stalls and drops; each start has another parallelism.
///
/// ```
/// use tidegate_engine::testkit::Simulation;
/// # use tidegate_engine::api::StreamEnvironment;
/// # use tidegate_engine::testkit::{CollectedSink, ScriptedSource};
/// # fn build(env: &StreamEnvironment, _: &()) -> tidegate_engine::error::Result<()> {
/// #     env.source("numbers", ScriptedSource::<u64>::default()).map(|n| n * 2).sink("doubled", CollectedSink::default());
/// #     Ok(())
/// # }
/// Simulation::of(build, &())
///     .input("numbers", 0..200_u64)
///     .seeds(0..3)
///     .check(|run| run.sink::<u64>("doubled").contains_reference());
/// ```
pub struct Simulation<'a> {
    build: RecordJob<'a>,
    inputs: Inputs,
    seeds: Range<u64>,
}

impl fmt::Debug for Simulation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Simulation")
            .field("inputs", &self.inputs)
            .field("seeds", &self.seeds)
            .finish_non_exhaustive()
    }
}

impl<'a> Simulation<'a> {
    /// The job that `build` records: it is called for each process that starts. Its own sources and sinks are not opened.
    pub fn of<A>(build: impl Fn(&StreamEnvironment, &A) -> Result<(), JobError> + 'a, args: &'a A) -> Self {
        Self { build: Box::new(move |env| build(env, args)), inputs: Inputs::new(), seeds: SEEDS }
    }

    /// Gives a source its records, in order.
    #[must_use]
    pub fn input<T: Clone + Send + 'static>(self, uid: &str, records: impl IntoIterator<Item = T>) -> Self {
        self.partitions(uid, [records])
    }

    /// Gives a source its records in several partitions: the order within each is kept, and no other.
    #[must_use]
    pub fn partitions<T, P>(mut self, uid: &str, partitions: impl IntoIterator<Item = P>) -> Self
    where
        T: Clone + Send + 'static,
        P: IntoIterator<Item = T>,
    {
        let partitions = partitions.into_iter().map(|records| records.into_iter().collect()).collect();
        self.inputs.insert(uid.to_owned(), Input::of::<T>(partitions));
        self
    }

    /// Gives a source its records, each with its event time in milliseconds since 1970.
    #[must_use]
    pub fn input_at<T>(mut self, uid: &str, records: impl IntoIterator<Item = (T, i64)>) -> Self
    where
        T: Clone + Send + 'static,
    {
        let (values, timestamps) = records.into_iter().map(|(record, ms)| (record, EventTime(ms))).unzip();
        self.inputs.insert(uid.to_owned(), Input::of::<T>(vec![Batch { values, timestamps }]));
        self
    }

    /// Which schedules are run; the first fifty, if it is not said.
    #[must_use]
    pub fn seeds(mut self, seeds: Range<u64>) -> Self {
        self.seeds = seeds;
        self
    }

    /// Runs everything, and looks at each run with `check`.
    ///
    /// # Panics
    /// At the first run that `check` refuses, or that fails otherwise: the message says what, and how to run that seed alone.
    pub fn check(self, check: impl Fn(&SimulatedRun<'_>) -> Result<(), Mismatch>) -> SimulationReport {
        match self.try_check(check) {
            Ok(report) => report,
            Err(failure) => panic!("{failure}"),
        }
    }

    /// As [`Simulation::check`], for those who want to look at a failure.
    ///
    /// # Errors
    /// [`SimulationFailure`].
    pub fn try_check(
        self,
        check: impl Fn(&SimulatedRun<'_>) -> Result<(), Mismatch>,
    ) -> Result<SimulationReport, SimulationFailure> {
        let reference = self.reference()?;
        let compare = |outputs: &Outputs| {
            let run = SimulatedRun::new(outputs.all(), &reference);
            check(&run).map_err(|mismatch| mismatch.to_string())
        };
        self.run_calmly(CALM[1], &|outputs| compare(outputs).map_err(|what| what + DIFFERS_CALMLY))?;
        let mut report = SimulationReport::default();
        for seed in self.seeds.clone() {
            report.add(&self.run(seed, None, &SimOptions::default(), &compare)?);
        }
        Ok(report)
    }

    /// What comes out where nothing goes wrong and nothing runs beside anything else.
    fn reference(&self) -> Result<Reference, SimulationFailure> {
        let found = RefCell::new(Reference::new());
        let collect = |outputs: &Outputs| {
            let all: BTreeMap<_, _> =
                outputs.all().into_iter().map(|(uid, out)| (uid, out.records())).collect();
            *found.borrow_mut() = all;
            Ok(())
        };
        self.run_calmly(CALM[0], &collect)?;
        Ok(found.into_inner())
    }

    /// Nothing goes wrong.
    fn run_calmly(
        &self,
        (seed, parallelism): (u64, u32),
        check: &dyn Fn(&Outputs) -> Result<(), String>,
    ) -> Result<SimReport, SimulationFailure> {
        let options = SimOptions {
            spared: (0..Seed::blows(seed)).collect(),
            store_faults: false,
            message_faults: false,
            database_faults: false,
            function_faults: false,
            clock_jumps: false,
            ..SimOptions::default()
        };
        let ran = self.run(seed, Some(parallelism), &options, check);
        ran.map_err(|failure| SimulationFailure { seed: None, ..failure })
    }

    fn run(
        &self,
        seed: u64,
        parallelism: Option<u32>,
        options: &SimOptions,
        check: &dyn Fn(&Outputs) -> Result<(), String>,
    ) -> Result<SimReport, SimulationFailure> {
        let outputs = Outputs::default();
        let parts = AuthorJobParts { build: &*self.build, inputs: &self.inputs, outputs: &outputs, check };
        let draw = |rng: &mut Rng, _: &SimOptions, _, _| {
            Box::new(AuthorJob::draw(rng, parts, parallelism)) as Box<dyn crate::sim::subject::Subject + '_>
        };
        let ran = Seed::run_subject(seed, options, Box::new(draw));
        ran.map(|(report, _)| report).map_err(|failure| SimulationFailure::of(&failure))
    }
}

/// What the seeds added up to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SimulationReport {
    /// Seeds that were run.
    pub seeds: u64,
    /// Processes that were started.
    pub processes: u64,
    /// Of them: those that died.
    pub crashes: u64,
    /// Of them: those that stood still for a while.
    pub pauses: u64,
    /// Attempts that failed and were followed by another one in the same process.
    pub restarts: u64,
    /// Checkpoints that were completed.
    pub checkpoints: u64,
}

impl SimulationReport {
    fn add(&mut self, report: &SimReport) {
        self.seeds += 1;
        self.processes += report.processes;
        self.crashes += report.crashes;
        self.pauses += report.pauses;
        self.restarts += report.restarts;
        self.checkpoints += report.completed;
    }
}

impl fmt::Display for SimulationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seeds, processes, crashes, pauses, restarts, checkpoints } = self;
        write!(
            f,
            "{seeds} seeds: {processes} processes, {crashes} of them died, {pauses} stood still; {restarts} restarts, \
             {checkpoints} checkpoints"
        )
    }
}

/// A run that is not as it has to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationFailure {
    /// Its seed; `None`: it was a run without any fault.
    pub seed: Option<u64>,
    /// What is wrong.
    pub what: String,
    /// What had happened until then.
    pub timeline: String,
}

impl SimulationFailure {
    fn of(failure: &SimFailure) -> Self {
        let SimFailure { seed, what, timeline } = failure;
        Self { seed: Some(*seed), what: what.clone(), timeline: timeline.to_string() }
    }
}

impl std::error::Error for SimulationFailure {}

impl fmt::Display for SimulationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(seed) = self.seed else { return f.write_str(&self.what) };
        writeln!(f, "seed {seed}: {}", self.what)?;
        // That checkpoints complete is nothing that people look for here.
        let lines: Vec<&str> = self.timeline.lines().filter(|line| !line.ends_with("is complete")).collect();
        for line in &lines[lines.len().saturating_sub(TIMELINE_LINES)..] {
            writeln!(f, "  {line}")?;
        }
        write!(f, "  help: .seeds({seed}..{}) runs this schedule alone", seed + 1)
    }
}
