//! Which kills a torture run makes, and in which order: a function of seed, number and parallelism.
//!
//! Owns: the scenes (kills that must follow each other), the draw, the shuffle.
//! Does not own: the places ([`super::place`]), the kills themselves ([`super::campaign`]).
//! Runs on: the main thread. Pure.
//!
//! A kill between two commits needs a process that has several transactions of one sink to commit: the process before it dies
//! at a higher parallelism, right behind the log entry. A kill around a rollback needs a transaction that no checkpoint lists:
//! the process before it dies when all of a checkpoint are prepared, right before its entry. What a death has to leave for
//! the one behind it is part of its strike: an interval without a record leaves nothing.

use tidegate_jobs::random::SplitMix64;

use super::place::{FaultPass, Place, SinkPoints};

/// The parts of a share.
pub(crate) const WHOLE: u64 = 1_000;
/// A kill by progress falls behind at least this much of its share of the input.
const SHARE_MIN: u64 = 300;

/// Where a process dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spot {
    /// When it has read so much of the share of the input that a kill has, and completed a checkpoint.
    Progress {
        /// Of [`WHOLE`].
        share: u64,
        /// Whether it waits, for a while, until a transaction is prepared.
        waits: bool,
    },
    /// When it has read so many orders since its first checkpoint was complete: the script of the control group.
    Behind {
        /// Orders.
        records: u64,
    },
    /// At a fault point.
    Fault(FaultPass),
}

impl Spot {
    /// For people.
    pub(crate) fn words(self) -> String {
        match self {
            Self::Fault(pass) => format!("{}, {}", pass.place.words(), pass.variable()),
            Self::Progress { .. } => "by progress".to_owned(),
            Self::Behind { records } => format!("{records} orders after a checkpoint"),
        }
    }
}

/// One kill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Strike {
    /// Where.
    pub(crate) spot: Spot,
    /// Parallelism of the process that dies.
    pub(crate) parallelism: u32,
    /// Transactions that it must leave undecided, for the kill behind it to find: with fewer it does not count.
    pub(crate) leaves_min: u64,
}

impl Strike {
    /// One that nothing behind it hangs on.
    pub(crate) fn alone(spot: Spot, parallelism: u32) -> Self {
        Self { spot, parallelism, leaves_min: 0 }
    }
}

/// The smallest number of kills that strikes each place.
pub(crate) const KILLS_MIN: u32 = Place::ALL.len() as u32;

const ROLLBACK: [&str; 2] = ["sink.rollback.before", "sink.rollback.after"];
const RECOVERY: [&str; 4] =
    ["commit_log.claim.after", "restore.read.after", "sink.recover.before", "sink.recover.after"];

/// Kills that must follow each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scene {
    Progress,
    Alone(Place, &'static str),
    /// At the sink's own points.
    HalfBatch,
    InCommit,
    /// A death between the last prepare and the log entry, and one in the rollback of what it has left.
    Rollback,
    /// A death behind a log entry, and one in the recovery of what it lists.
    Recovery,
    /// A death behind a log entry, and one between the commits of what it lists.
    BetweenCommits,
}

const BUFFERED: Scene = Scene::Alone(Place::Buffered, "sink.write.after");
const HALF_BATCH: Scene = Scene::HalfBatch;
const BEFORE_ENTRY: Scene = Scene::Alone(Place::Prepared, "sink.prepare.after");
const LOGGED: Scene = Scene::Alone(Place::Logged, "commit_log.checkpoint.after");
const IN_COMMIT: Scene = Scene::InCommit;
/// Strikes each place once.
const EACH_PLACE: [Scene; 5] = [BUFFERED, HALF_BATCH, Scene::Rollback, Scene::BetweenCommits, IN_COMMIT];
/// What comes next, when there are more kills: first in this order, then by the draw.
const MORE: [Scene; 8] = [
    BEFORE_ENTRY,
    Scene::Recovery,
    LOGGED,
    BUFFERED,
    IN_COMMIT,
    HALF_BATCH,
    Scene::BetweenCommits,
    Scene::Rollback,
];

impl Scene {
    fn kills(self) -> u32 {
        match self {
            Self::Progress | Self::Alone(..) | Self::HalfBatch | Self::InCommit => 1,
            Self::Rollback | Self::Recovery | Self::BetweenCommits => 2,
        }
    }

