//! `benches exchange`: records go to another subtask by key, and nothing is done with them there.
//!
//! Records of 16, 100 and 1,000 bytes at parallelism 2 and 4; beside our job the loop by hand: source threads and receiving threads
//! over bounded channels, in batches of as many records.
//!
//! Owns: the candidates. Does not own: exchange. Runs on: the main thread, and on threads of the loop by hand.

mod by_hand;

use clap::Args;
use tidegate_connectors::blackhole::BlackholeSink;
use tidegate_connectors::datagen::Datagen;
use tidegate_engine::api::StreamEnvironment;

use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, ratio};
use crate::job::{JobSetup, run_job};
use crate::options::{CommonOptions, machine_load};

/// Flags of `benches exchange`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ExchangeOptions {
    /// Records of each run
    #[arg(long, default_value_t = 5_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

const BY_HAND: &str = "by hand";
const OURS: &str = "tidegate job";

/// A record of `8 + REST` bytes.
#[derive(Clone, Debug)]
pub(crate) struct Payload<const REST: usize> {
    key: u64,
    #[expect(dead_code, reason = "weight: it only has to be carried")]
    rest: [u8; REST],
}

impl<const REST: usize> Payload<REST> {
    #[inline]
    fn make(index: u64) -> Self {
        Self { key: index.wrapping_mul(0x9E37_79B9_7F4A_7C15), rest: [(index & 0xff) as u8; REST] }
    }
}

/// Runs it.
///
/// # Errors
/// The first candidate that fails.
pub(crate) fn run(options: &ExchangeOptions) -> Result<Outcome, BenchError> {
    let load = machine_load();
    let mut candidates = Vec::new();
    candidates.extend(of_size::<8>("16 bytes, parallelism 2", 2));
    candidates.extend(of_size::<8>("16 bytes, parallelism 4", 4));
    candidates.extend(of_size::<92>("100 bytes, parallelism 2", 2));
    candidates.extend(of_size::<92>("100 bytes, parallelism 4", 4));
    candidates.extend(of_size::<992>("1,000 bytes, parallelism 2", 2));
    candidates.extend(of_size::<992>("1,000 bytes, parallelism 4", 4));
    let measured = options.common.rounds(options.records).measure(candidates)?;
    let mut outcome = options.common.outcome("exchange", measured, load).setting("records", options.records);
    let mut groups: Vec<&str> = outcome.measured.iter().map(|m| m.group).collect();
    groups.dedup();
    for group in groups {
        let rate = |name: &str| outcome.median(group, name, Run::rate);
        let over = ratio(rate(OURS), rate(BY_HAND));
        outcome.figure(&format!("{group}: over by hand"), over);
    }
    Ok(outcome)
}

fn of_size<const REST: usize>(group: &'static str, parallelism: u32) -> [Candidate<'static>; 2] {
    [
        Candidate::new(group, BY_HAND, move |records| by_hand::run::<REST>(records, parallelism)),
        Candidate::new(group, OURS, move |records| job::<REST>(records, parallelism)),
    ]
}

fn job<const REST: usize>(records: u64, parallelism: u32) -> Result<Run, BenchError> {
    let (env, sink) = (StreamEnvironment::new(), BlackholeSink::<Payload<REST>>::new());
    env.source("records", Datagen::new(Payload::<REST>::make).bounded(records))
        .key_by(|record: &Payload<REST>| record.key)
        .sink("blackhole", sink.clone());
    let setup = JobSetup { candidate: "exchange", parallelism, checkpoint_every: None };
    run_job(env, setup, records, records, || sink.records())
}
