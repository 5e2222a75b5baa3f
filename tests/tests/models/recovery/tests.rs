//! What the model must show.

use super::super::check::{breaks, holds};
use super::{Recovery, Weakening};

const DOWN_AND_UP: Recovery = Recovery { parallelism: [3, 2, 3], weakening: Weakening::None };

#[test]
fn from_three_to_two_to_three() {
    holds("recovery, parallelism 3, 2, 3", DOWN_AND_UP);
}

#[test]
fn from_two_to_three_to_one() {
    holds("recovery, parallelism 2, 3, 1", Recovery { parallelism: [2, 3, 1], ..DOWN_AND_UP });
}

#[test]
fn every_weaker_form_breaks() {
    use Weakening::*;
    for weakening in [SplitListState, SweepWithoutBound, StableIds, StableIdsChecked, AcknowledgesBeforeRecovered] {
        breaks(&format!("recovery, {weakening:?}"), Recovery { weakening, ..DOWN_AND_UP });
    }
}
