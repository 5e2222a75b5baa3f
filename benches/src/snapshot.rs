//! `benches snapshot`: what a snapshot costs the slot that takes it, how long it takes, and how long a restore does.
//!
//! *Tables*: one thread hands batches to a keyed operator, freezes it, and goes on while another thread writes the frozen pages into a
//! state file. A step is one call of the operator, as in a subtask: a batch, or less of it if the step has copied enough. Shown: the freeze itself, the longest step before it (what the machine does to us anyway) and while the
//! file is written (pages are copied on the first write), and the time to write. Storage is not part of it. Steps are timed on the
//! wall and by the CPU time of their thread: on a machine that others use, the difference is theirs.
//!
//! *Jobs* ([`job`]): both slots saturated, exactly-once checkpoints with fsync. Shown: the longest step of any subtask from its
//! snapshot to its acknowledgement, the sync part, trigger to log entry; and, from a new start on the same folder, the time to the
//! first record at the sink.
//!
//! Owns: candidates, tables' states and steps. Does not own: tables, jobs. Runs on: the main thread and a writer of its own.

mod job;

use std::cell::RefCell;
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

use self::job::{Costs, Kind, SnapshotJob};
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
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(20..))]
    pub(crate) keys: u64,
    /// So many times as many keys in the large job, which takes 2 GB with 10; 0 leaves it out
    #[arg(long, default_value_t = 10)]
    pub(crate) large: u64,
    /// Checkpoints of each job and round; of the large job a fifth
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) checkpoints: u32,
    /// From one checkpoint to the next, in milliseconds
    #[arg(long, default_value_t = 250, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoint_interval_ms: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const TABLES: &str = "tables";
const JOBS: &str = "jobs";
const VALUE: &str = "value per key";
const LARGE: &str = "value per key, large";
const MAP: &str = "map of one key";

/// Runs it.
///
/// # Errors
/// The first candidate that fails.
pub(crate) fn run(options: &SnapshotOptions) -> Result<Outcome, BenchError> {
    let load = machine_load();
    let costs: [RefCell<Costs>; 3] = Default::default();
    let large = options.large;
    let job = |name, kind, times: u64, checkpoints: u32, costs| {
        let job =
            SnapshotJob { candidate: name, kind, checkpoints, every_ms: options.checkpoint_interval_ms };
        // A short round before the first does not count.
        let counted = options.keys;
        Candidate::new(JOBS, name, move |keys| {
            let mut forgotten = Costs::default();
            match keys == counted {
                true => job.run(keys * times, &mut RefCell::borrow_mut(costs)),
                false => job.run(keys * times, &mut forgotten),
            }
        })
    };
    let mut candidates = Vec::from(of_tables());
    candidates.extend([
        job(VALUE, Kind::ValuePerKey, 1, options.checkpoints, &costs[0]),
        job(MAP, Kind::MapOfOneKey, 1, options.checkpoints, &costs[1]),
    ]);
    if large > 0 {
        let checkpoints = options.checkpoints.div_ceil(5);
        candidates.push(job(LARGE, Kind::ValuePerKey, large, checkpoints, &costs[2]));
    }
    let measured = options.common.rounds(options.keys).measure(candidates)?;
    let outcome = options
        .common
        .outcome("snapshot", measured, load)
        .setting("keys", options.keys)
        .setting("large_keys", options.keys * large)
        .setting("checkpoint_interval_ms", options.checkpoint_interval_ms)
        .showing(&[
            "freeze_ms",
            "step_ms_max",
            "step_cpu_ms_max",
            "end_to_end_ms_p50",
            "end_to_end_ms_max",
            "restore_ms",
        ]);
    Ok(draw(outcome, [VALUE, MAP, LARGE].into_iter().zip(costs.map(RefCell::into_inner))))
}

