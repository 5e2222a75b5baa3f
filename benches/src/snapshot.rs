//! `benches snapshot`: what a snapshot costs the slot that takes it.
//!
//! One thread updates keyed state in steps of a batch, freezes it, and goes on while another thread writes the frozen pages into a
//! state file. Shown: the freeze itself, the longest step before it (what the machine does to us anyway) and while the file is
//! written (pages are copied on the first write), and the time to write. Storage is not part of it.
//!
//! Owns: the states and the steps. Does not own: tables. Runs on: the main thread and a writer of its own.

use std::time::Duration;

use clap::Args;
use tidegate_state::{
    FrozenTable, KeyGroupRange, KeyedBackend, MaxParallelism, StateDeclaration, StateType, map, value,
    write_state_file,
};

use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, Spread};
use crate::options::{CommonOptions, machine_load};
use crate::stopwatch::Stopwatch;

/// Updates in a step.
const STEP: u64 = 1_024;
/// Steps before the freeze.
const STEPS_BEFORE: u64 = 2_000;
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
            Ok(snapshot(
                &value::<i64>("sum"),
                keys,
                |index| index,
                |sum, _index| {
                    let _ = sum.update(|sum| *sum += 1);
                },
            ))
        }),
        Candidate::new(group, "map of one key", |keys| {
            let one_key = |_index| 7;
            Ok(snapshot(&map::<u64, i64>("sums"), keys, one_key, |sums, index| {
                let _ = sums.insert(index, 1);
            }))
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
    let (step, freeze) = (largest(STEP_DURING), largest(FREEZE));
    outcome.at_most("longest step while the file is written, ms", step, 2.0);
    outcome.at_most("longest freeze, ms", freeze, 5.0);
    Ok(outcome)
}

const FREEZE: &str = "freeze_ms_max";
const STEP_DURING: &str = "step_ms_max_during";

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
    let mut during = Vec::new();
    let (written, bytes) = std::thread::scope(|scope| {
        let writer = scope.spawn(move || {
            let watch = Stopwatch::start();
            let file = write_state_file("bench", range, max, frozen);
            (watch.elapsed(), file.len())
        });
        while !writer.is_finished() {
            during.push(steps.run::<D>(&mut tables, &mut update));
        }
        writer.join().unwrap_or((Duration::ZERO, 0))
    });
    let (before, all) = (Spread::of(before), during.len() as u64 * STEP);
    let run = whole.stop(all.max(1));
    run.note("step_ms_median_before", before.median)
        .note("step_ms_max_before", before.max)
        .note(FREEZE, milliseconds(freeze))
        .note(STEP_DURING, Spread::of(during).max)
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
