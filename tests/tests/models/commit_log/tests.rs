//! What the model must show.

use super::super::check::{breaks, holds};
use super::{CommitLog, Weakening};

/// Two starts, one record, nothing special.
const SMALL: CommitLog = CommitLog {
    starts: 2,
    records: 1,
    checkpoints: 2,
    rewinds: false,
    anew: false,
    late_puts: false,
    cleaning: false,
    older: 1,
    weakening: Weakening::None,
};

const THREE: CommitLog = CommitLog { starts: 3, ..SMALL };
const CLEANING: CommitLog = CommitLog { cleaning: true, checkpoints: 3, ..SMALL };
/// Whether files are there when they are needed: for that no record has to flow.
const FILES: CommitLog = CommitLog {
    starts: 3,
    records: 0,
    rewinds: true,
    anew: true,
    cleaning: true,
    older: 2,
    checkpoints: 5,
    ..SMALL
};

#[test]
fn two_starts_with_everything() {
    let all = CommitLog { records: 2, rewinds: true, anew: true, late_puts: true, ..CLEANING };
    holds("commit log, 2 starts, everything", all);
}

#[test]
fn three_starts_with_rewind_and_none() {
    holds(
        "commit log, 3 starts, rewind and none",
        CommitLog { rewinds: true, anew: true, checkpoints: 3, ..THREE },
    );
}

#[test]
fn three_starts_with_late_puts() {
    holds("commit log, 3 starts, late puts", CommitLog { late_puts: true, ..THREE });
}

#[test]
fn three_starts_with_cleaning() {
    holds("commit log, 3 starts, cleaning", CommitLog { starts: 3, ..CLEANING });
}

#[test]
fn three_starts_with_cleaning_and_rewinds_of_empty_checkpoints() {
    holds("commit log, 3 starts, cleaning and rewind, no records", FILES);
}

#[test]
#[ignore = "ten seconds of one core"]
fn three_starts_with_late_puts_rewind_and_none() {
    let all = CommitLog { rewinds: true, anew: true, late_puts: true, ..THREE };
    holds("commit log, 3 starts, late puts, rewind and none", all);
}

#[test]
#[ignore = "twelve seconds of one core"]
fn three_starts_with_cleaning_rewind_and_none() {
    let all = CommitLog { starts: 3, rewinds: true, anew: true, ..CLEANING };
    holds("commit log, 3 starts, cleaning, rewind and none", all);
}

#[test]
#[ignore = "two minutes of one core, more than five million states"]
fn two_starts_with_everything_and_more_of_it() {
    let all =
        CommitLog { records: 2, checkpoints: 4, rewinds: true, anew: true, late_puts: true, ..CLEANING };
    holds("commit log, 2 starts, everything, 4 checkpoints", all);
}

fn broken(weakening: Weakening, model: CommitLog) {
    breaks(&format!("commit log, {weakening:?}"), CommitLog { weakening, ..model });
}

#[test]
fn every_weaker_form_breaks() {
    use Weakening::*;
    let two_records = CommitLog { records: 2, ..SMALL };
    broken(NoLog, two_records);
    broken(CleanerDeletesClaims, CommitLog { late_puts: true, ..CLEANING });
    broken(BaseNotInLog, CommitLog { anew: true, ..two_records });
    broken(NoSecondListing, CLEANING);
    broken(CleanerKeepsHighestEntry, CLEANING);
    broken(CleanerDecidesByListing, CommitLog { rewinds: true, ..CLEANING });
    broken(RewindToWhatTheLineRetains, CommitLog { starts: 3, rewinds: true, ..CLEANING });
    broken(RetainsWhatTheRestoredRetains, CommitLog { anew: false, ..FILES });
    broken(NumbersFromListing, two_records);
    broken(ErrorMeansFailure, SMALL);
    broken(RenameReplaces, SMALL);
    broken(SweepWithoutBound, two_records);
    broken(AttemptsCountWithinLineage, CommitLog { anew: true, ..THREE });
    broken(FilesWithoutAttempt, two_records);
}
