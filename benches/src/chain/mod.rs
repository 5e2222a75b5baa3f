//! `benches chain`: map → filter → map on a `u64`, and on a 48-byte struct with a string.
//!
//! Candidates: making the records and nothing else; the loop by hand; three operators of a chain, pushed batch by batch; the same
//! steps as one `pipe`; both as whole jobs, with source, scheduler and sink; with the feature `peers` also Renoir and timely.
//!
//! Owns: the list of candidates and what is drawn from it. Does not own: the candidates. Runs on: the main thread.

mod by_hand;
#[cfg(feature = "peers")]
mod peers;
mod records;
mod stages;
mod whole_job;

use clap::Args;

use self::records::{ChainRecord, Order};
use crate::error::BenchError;
use crate::harness::{Candidate, Outcome, Run, ratio};
use crate::options::{CommonOptions, machine_load};

/// Flags of `benches chain`.
#[derive(Clone, Debug, Args)]
pub(crate) struct ChainOptions {
    /// Records of each run
    #[arg(long, default_value_t = 20_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) records: u64,
    #[command(flatten)]
    pub(crate) common: CommonOptions,
}

/// Operators in the chain.
const OPERATORS: f64 = 3.0;

const MAKE: &str = "make the records only";
const BY_HAND: &str = "by hand";
const STAGES: &str = "tidegate, three operators";
const PIPE: &str = "tidegate, one pipe";
const JOB: &str = "tidegate job, three operators";
const JOB_PIPE: &str = "tidegate job, one pipe";
const RENOIR: &str = "renoir";
const TIMELY: &str = "timely";

/// Runs it.
///
/// # Errors
/// The first candidate that fails.
pub(crate) fn run(options: &ChainOptions) -> Result<Outcome, BenchError> {
    let load = machine_load();
    let candidates = candidates::<u64>("u64").into_iter().chain(candidates::<Order>("order")).collect();
    let measured = options.common.rounds(options.records).measure(candidates)?;
    let mut outcome = options
        .common
        .outcome("chain", measured, load)
        .setting("records", options.records)
        .with_peers(&[RENOIR, TIMELY]);
    let mut ratios = serde_json::Map::new();
    for group in ["u64", "order"] {
        let ns = |name: &str| outcome.median(group, name, Run::cpu_ns);
        let (make, by_hand) = (ns(MAKE), ns(BY_HAND));
        let (stages, pipe) = (ns(STAGES), ns(PIPE));
        let of_operator = |all: Option<f64>| Some((all? - make?) / OPERATORS);
        let (own, hand, piped) = (of_operator(stages), of_operator(by_hand), of_operator(pipe));
        outcome.figure(&format!("{group}_ns_per_operator"), own);
        outcome.figure(&format!("{group}_ns_per_operator_by_hand"), hand);
        outcome.figure(&format!("{group}_ns_per_operator_pipe"), piped);
        outcome.at_most(&format!("{group}: pipe over by hand, time per record"), ratio(pipe, by_hand), 1.3);
        let rate = |name: &str| outcome.median(group, name, Run::rate);
        let ours = rate(JOB_PIPE);
        let over: serde_json::Map<_, _> = [("renoir", RENOIR), ("timely", TIMELY), ("hand_written", BY_HAND)]
            .into_iter()
            .filter_map(|(key, name)| Some((key.to_owned(), ratio(ours, rate(name))?.into())))
            .collect();
        let over_renoir = over.get("renoir").and_then(serde_json::Value::as_f64);
        let name = format!("{group}: whole job with pipe over renoir");
        outcome.at_least(&name, over_renoir, 1.5);
        outcome.because(&name, AROUND);
        ratios.insert(group.to_owned(), over.into());
    }
    outcome.figures.insert("ratios".to_owned(), ratios.into());
    Ok(outcome)
}

const AROUND: &str = "Renoir's one loop need not make the string of the struct, our batches hold it; next: a source fused \
     with its first pipe (docs/performance.md)";

fn candidates<R: ChainRecord>(group: &'static str) -> Vec<Candidate<'static>> {
    let own = vec![
        Candidate::new(group, MAKE, by_hand::make_only::<R>),
        Candidate::new(group, BY_HAND, by_hand::run::<R>),
        Candidate::new(group, STAGES, stages::three_operators::<R>),
        Candidate::new(group, PIPE, stages::one_pipe::<R>),
        Candidate::new(group, JOB, whole_job::three_operators::<R>),
        Candidate::new(group, JOB_PIPE, whole_job::one_pipe::<R>),
    ];
    #[cfg(feature = "peers")]
    let own = own.into_iter().chain([
        Candidate::new(group, RENOIR, peers::renoir::<R>),
        Candidate::new(group, TIMELY, peers::timely::<R>),
    ]);
    own.into_iter().collect()
}