    fn strikes(self, parallelism: u32, points: SinkPoints, random: &mut SplitMix64) -> Vec<Strike> {
        let one_of = |points: &[&'static str], random: &mut SplitMix64| {
            points[usize::try_from(random.below(points.len() as u64)).unwrap_or(0)]
        };
        let strike = |place, point, parallelism, random: &mut SplitMix64| {
            let pass = FaultPass::draw(place, point, (parallelism, points.sinks), random);
            Strike::alone(Spot::Fault(pass), parallelism)
        };
        match self {
            Self::Progress => {
                let share = SHARE_MIN + random.below(WHOLE - SHARE_MIN);
                let waits = random.below(2) == 0;
                vec![Strike::alone(Spot::Progress { share, waits }, parallelism)]
            }
            Self::Alone(place, point) => vec![strike(place, point, parallelism, random)],
            Self::HalfBatch => vec![strike(Place::HalfBatch, points.half_batch, parallelism, random)],
            Self::InCommit => vec![strike(Place::InCommit, points.in_commit, parallelism, random)],
            Self::Rollback => {
                let prepared = strike(Place::Prepared, "commit_log.checkpoint.before", parallelism, random);
                let point = one_of(&ROLLBACK, random);
                vec![
                    Strike { leaves_min: 1, ..prepared },
                    strike(Place::InRecovery, point, parallelism, random),
                ]
            }
            Self::Recovery => {
                let logged = strike(Place::Logged, "commit_log.checkpoint.after", parallelism, random);
                let point = one_of(&RECOVERY, random);
                vec![logged, strike(Place::InRecovery, point, parallelism, random)]
            }
            Self::BetweenCommits => {
                let logged = strike(Place::Logged, "commit_log.checkpoint.after", parallelism.max(2), random);
                vec![
                    // Of more transactions than there are sinks two are of the same sink.
                    Strike { leaves_min: points.sinks + 1, ..logged },
                    strike(Place::BetweenCommits, "sink.commit.between", 1, random),
                ]
            }
        }
    }
}

/// The kills of a run: half of them, and at least one per place, at fault points; the others by progress.
pub(crate) fn schedule(kills: u32, seed: u64, parallelism: u32, points: SinkPoints) -> Vec<Strike> {
    let mut random = SplitMix64::seeded(seed);
    let mut scenes = EACH_PLACE.to_vec();
    let mut at_points = KILLS_MIN;
    let mut more = MORE.into_iter();
    while at_points < kills / 2 {
        let drawn = more
            .next()
            .unwrap_or_else(|| MORE[usize::try_from(random.below(MORE.len() as u64)).unwrap_or(0)]);
        let scene = if at_points + drawn.kills() > kills / 2 { LOGGED } else { drawn };
        at_points += scene.kills();
        scenes.push(scene);
    }
    let by_progress = usize::try_from(kills.saturating_sub(at_points)).unwrap_or(0);
    scenes.extend(std::iter::repeat_n(Scene::Progress, by_progress));
    for last in (1..scenes.len()).rev() {
        scenes.swap(last, usize::try_from(random.below(last as u64 + 1)).unwrap_or(0));
    }
    scenes.into_iter().flat_map(|scene| scene.strikes(parallelism, points, &mut random)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn place(strike: &Strike) -> Option<Place> {
        match strike.spot {
            Spot::Fault(pass) => Some(pass.place),
            _ => None,
        }
    }

    #[test]
    fn each_place_is_struck_and_half_of_the_kills_are_at_points() {
        for seed in 0..200 {
            for kills in [7, 8, 13, 14, 20, 21, 50] {
                let strikes = schedule(kills, seed, 3, SinkPoints::SQLITE);
                assert_eq!(strikes.len() as u32, kills);
                let places: BTreeSet<_> = strikes.iter().filter_map(place).collect();
                assert_eq!(places.len(), Place::ALL.len(), "seed {seed}: {strikes:?}");
                let at_points = strikes.iter().filter(|strike| place(strike).is_some()).count() as u32;
                assert_eq!(at_points, (kills / 2).max(KILLS_MIN), "seed {seed}");
            }
        }
    }

    #[test]
    fn what_needs_another_death_in_front_has_it() {
        for seed in 0..200 {
            for parallelism in [1, 3] {
                let strikes = schedule(30, seed, parallelism, SinkPoints::SQLITE);
                for pair in strikes.windows(2) {
                    if place(&pair[1]) == Some(Place::BetweenCommits) {
                        assert_eq!(place(&pair[0]), Some(Place::Logged));
                        assert!(pair[0].parallelism > pair[1].parallelism);
                        assert_eq!(pair[0].leaves_min, SinkPoints::SQLITE.sinks + 1);
                    }
                    if matches!(pair[1].spot, Spot::Fault(pass) if ROLLBACK.contains(&pass.point)) {
                        assert_eq!((place(&pair[0]), pair[0].leaves_min), (Some(Place::Prepared), 1));
                    }
                }
                assert!(!matches!(place(&strikes[0]), Some(Place::BetweenCommits | Place::InRecovery)));
            }
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_kills_and_another_seed_others() {
        let drawn = |seed| schedule(20, seed, 3, SinkPoints::SQLITE);
        assert_eq!(drawn(7), drawn(7));
        assert_ne!(drawn(7), drawn(8));
    }
}
