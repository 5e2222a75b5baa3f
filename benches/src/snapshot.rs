//! `benches snapshot`: what a snapshot costs the slot that takes it.
//!
//! One thread hands batches to a keyed operator, freezes it, and goes on while another thread writes the frozen pages into a state
//! file. A step is one call of the operator, as in a subtask: a batch, or less of it if the step has copied enough. Shown: the freeze
//! itself, the longest step before it (what the machine does to us anyway) and while the file is written (pages are copied on the
//! first write), and the time to write. Storage is not part of it.
//!
//! Owns: the states and the steps. Does not own: operator and tables. Runs on: the main thread and a writer of its own.

use std::time::Duration;

use clap::Args;
use tidegate_engine::ids::OperatorUid;
use tidegate_engine::operator::keyed_process::{
    FromClosure, KeyedContext, KeyedFunction, KeyedParts, KeyedProcess,
};
use tidegate_engine::operator::{BatchCursor, Operator, Output, Progress};
use tidegate_state::{
    FrozenTable, KeyGroupRange, MapState, MaxParallelism, StateDeclaration, ValueState, map, value,
    write_state_file,
};

use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, Spread};
use crate::options::{CommonOptions, machine_load};
use crate::stopwatch::{Stopwatch, thread_cpu};

/// Records in a batch.
const BATCH: u64 = 1_024;
/// Batches before the freeze, whose steps are measured.
const BATCHES_BEFORE: u64 = 2_000;
/// One tick of the generator of keys: odd, so that all keys come.
const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// Flags of `benches snapshot`.
#[derive(Clone, Debug, Args)]
pub(crate) struct SnapshotOptions {
    /// Keys of the tables, and entries of the map of one key
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keys: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Runs it.
///
/// # Errors
/// No candidate of the wanted name.
pub(crate) fn run(options: &SnapshotOptions) -> Result<Outcome, BenchError> {
    let load = machine_load();
    let group = "updates during a snapshot";
    let candidates = vec![
        Candidate::new(group, "value per key", |keys| {
            let count =
                |_key: u64, sum: &mut ValueState<'_, i64>, _cx: &mut Keyed<'_>, _out: &mut Output<()>| {
                    sum.update(|sum| *sum += 1)?;
                    Ok(())
                };
            snapshot(value::<i64>("sum"), keys, |key: &u64| *key, FromClosure(count))
        }),
        Candidate::new(group, "map of one key", |keys| {
            let count =
                |key: u64, sums: &mut MapState<'_, u64, i64>, _cx: &mut Keyed<'_>, _out: &mut Output<()>| {
                    sums.insert(key, 1)?;
                    Ok(())
                };
            snapshot(map::<u64, i64>("sums"), keys, |_key: &u64| 7, FromClosure(count))
        }),
    ];
    let measured = options.common.rounds(options.keys).measure(candidates)?;
    let mut outcome = options.common.outcome("snapshot", measured, load).setting("keys", options.keys);
    let largest = |name: &str| {
        outcome
            .measured
            .iter()
            .flat_map(|m| m.notes())
            .filter(|(n, _)| *n == name)
            .map(|(_, f)| f)
            .reduce(f64::max)
    };
    let (step, cpu, freeze) = (largest(STEP_DURING), largest(STEP_CPU_DURING), largest(FREEZE));
    outcome.at_most("longest step while the file is written, ms", step, 2.0);
    outcome.at_most("longest step while the file is written, CPU ms", cpu, 2.0);
    outcome.at_most("longest freeze, ms", freeze, 5.0);
    Ok(outcome)
}

const FREEZE: &str = "freeze_ms_max";
const STEP_DURING: &str = "step_ms_max_during";
const STEP_CPU_DURING: &str = "step_cpu_ms_max_during";

type Keyed<'a> = KeyedContext<'a, u64>;

fn snapshot<S, KF, F>(states: S, keys: u64, key_of: KF, function: F) -> Result<Run, BenchError>
where
    S: StateDeclaration<u64>,
    KF: Fn(&u64) -> u64 + 'static,
    F: KeyedFunction<u64, u64, S, ()>,
{
    let max = MaxParallelism::default();
    let range = KeyGroupRange::all(max);
    let parts = KeyedParts { uid: OperatorUid::from("sum"), states, key_of, function };
    let operator = KeyedProcess::<u64, S, KF, F>::open(parts, range, max, &[]);
    let mut steps = Steps { operator: operator.map_err(BenchError::operator("snapshot"))?, next: 0, keys };
    for _ in 0..keys.div_ceil(BATCH) {
        steps.batch(&mut Vec::new())?;
    }
    let mut before = Vec::new();
    for _ in 0..BATCHES_BEFORE {
        steps.batch(&mut before)?;
    }
    let whole = Stopwatch::start();
    let frozen = steps.freeze();
    let freeze = whole.elapsed();
    let (mut during, mut batches) = (Vec::new(), 0);
    let (written, bytes) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let watch = Stopwatch::start();
            let file = write_state_file("bench", range, max, frozen);
            (watch.elapsed(), file.len())
        });
        while !writer.is_finished() {
            steps.batch(&mut during)?;
            batches += 1;
        }
        Ok::<_, BenchError>(writer.join().unwrap_or((Duration::ZERO, 0)))
    })?;
    let run = whole.stop((batches * BATCH).max(1));
    let (before, during_cpu) = (spread(&before, |cost| cost.elapsed), spread(&during, |cost| cost.cpu));
    Ok(run
        .note("step_ms_median_before", before.median)
        .note("step_ms_max_before", before.max)
        .note(FREEZE, milliseconds(freeze))
        .note("steps_during", during.len() as f64)
        .note(STEP_DURING, spread(&during, |cost| cost.elapsed).max)
        .note("step_cpu_ms_median_during", during_cpu.median)
        .note(STEP_CPU_DURING, during_cpu.max)
        .note("write_ms", milliseconds(written))
        .note("file_mb", bytes as f64 / 1e6))
}

/// What a step has cost: on the wall, where others may take the core away, and in CPU time.
struct StepCost {
    elapsed: Duration,
    cpu: Duration,
}

fn spread(costs: &[StepCost], of: impl Fn(&StepCost) -> Duration) -> Spread {
    Spread::of(costs.iter().map(|cost| milliseconds(of(cost))))
}

/// Hands batches to an operator; all keys come in turn, far from each other.
struct Steps<Op> {
    operator: Op,
    next: u64,
    keys: u64,
}

impl<Op: Operator<u64, ()>> Steps<Op> {
    /// One batch; appends the cost of each of its steps.
    fn batch(&mut self, costs: &mut Vec<StepCost>) -> Result<(), BenchError> {
        let numbers = self.next..self.next + BATCH;
        self.next = numbers.end;
        let mut input =
            BatchCursor::new(numbers.map(|number| number.wrapping_mul(STRIDE) % self.keys).collect());
        let mut out = Output::new(usize::MAX);
        loop {
            let (watch, cpu) = (Stopwatch::start(), thread_cpu());
            let progress =
                self.operator.process(&mut input, &mut out).map_err(BenchError::operator("snapshot"))?;
            costs.push(StepCost { elapsed: watch.elapsed(), cpu: thread_cpu().saturating_sub(cpu) });
            if progress == Progress::Done {
                return Ok(());
            }
        }
    }

    fn freeze(&mut self) -> Vec<Box<dyn FrozenTable>> {
        self.operator.freeze().and_then(|part| part.keyed).map_or_else(Vec::new, |keyed| keyed.tables)
    }
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}
