//! Scenarios of the simulation: clean seeds stay clean, softened laws are found.

use tidegate_engine::mutation::{self, Mutation};
use tidegate_engine::sim::{Coverage, SimOptions, SimReport, Simulation};

/// Runs seeds and adds their reports up.
fn run(seeds: std::ops::Range<u64>) -> Result<Vec<SimReport>, String> {
    let (mut reports, mut failures) = (Vec::new(), Vec::new());
    for seed in seeds {
        match Simulation::run(seed) {
            Ok(report) => reports.push(report),
            Err(failure) => failures.push(failure.to_string()),
        }
    }
    if failures.is_empty() { Ok(reports) } else { Err(failures.join("\n")) }
}

#[test]
fn a_hundred_seeds_of_crashes_lose_nothing_and_double_nothing() {
    let seeds: u64 = std::env::var("SEEDS").ok().and_then(|s| s.parse().ok()).unwrap_or(100);
    let reports = run(0..seeds).unwrap_or_else(|failures| panic!("{failures}"));
    let mut coverage = Coverage::default();
    reports.iter().for_each(|r| coverage.merge(&r.coverage));
    println!("{coverage}");
    println!("missing: {:#?}", coverage.missing());
}

/// One seed, to look at: `TIDEGATE_SIM_SEED=7 cargo test -p tidegate-engine --test simulation one_seed -- --nocapture`.
#[test]
fn one_seed() {
    let Some(seed) = std::env::var("TIDEGATE_SIM_SEED").ok().and_then(|s| s.parse().ok()) else { return };
    match Simulation::run_with(seed, &SimOptions::default()) {
        Ok((report, timeline)) => println!("{timeline}\n{report:?}"),
        Err(failure) => println!("{}\n{failure}", failure.timeline),
    }
}

/// Seeds in which a softened law has to be noticed.
const MUTATION_SEEDS_MAX: u64 = 300;

/// The first seed that notices, with what it saw.
fn first_failure(soft: Mutation) -> Option<(u64, String)> {
    mutation::set(Some(soft));
    let found = (0..MUTATION_SEEDS_MAX).find_map(|seed| Simulation::run(seed).err().map(|f| (seed, f.what)));
    mutation::set(None);
    found
}

#[test]
fn every_softened_law_is_noticed() {
    let mut missed = Vec::new();
    for soft in Mutation::ALL {
        match first_failure(soft) {
            Some((seed, what)) => {
                println!("{soft:?}: seed {seed}: {}", what.lines().next().unwrap_or_default())
            }
            None => missed.push(soft),
        }
    }
    assert!(missed.is_empty(), "not noticed within {MUTATION_SEEDS_MAX} seeds: {missed:?}");
}
