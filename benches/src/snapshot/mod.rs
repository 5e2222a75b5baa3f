//! `benches snapshot`: what a snapshot costs the slot that takes it, how long it takes, and how long a restore does.
//!
//! *Tables* ([`table`]): the freeze, and the steps while the frozen state is written. *Jobs* ([`job`]): both slots saturated,
//! exactly-once checkpoints with fsync; shown are the longest step of any subtask from its snapshot to its acknowledgement, the
//! sync part, trigger to log entry, and then, from a new start on the same folder to the first record at the sink.
//!
//! Owns: the candidates and what is drawn from them. Does not own: either. Runs on: the main thread.

mod job;
mod table;

use std::cell::RefCell;

use clap::Args;

use self::job::{Costs, Kind, SnapshotJob};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome};
use crate::options::{CommonOptions, machine_load};

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
    let mut candidates = vec![
        Candidate::new(TABLES, VALUE, |keys| Ok(table::value_per_key(keys))),
        Candidate::new(TABLES, MAP, |keys| Ok(table::map_of_one_key(keys))),
        job(VALUE, Kind::ValuePerKey, 1, options.checkpoints, &costs[0]),
        job(MAP, Kind::MapOfOneKey, 1, options.checkpoints, &costs[1]),
    ];
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
        outcome.because(&step, STEP);
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

const STEP: &str = "a step that first touches frozen pages copies them, and a step is one turn on a core that others use: \
    compare the tables' step_cpu_ms_max, and the p50 of this figure";
const SYNC: &str =
    "the freeze is one pass over the directory of pages; above a millisecond it is waiting for a core";
const END_TO_END: &str = "the file of each subtask is written (one pass over its frozen entries) by I/O threads that share the cores \
    with two saturated slots, then stored with fsync, then the log entry with fsync";
const RESTORE: &str =
    "each subtask decodes its file on its own thread, entry by entry, before its first step";
