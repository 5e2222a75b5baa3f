//! What the model must show.

use super::super::check::{Reachability, always_possible, breaks, holds};
use super::{Pending, Weakening};

/// For the first property: records with identity, crashes.
const SAFE: Pending = Pending {
    records: Some(3),
    completions: 3,
    ids: 4,
    tolerable: 2,
    crashes: 1,
    locks: false,
    uncounted: false,
    savepoints: false,
    weakening: Weakening::None,
};

/// For the second property: records without end, no crash, tolerable failures as by default.
const LIVE: Pending =
    Pending { records: None, completions: 2, ids: u8::MAX, tolerable: 3, crashes: 0, ..SAFE };

#[test]
fn every_record_is_out_once_whatever_is_aborted() {
    holds("pending, one crash", SAFE);
    holds("pending, two crashes", Pending { records: Some(2), ids: 3, crashes: 2, completions: 2, ..SAFE });
}

#[test]
#[ignore = "forty seconds of one core, nearly six million states"]
fn every_record_is_out_once_in_longer_schedules() {
    holds("pending, two crashes, longer", Pending { crashes: 2, ids: 4, ..SAFE });
}

#[test]
fn weaker_forms_lose_or_double() {
    use Weakening::*;
    for weakening in [RollbackOnAbort, HandedOverEndsPending, ListsOnlyOwnCheckpoint] {
        breaks(&format!("pending, {weakening:?}"), Pending { weakening, ..SAFE });
    }
    let savepoints = Pending { savepoints: true, weakening: SavepointIsNoRecoveryPoint, ..SAFE };
    breaks("pending, SavepointIsNoRecoveryPoint", savepoints);
}

#[test]
fn a_checkpoint_can_always_complete() {
    never_stuck("places, counted failures", LIVE);
    never_stuck("places, all failures", Pending { uncounted: true, tolerable: 2, ..LIVE });
    never_stuck("places, savepoints", Pending { savepoints: true, ..LIVE });
    never_stuck("places, row locks", Pending { locks: true, ..LIVE });
    never_stuck(
        "places, row locks, everything",
        Pending { locks: true, uncounted: true, savepoints: true, ..LIVE },
    );
}

#[test]
fn weaker_forms_get_stuck() {
    use Weakening::*;
    stuck(TolerableFailuresWithLocks, Pending { locks: true, ..LIVE });
    stuck(
        OnlyCountedFailuresTakeAPlace,
        Pending { uncounted: true, tolerable: 1, ids: 8, completions: 1, ..LIVE },
    );
    stuck(BlockedIsNotStepped, Pending { locks: true, ..LIVE });
    stuck(SavepointCommitsNothing, Pending { locks: true, savepoints: true, ids: 6, ..LIVE });
}

fn explore(model: Pending) -> Reachability {
    always_possible(&model, |world| world.has_failed || world.completions == model.completions)
}

fn never_stuck(title: &str, model: Pending) {
    match explore(model) {
        Reachability::Always(states) => println!("{title}: never stuck, exhaustive, {states} states"),
        Reachability::Stuck { states, stuck, told } => {
            panic!("{title}: stuck in {stuck} of {states} states\n{told}")
        }
    }
}

fn stuck(weakening: Weakening, model: Pending) {
    match explore(Pending { weakening, ..model }) {
        Reachability::Always(states) => {
            panic!(
                "places, {weakening:?}: no schedule gets stuck ({states} states): the law or the model is too strict"
            )
        }
        Reachability::Stuck { states, stuck, told } => {
            println!("places, {weakening:?}: stuck, as it must be, in {stuck} of {states} states\n{told}");
        }
    }
}