fn draw(mut outcome: Outcome, costs: impl Iterator<Item = (&'static str, Costs)>) -> Outcome {
    for (name, costs) in costs {
        let step = format!("{name}: longest step of a subtask during a snapshot, ms");
        outcome.at_most(&step, costs.steps.max_ms(), 2.0);
        outcome.because(&step, COPYING);
        let sync = format!("{name}: sync part, p99, ms");
        outcome.at_most(&sync, costs.sync.percentile_ms(99.0), 5.0);
        outcome.because(&sync, SYNC);
        outcome.figure(
            &format!("{name}: longest step, p50 over checkpoints, ms"),
            costs.steps.percentile_ms(50.0),
        );
        outcome.figure(&format!("{name}: end to end, p50, ms"), costs.end_to_end.percentile_ms(50.0));
        if name == VALUE {
            let name = "end to end with fsync, both slots saturated, p99, ms";
            outcome.at_most(name, costs.end_to_end.percentile_ms(99.0), 60.0);
            outcome.because(name, END_TO_END);
            outcome.at_most("restore to first output, median, ms", costs.restores.percentile_ms(50.0), 100.0);
            outcome.because("restore to first output, median, ms", RESTORE);
        }
    }
    let step = |name| outcome.note(TABLES, name, "step_cpu_ms_max").map(|s| s.max);
    let (value, map) = (step(VALUE), step(MAP));
    outcome.figure("tables: longest step of 1,024 updates, value per key, ms of CPU", value);
    outcome.figure("tables: longest step of 1,024 updates, map of one key, ms of CPU", map);
    outcome
}

const COPYING: &str = "a step that first touches frozen pages copies them, and a step is one turn on a core that others use: \
    compare the tables' step_cpu_ms_max, and the p50 of this figure; next: writers of state files at a lower priority";
const SYNC: &str =
    "the freeze is one pass over the directory of pages; above a millisecond it is waiting for a core";
const END_TO_END: &str = "the file of each subtask is written (one pass over its frozen entries) by I/O threads that share the cores \
    with two saturated slots, then stored with fsync, then the log entry with fsync; next: encode plain rows a page at a time";
const RESTORE: &str = "nearly all of it is building the tables, entry by entry, on one thread a slot: restore_built_cpu_ms is the \
    CPU time of all threads until then, the rest is waiting for a core";

fn of_tables() -> [Candidate<'static>; 2] {
    [
        Candidate::new(TABLES, VALUE, |keys| {
            let count =
                |_key: u64, sum: &mut ValueState<'_, i64>, _cx: &mut Keyed<'_>, _out: &mut Output<()>| {
                    sum.update(|sum| *sum += 1)?;
                    Ok(())
                };
            snapshot(value::<i64>("sum"), keys, |key: &u64| *key, FromClosure(count))
        }),
        Candidate::new(TABLES, MAP, |keys| {
            let count =
                |key: u64, sums: &mut MapState<'_, u64, i64>, _cx: &mut Keyed<'_>, _out: &mut Output<()>| {
                    sums.insert(key, 1)?;
                    Ok(())
                };
            snapshot(map::<u64, i64>("sums"), keys, |_key: &u64| 7, FromClosure(count))
        }),
    ]
}

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
    let (written, written_cpu, bytes) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let (watch, cpu) = (Stopwatch::start(), thread_cpu());
            let file = write_state_file("bench", range, max, frozen);
            (watch.elapsed(), thread_cpu().saturating_sub(cpu), file.len())
        });
        while !writer.is_finished() {
            steps.batch(&mut during)?;
            batches += 1;
        }
        Ok::<_, BenchError>(writer.join().unwrap_or((Duration::ZERO, Duration::ZERO, 0)))
    })?;
    let run = whole.stop((batches * BATCH).max(1));
    let (before, during_cpu) = (spread(&before, |cost| cost.elapsed), spread(&during, |cost| cost.cpu));
    Ok(run
        .note("freeze_ms", milliseconds(freeze))
        .note("step_ms_median_before", before.median)
        .note("step_ms_max_before", before.max)
        .note("steps_during", during.len() as f64)
        .note("step_ms_max", spread(&during, |cost| cost.elapsed).max)
        .note("step_cpu_ms_max", during_cpu.max)
        .note("step_cpu_ms_median_during", during_cpu.median)
        .note("write_ms", milliseconds(written))
        .note("write_cpu_ms", milliseconds(written_cpu))
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
