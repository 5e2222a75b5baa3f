//! Scenarios of the simulation: clean seeds stay clean, together they come upon everything, and softened laws are found.

use std::hash::{BuildHasher, Hasher, RandomState};

use tidegate_engine::mutation::{self, Mutation};
use tidegate_engine::sim::{Campaign, Coverage, ServerKind, SimOptions, Simulation, shrink};

/// Seeds that every run tries.
const FIXED: u64 = 300;
/// Seeds that differ from run to run; they are printed.
const RANDOM: u64 = 12;
const THREADS: u64 = 2;

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|text| text.parse().ok())
}

/// Runs seeds on a few threads.
fn run(seeds: &[u64]) -> Campaign {
    let mut all = Campaign::default();
    std::thread::scope(|scope| {
        let share = |part: u64| {
            scope.spawn(move || {
                let mut campaign = Campaign::default();
                seeds.iter().filter(|s| *s % THREADS == part).for_each(|seed| {
                    campaign.run(*seed);
                });
                campaign
            })
        };
        let threads: Vec<_> = (0..THREADS).map(share).collect();
        threads.into_iter().for_each(|thread| all.merge(thread.join().expect("a simulation panicked")));
    });
    all
}

#[test]
fn fixed_and_random_seeds_are_clean_and_come_upon_everything() {
    let first = RandomState::new().build_hasher().finish() >> 32 << 8;
    let random: Vec<u64> = (first..first + RANDOM).collect();
    println!("random seeds: {first} to {}", first + RANDOM - 1);
    let fixed = number("TIDEGATE_SIM_SEEDS").unwrap_or(FIXED);
    let seeds: Vec<u64> = (0..fixed).chain(random).collect();
    let campaign = run(&seeds);
    println!("{campaign}");
    let failures: Vec<_> = campaign.failures.iter().map(ToString::to_string).collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert_eq!(
        campaign.too_small,
        Vec::<(u64, u64, u64)>::new(),
        "seeds below their minimum: (seed, completed, crashes)"
    );
    assert!(campaign.median_batches() >= 20, "{} batches per channel", campaign.median_batches());
    assert_eq!(campaign.coverage.missing(), Vec::<String>::new());
}

#[test]
fn the_same_seed_gives_the_same_run() {
    for seed in [3, 17, 42, 77] {
        let twice = || Simulation::run_with(seed, &SimOptions::default()).unwrap();
        assert_eq!(twice(), twice());
    }
}

/// `TIDEGATE_SIM_SERVER=broker` (or `staged`, `xa`, `files`) looks at one kind of server only.
fn options() -> SimOptions {
    let kinds = [
        ("staged", ServerKind::Staged),
        ("xa", ServerKind::Xa),
        ("broker", ServerKind::Broker),
        ("files", ServerKind::Files),
    ];
    let named = std::env::var("TIDEGATE_SIM_SERVER").ok();
    let server = kinds.into_iter().find(|(name, _)| named.as_deref() == Some(*name)).map(|(_, kind)| kind);
    SimOptions { server, ..SimOptions::default() }
}

/// One seed, to look at: `TIDEGATE_SIM_SEED=7 cargo test -p tidegate-engine --test simulation one_seed -- --nocapture`; with
/// `TIDEGATE_SIM_MUTATION=AlignmentSkipped` under a softened law.
#[test]
fn one_seed() {
    let Some(seed) = number("TIDEGATE_SIM_SEED") else { return };
    let only = std::env::var("TIDEGATE_SIM_MUTATION").ok();
    mutation::set(
        Mutation::ALL.iter().copied().find(|m| only.as_ref().is_some_and(|only| *only == format!("{m:?}"))),
    );
    match Simulation::run_with(seed, &options()) {
        Ok((report, timeline)) => println!("{timeline}\n{report:?}"),
        Err(failure) => println!("{}\n{failure}", failure.timeline),
    }
}

/// Seeds in which a softened law has to be noticed.
const MUTATION_SEEDS_MAX: u64 = 300;

/// Seeds that are known to notice: tried before all others.
const KNOWN: &[(Mutation, u64)] = &[
    (Mutation::CommitBeforeCompletion, 1),
    (Mutation::AlignmentSkipped, 1),
    (Mutation::RollbackOnAbort, 2),
    (Mutation::ListsOnlyOwnCheckpoint, 2),
    (Mutation::SweepBeforeCommit, 1),
    (Mutation::SplitListInRecovery, 20),
    (Mutation::PutPerId, 3),
    (Mutation::AssignmentAfterSnapshot, 28),
    (Mutation::OldAckAccepted, 6),
    (Mutation::MailUnreadWhileBlocked, 43),
    (Mutation::PendingEndsAtHandOver, 20),
    (Mutation::ExplicitRestoreNotInLog, 8),
    (Mutation::NoSecondListing, 51),
    (Mutation::CleanerByListing, 260),
    (Mutation::CleanerBeforeEntry, 25),
    (Mutation::EndedSetEarly, 48),
    (Mutation::SlotNameWithoutAttempt, 67),
    (Mutation::InvalidStateIsCommitted, 15),
    (Mutation::SlotReusedUnsettled, 1),
    (Mutation::TooFewSlots, 20),
    (Mutation::ProducerKept, 25),
    (Mutation::OpeningAskedAgain, 21),
];

