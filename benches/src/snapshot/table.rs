//! A snapshot of tables alone: one thread updates keyed state in steps of a batch, freezes it, and goes on while another thread
//! writes the frozen pages into a state file. Neither operator nor storage is part of it.
//!
//! A step is timed on the wall and by the CPU time of its thread: on a machine that others use, the difference is theirs.
//!
//! Owns: the steps. Does not own: tables. Runs on: the main thread and a writer of its own.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tidegate_state::{
    FrozenTable, KeyGroupRange, KeyedBackend, MaxParallelism, StateDeclaration, StateType, map, value,
    write_state_file,
};

use crate::harness::{Run, Spread};
use crate::stopwatch::Stopwatch;

/// Updates in a step.
const STEP: u64 = 1_024;
/// Steps before the freeze.
const STEPS_BEFORE: u64 = 2_000;
/// One tick of the generator of keys: odd, so that all keys come.
pub(super) const STRIDE: u64 = 0x9E37_79B9_7F4A_7C15;

/// A value for each key.
pub(super) fn value_per_key(keys: u64) -> Run {
    snapshot(
        &value::<i64>("sum"),
        keys,
        |index| index,
        |sum, _index| {
            let _ = sum.update(|sum| *sum += 1);
        },
    )
}

/// All entries in the map of one key.
pub(super) fn map_of_one_key(keys: u64) -> Run {
    snapshot(
        &map::<u64, i64>("sums"),
        keys,
        |_index| 7,
        |sums, index| {
            let _ = sums.insert(index, 1);
        },
    )
}

fn snapshot<D: StateDeclaration<u64>>(
    states: &D,
    keys: u64,
    key_of: impl Fn(u64) -> u64,
    mut update: impl FnMut(&mut D::Handles<'_>, u64),
) -> Run {
    let max = MaxParallelism::default();
    let range = KeyGroupRange::all(max);
    let mut tables = states.open(&KeyedBackend::heap(range, max));
    let mut steps = Steps { next: 0, keys, key_of };
    for _ in 0..keys.div_ceil(STEP) {
        steps.run::<D>(&mut tables, &mut update);
    }
    let before: Vec<f64> = (0..STEPS_BEFORE).map(|_| steps.run::<D>(&mut tables, &mut update)).collect();
    let copied = D::copied_entries(&tables);
    let whole = Stopwatch::start();
    let mut frozen: Vec<Box<dyn FrozenTable>> = Vec::new();
    D::freeze(&mut tables, &mut frozen);
    let freeze = whole.elapsed();
    let (mut during, mut during_cpu) = (Vec::new(), Vec::new());
    let (written, bytes) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let watch = Stopwatch::start();
            let file = write_state_file("bench", range, max, frozen);
            (watch.elapsed(), file.len())
        });
        while !writer.is_finished() {
            let cpu = thread_cpu();
            during.push(steps.run::<D>(&mut tables, &mut update));
            during_cpu.push(milliseconds(thread_cpu().saturating_sub(cpu)));
        }
        writer.join().unwrap_or((Duration::ZERO, 0))
    });
    let (before, all) = (Spread::of(before), during.len() as u64 * STEP);
    let run = whole.stop(all.max(1));
    run.note("freeze_ms", milliseconds(freeze))
        .note("step_ms_median_before", before.median)
        .note("step_ms_max_before", before.max)
        .note("step_ms_max", Spread::of(during).max)
        .note("step_cpu_ms_max", Spread::of(during_cpu).max)
        .note("copied_entries", (D::copied_entries(&tables) - copied) as f64)
        .note("write_ms", milliseconds(written))
        .note("file_mb", bytes as f64 / 1e6)
}

/// Updates keys in steps; all keys come in turn, far from each other.
struct Steps<F> {
    next: u64,
    keys: u64,
    key_of: F,
}

impl<F: Fn(u64) -> u64> Steps<F> {
    /// One step, and its milliseconds.
    fn run<D: StateDeclaration<u64>>(
        &mut self,
        tables: &mut D::Tables,
        update: &mut impl FnMut(&mut D::Handles<'_>, u64),
    ) -> f64 {
        let watch = Stopwatch::start();
        for _ in 0..STEP {
            let index = self.next.wrapping_mul(STRIDE) % self.keys;
            self.next += 1;
            let key = (self.key_of)(index);
            update(&mut D::bind(tables, &key, key.key_hash()), index);
        }
        milliseconds(watch.elapsed())
    }
}

fn milliseconds(span: Duration) -> f64 {
    span.as_secs_f64() * 1e3
}

/// CPU time of the calling thread.
fn thread_cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    Duration::new(seconds, u32::try_from(now.tv_nsec).unwrap_or(0))
}
