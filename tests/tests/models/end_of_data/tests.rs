//! What the model must show.

use super::super::check::{Reachability, always_possible, breaks, holds};
use super::{EndOfData, Weakening};

const TWO_SOURCES: EndOfData = EndOfData { records: [2, 1], crashes: 2, weakening: Weakening::None };

#[test]
fn everything_is_committed_once_when_the_job_is_finished() {
    holds("end of data, two crashes", TWO_SOURCES);
}

#[test]
fn the_job_can_always_finish() {
    let model = EndOfData { crashes: 1, ..TWO_SOURCES };
    match always_possible(&model, |world| world.is_finished) {
        Reachability::Always(states) => {
            println!("end of data, can finish: never stuck, exhaustive, {states} states")
        }
        Reachability::Stuck { states, stuck, told } => panic!("stuck in {stuck} of {states} states\n{told}"),
    }
}

#[test]
fn every_weaker_form_breaks() {
    use Weakening::*;
    for weakening in [SnapshotInTheMiddle, EndedSetEarly, OnEndAfterRestore, NoLastCheckpoint] {
        breaks(&format!("end of data, {weakening:?}"), EndOfData { weakening, ..TWO_SOURCES });
    }
}

#[test]
fn without_barriers_behind_the_end_the_last_transaction_never_commits() {
    let model = EndOfData { crashes: 0, weakening: Weakening::NothingFollowsTheEnd, ..TWO_SOURCES };
    match always_possible(&model, |world| world.is_finished) {
        Reachability::Always(states) => panic!("no schedule gets stuck ({states} states)"),
        Reachability::Stuck { states, stuck, told } => {
            println!(
                "end of data, NothingFollowsTheEnd: stuck, as it must be, in {stuck} of {states} states\n{told}"
            );
        }
    }
}
