//! What the model must show.

use super::super::check::{breaks, holds};
use super::{Recovery, Weakening};

const DOWN_AND_UP: Recovery = Recovery { parallelism: [3, 2, 3], weakening: Weakening::None };

#[test]
fn from_three_to_two_to_three() {
    holds("recovery, parallelism 3, 2, 3", DOWN_AND_UP);
}

#[test]
fn at_other_parallelisms() {
    for parallelism in [[2, 3, 1], [1, 3, 2], [3, 3, 3]] {
        let [first, second, third] = parallelism;
        let title = format!("recovery, parallelism {first}, {second}, {third}");
        holds(&title, Recovery { parallelism, ..DOWN_AND_UP });
    }
}

#[test]
fn every_weaker_form_breaks() {
    use Weakening::*;
    for weakening in
        [SplitListState, SweepWithoutBound, StableIds, StableIdsChecked, AcknowledgesBeforeRecovered]
    {
        breaks(&format!("recovery, {weakening:?}"), Recovery { weakening, ..DOWN_AND_UP });
    }
}