/// Laws of a sink into a broker: looked for in seeds that write to one.
const OF_A_BROKER: &[Mutation] = &[
    Mutation::SlotNameWithoutAttempt,
    Mutation::FenceBeforeRecovery,
    Mutation::InvalidStateIsCommitted,
    Mutation::ShortTransactionTimeout,
    Mutation::SlotReusedUnsettled,
    Mutation::TooFewSlots,
    Mutation::ProducerKept,
    Mutation::OpeningAskedAgain,
];

/// The first seed that notices, with what it saw.
fn first_failure(soft: Mutation, options: &SimOptions) -> Option<(u64, String)> {
    mutation::set(Some(soft));
    let known = KNOWN.iter().filter(|(m, _)| *m == soft).map(|(_, seed)| *seed);
    let server = match soft {
        Mutation::FinishedFileNotCommitted => Some(ServerKind::Files),
        _ if OF_A_BROKER.contains(&soft) => Some(ServerKind::Broker),
        _ => options.server,
    };
    let options = SimOptions { server, ..options.clone() };
    let found = known.chain(0..MUTATION_SEEDS_MAX).find_map(|seed| {
        let failure = Simulation::run_with(seed, &options).err()?;
        Some((seed, failure.what))
    });
    mutation::set(None);
    found
}

#[test]
fn every_softened_law_is_noticed() {
    let only = std::env::var("TIDEGATE_SIM_MUTATION").ok();
    let wanted = |m: &Mutation| only.as_ref().is_none_or(|only| format!("{m:?}").contains(only));
    let soft: Vec<_> = Mutation::ALL.iter().copied().filter(wanted).collect();
    assert_noticed(&soft, &options());
}

/// Laws of commit and recovery that the one driver keeps for every sink.
const OF_THE_DRIVER: &[Mutation] = &[
    Mutation::RollbackOnAbort,
    Mutation::ListsOnlyOwnCheckpoint,
    Mutation::SweepBeforeCommit,
    Mutation::SplitListInRecovery,
    Mutation::PendingEndsAtHandOver,
];

#[test]
fn the_drivers_laws_softened_are_noticed_by_a_reader_of_the_broker_too() {
    assert_noticed(OF_THE_DRIVER, &SimOptions { server: Some(ServerKind::Broker), ..SimOptions::default() });
}

/// Each of these laws, softened, is noticed by some seed.
fn assert_noticed(soft: &[Mutation], options: &SimOptions) {
    let (mut missed, mut rows) = (Vec::new(), Vec::new());
    std::thread::scope(|scope| {
        let share = |part: usize| {
            scope.spawn(move || {
                let mine = soft.iter().copied().skip(part).step_by(THREADS as usize);
                mine.map(|m| (m, first_failure(m, options))).collect::<Vec<_>>()
            })
        };
        let threads: Vec<_> = (0..THREADS as usize).map(share).collect();
        rows.extend(threads.into_iter().flat_map(|thread| thread.join().expect("a simulation panicked")));
    });
    rows.sort();
    for (soft, found) in rows {
        match found {
            Some((seed, what)) => {
                let what: String = what.lines().next().unwrap_or_default().chars().take(150).collect();
                println!("| {soft:?} | {seed} | {what} |");
            }
            None => missed.push(soft),
        }
    }
    assert!(missed.is_empty(), "not noticed within {MUTATION_SEEDS_MAX} seeds: {missed:?}");
}

#[test]
fn a_failing_schedule_is_made_smaller_and_still_fails() {
    mutation::set(Some(Mutation::AlignmentSkipped));
    let seed = (0..MUTATION_SEEDS_MAX).find(|seed| Simulation::run(*seed).is_err()).unwrap();
    let shrunk = shrink(seed);
    mutation::set(None);
    let (options, failure) = shrunk.unwrap();
    assert_eq!(failure.seed, seed);
    assert!(!options.store_faults || !options.message_faults, "{options:?}");
    assert!(shrink(1).is_none());
}

/// Many seeds of one kind of server, to look at: `TIDEGATE_SIM_SERVER=broker TIDEGATE_SIM_SEEDS=300 cargo test .. only_one_kind`.
#[test]
fn seeds_of_only_one_kind_of_server() {
    if options().server.is_none() {
        return;
    }
    let (mut bad, mut coverage) = (Vec::new(), Coverage::default());
    for seed in 0..number("TIDEGATE_SIM_SEEDS").unwrap_or(FIXED) {
        match Simulation::run_with(seed, &options()) {
            Ok((report, _)) => coverage.merge(&report.coverage),
            Err(failure) => {
                println!("{seed}: {}", failure.what);
                bad.push(seed);
            }
        }
    }
    println!("{coverage}");
    assert!(bad.is_empty(), "{bad:?}");
}
