//! `benches keyed-sum`: generator → `key_by` → running sum in a `ValueState` → blackhole.
//!
//! The key of event *i* is `i · 0x9E3779B97F4A7C15 mod keys`. Candidates: the loop by hand on one thread, and on source threads and
//! keyed threads over bounded channels; our job at parallelism 1 and 2, with checkpoints off and exactly-once; with the feature
//! `peers` also Renoir and timely.
//!
//! Owns: the list of candidates and what is drawn from it. Does not own: the candidates. Runs on: the main thread.

mod by_hand;
mod event;
#[cfg(feature = "peers")]
mod peers;
mod tidegate;

use std::time::Duration;

use clap::{Args, ValueEnum};

use self::event::{BenchKey, Workload};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, ratio};
use crate::options::{CommonOptions, machine_load};

/// The type of the keys.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum KeyType {
    /// 8 bytes
    U64,
    /// Strings of 16 bytes
    String,
}

/// Flags of `benches keyed-sum`.
#[derive(Clone, Debug, Args)]
pub(crate) struct KeyedSumOptions {
    /// Events of each run
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) events: u64,
    /// Distinct keys
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) keys: u64,
    /// Type of the keys
    #[arg(long, value_enum, default_value_t = KeyType::U64)]
    pub(crate) key_type: KeyType,
    /// From one checkpoint to the next, in milliseconds
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) checkpoint_interval_ms: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const ONE: &str = "parallelism 1";
const TWO: &str = "parallelism 2";
const BY_HAND: &str = "by hand, one thread";
const THREADS: &str = "by hand, source and keyed threads";
const OFF: &str = "tidegate, no checkpoints";
const EXACTLY_ONCE: &str = "tidegate, exactly-once";
const RENOIR: &str = "renoir";
const TIMELY: &str = "timely";

/// Runs it.
///
/// # Errors
/// The first candidate that fails.
pub(crate) fn run(options: &KeyedSumOptions) -> Result<Outcome, BenchError> {
    let load = machine_load();
    let candidates = match options.key_type {
        KeyType::U64 => candidates::<u64>(options),
        KeyType::String => candidates::<String>(options),
    };
    let measured = options.common.rounds(options.events).measure(candidates)?;
    let key_type = options.key_type.to_possible_value().map_or_else(String::new, |v| v.get_name().to_owned());
    let mut outcome = options
        .common
        .outcome("keyed-sum", measured, load)
        .setting("events", options.events)
        .setting("keys", options.keys)
        .setting("key_type", key_type)
        .setting("checkpoint_interval_ms", options.checkpoint_interval_ms)
        .with_peers(&[RENOIR, TIMELY]);
    draw(&mut outcome);
    Ok(outcome)
}

fn draw(outcome: &mut Outcome) {
    let rate = |group: &str, name: &str| outcome.median(group, name, Run::rate);
    let (ours, safe) = (rate(TWO, OFF), rate(TWO, EXACTLY_ONCE));
    let cost = ratio(safe, ours).map(|kept| 1.0 - kept);
    let peers = [("renoir", RENOIR), ("timely", TIMELY), ("hand_written", THREADS)];
    let ratios: serde_json::Map<_, _> = peers
        .into_iter()
        .filter_map(|(key, name)| Some((key.to_owned(), ratio(ours, rate(TWO, name))?.into())))
        .collect();
    // The same by CPU time: steadier on a machine that others use.
    let cpu = |name: &str| outcome.median(TWO, name, Run::cpu_ns);
    let cpu_ratios: serde_json::Map<_, _> = peers
        .into_iter()
        .filter_map(|(key, name)| Some((key.to_owned(), ratio(cpu(name), cpu(OFF))?.into())))
        .collect();
    let one_thread = ratio(rate(ONE, OFF), rate(ONE, BY_HAND));
    outcome.figure("records_per_s", ours);
    outcome.figure("checkpoint_cost", cost);
    outcome.figure("ratio_one_thread", one_thread);
    let of = |name: &str| ratios.get(name).and_then(serde_json::Value::as_f64);
    outcome.at_least("over renoir", of("renoir"), 3.0);
    outcome.at_least("over timely", of("timely"), 1.2);
    outcome.at_least("over the loop by hand", of("hand_written"), 0.75);
    outcome.at_least("over the loop by hand, one thread each", one_thread, 0.75);
    outcome.at_most("cost of exactly-once", cost, 0.05);
    outcome.because("cost of exactly-once", COST);
    for behind in
        ["over renoir", "over timely", "over the loop by hand", "over the loop by hand, one thread each"]
    {
        outcome.because(behind, LOOKUP);
    }
    outcome.figures.insert("ratios".to_owned(), ratios.into());
    outcome.figures.insert("cpu_ratios".to_owned(), cpu_ratios.into());
}

const LOOKUP: &str = "half of a record's time is waiting for memory in the lookup of its key, and with strings for the allocator besides \
     (docs/performance.md)";
const COST: &str = "after a freeze the first write to a page copies its values, and the writer of the file takes a core; next: files that \
     hold only what has changed (docs/performance.md)";

fn candidates<K: BenchKey>(options: &KeyedSumOptions) -> Vec<Candidate<'static>> {
    let keys = options.keys;
    let of = move |events| Workload::new(events, keys);
    let every = Some(Duration::from_millis(options.checkpoint_interval_ms));
    let mut all = vec![Candidate::new(ONE, BY_HAND, move |events| by_hand::one_thread::<K>(of(events)))];
    for (group, parallelism) in [(ONE, 1), (TWO, 2)] {
        all.extend([
            Candidate::new(group, THREADS, move |events| by_hand::threads::<K>(of(events), parallelism)),
            Candidate::new(group, OFF, move |events| tidegate::job::<K>(of(events), parallelism, None)),
            Candidate::new(group, EXACTLY_ONCE, move |events| {
                tidegate::job::<K>(of(events), parallelism, every)
            }),
        ]);
        #[cfg(feature = "peers")]
        all.extend([
            Candidate::new(group, RENOIR, move |events| peers::renoir::<K>(of(events), parallelism)),
            Candidate::new(group, TIMELY, move |events| peers::timely::<K>(of(events), parallelism)),
        ]);
    }
    all
}
