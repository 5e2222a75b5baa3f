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

#[test]
fn three_starts_with_rewind_and_none() {
    holds("commit log, 3 starts, rewind and none", CommitLog { starts: 3, rewinds: true, anew: true, ..SMALL });
}

#[test]
fn three_starts_with_late_puts() {
    holds("commit log, 3 starts, late puts", CommitLog { starts: 3, late_puts: true, ..SMALL });
}

#[test]
fn three_starts_with_cleaning() {
    holds("commit log, 3 starts, cleaning", CommitLog { starts: 3, cleaning: true, checkpoints: 3, ..SMALL });
}

#[test]
fn two_starts_with_everything() {
    let all = CommitLog { rewinds: true, anew: true, late_puts: true, cleaning: true, checkpoints: 3, ..SMALL };
    holds("commit log, 2 starts, everything", all);
}

#[test]
#[ignore = "1r"]
fn large_no_records() {
    let all = CommitLog { starts: 3, records: 0, rewinds: true, anew: true, cleaning: true, older: 2, checkpoints: 5, ..SMALL };
    holds("commit log, 3 starts, no records, 2 older retained, 5 checkpoints", all);
}

#[test]
#[ignore = "1r"]
fn large_late_puts() {
    let all = CommitLog { starts: 3, rewinds: true, anew: true, late_puts: true, ..SMALL };
    holds("commit log, 3 starts, late puts, rewind and none", all);
}

#[test]
#[ignore = "1m"]
fn large_three_checkpoints() {
    let all = CommitLog { starts: 3, rewinds: true, anew: true, checkpoints: 3, ..SMALL };
    holds("commit log, 3 starts, rewind and none, 3 checkpoints", all);
}

#[test]
#[ignore = "1s"]
fn large_cleaning() {
    let all = CommitLog { starts: 3, rewinds: true, anew: true, cleaning: true, checkpoints: 3, ..SMALL };
    holds("commit log, 3 starts, cleaning, rewind and none", all);
}

#[test]
#[ignore = "1o"]
fn large_two_starts() {
    let all = CommitLog { records: 2, rewinds: true, anew: true, late_puts: true, cleaning: true, checkpoints: 4, ..SMALL };
    holds("commit log, 2 starts, everything, 2 records, 4 checkpoints", all);
}

fn broken(weakening: Weakening, model: CommitLog) {
    breaks(&format!("commit log, {weakening:?}"), CommitLog { weakening, ..model });
}

#[test]
fn every_weaker_form_breaks() {
    use Weakening::*;
    let two_records = CommitLog { records: 2, ..SMALL };
    let cleaning = CommitLog { cleaning: true, checkpoints: 3, ..SMALL };
    broken(NoLog, two_records);
    broken(CleanerDeletesClaims, CommitLog { late_puts: true, ..cleaning });
    broken(BaseNotInLog, CommitLog { anew: true, ..two_records });
    broken(NoSecondListing, cleaning);
    broken(CleanerKeepsHighestEntry, cleaning);
    broken(CleanerDecidesByListing, CommitLog { rewinds: true, ..cleaning });
    broken(RewindToWhatTheLineRetains, CommitLog { starts: 3, rewinds: true, ..cleaning });
    let no_records = CommitLog { starts: 3, records: 0, rewinds: true, older: 2, checkpoints: 5, ..cleaning };
    broken(RetainsWhatTheRestoredRetains, no_records);
    broken(NumbersFromListing, two_records);
    broken(ErrorMeansFailure, SMALL);
    broken(RenameReplaces, SMALL);
    broken(SweepWithoutBound, two_records);
    broken(AttemptsCountWithinLineage, CommitLog { starts: 3, anew: true, ..SMALL });
    broken(FilesWithoutAttempt, two_records);
}
