//! What must stand in a log and does not.
//!
//! Every number up to the highest was an entry once (a claim goes above an entry that it has listed, every other one above the last of
//! its own attempt), and only a cleaner deletes: checkpoint entries alone, and only after a checkpoint entry stands above that does
//! not retain them. So what is missing without such an entry was deleted by somebody else, or what stood above it was: a start from
//! the rest would go back without a word, and put out again what is out already.
//!
//! A listing that was read beside a living cleaner may show the same for a moment: only what two listings show, one after the other,
//! is proven.
//!
//! Owns: the proof. Does not own: what follows from it (see [`super::claim`] and [`crate::checkpoint::fsck`]). Runs on: pure.

use std::collections::BTreeSet;
use std::fmt;

use super::entry::{ClaimBase, EntryBody};
use super::listing::Listing;
use crate::checkpoint::cleaner::attempt_in;
use crate::ids::EntryNumber;

/// An entry that must stand and does not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The newest checkpoint retains it. A cleaner deletes it only after a newer checkpoint stands.
    Retained {
        /// The entry.
        entry: EntryNumber,
        /// The newest checkpoint.
        named_by: EntryNumber,
    },
    /// No checkpoint stands above it for which it could have been cleaned.
    Uncleaned {
        /// The entry.
        entry: EntryNumber,
        /// The lowest one that stands above it.
        below: EntryNumber,
    },
    /// A claim, which nobody ever deletes.
    Claim {
        /// The entry.
        entry: EntryNumber,
        /// What its attempt has written, or began: an entry, or a file.
        witness: Witness,
    },
}

/// What proves that a claim stood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Witness {
    /// An entry of its attempt, or of its lineage.
    Entry(EntryNumber),
    /// A file of its attempt.
    File(String),
}

impl Gap {
    /// The entry that is missing.
    pub fn entry(&self) -> EntryNumber {
        match self {
            Self::Retained { entry, .. } | Self::Uncleaned { entry, .. } | Self::Claim { entry, .. } => {
                *entry
            }
        }
    }
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Retained { entry, named_by } => write!(
                f,
                "entry {entry} is missing, and entry {named_by}, the newest checkpoint, keeps it: it was deleted by hand, or a newer \
                 checkpoint above entry {named_by} was"
            ),
            Self::Uncleaned { entry, below } => write!(
                f,
                "entry {entry} is missing below entry {below}, and no newer checkpoint stands for which it could have been cleaned: \
                 it was deleted by hand, or a newer checkpoint was"
            ),
            Self::Claim { entry, witness } => {
                write!(
                    f,
                    "entry {entry} is missing: it is the claim of attempt {entry}, which wrote {witness}; claims are never deleted"
                )
            }
        }
    }
}

impl fmt::Display for Witness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(number) => write!(f, "entry {number} or what it goes back to"),
            Self::File(path) => f.write_str(path),
        }
    }
}

impl Listing {
    /// What is missing so that a start without a word about it would not know where to go on. What lies below a claim with an
    /// explicit base is passed over: a person has decided. `unreadable` entries stand, and may be anything.
    pub fn gaps(&self, unreadable: &BTreeSet<EntryNumber>) -> Vec<Gap> {
        let newest = self.checkpoints().last().map_or(EntryNumber(0), |c| c.number);
        let decided = self.iter().rev().find(|(number, entry)| match entry.body {
            EntryBody::Claim { base, .. } => base != ClaimBase::Latest && !self.is_void(*number),
            _ => false,
        });
        let decided = decided.map_or(EntryNumber(0), |(number, _)| number);
        let mut gaps = Vec::new();
        let may_be_newer = unreadable.last().is_some_and(|number| *number > newest);
        if newest > decided && !may_be_newer {
            let missing = |number: &EntryNumber| self.get(*number).is_none() && !unreadable.contains(number);
            let gone = self.retained_names(newest).iter().copied().filter(|number| missing(number));
            gaps.extend(gone.map(|entry| Gap::Retained { entry, named_by: newest }));
        }
        let above = unreadable.last().copied().unwrap_or_default().max(newest).max(decided);
        gaps.extend(self.holes_above(above));
        gaps
    }

    /// Above the newest checkpoint there is nothing that a cleaner deletes.
    fn holes_above(&self, from: EntryNumber) -> Vec<Gap> {
        let mut holes = Vec::new();
        let mut last = from;
        for (below, _) in self.above(from) {
            // One of a hole says as much as all of them: a damaged number must not make a list without end.
            if below != last.next() {
                holes.push(Gap::Uncleaned { entry: last.next(), below });
            }
            last = below;
        }
        holes
    }

    /// Claims that are missing although an entry of their attempt stands, or one of the lineage that they began. Each once.
    pub fn claims_gone(&self, unreadable: &BTreeSet<EntryNumber>) -> Vec<Gap> {
        let mut gone = Vec::new();
        let mut seen = BTreeSet::from([EntryNumber(0)]);
        for (number, entry) in self.iter() {
            let lineage = entry.manifest().map_or(0, |manifest| manifest.lineage.0);
            for claim in [entry.attempt.0, lineage].map(EntryNumber) {
                if seen.insert(claim) && self.get(claim).is_none() && !unreadable.contains(&claim) {
                    gone.push(Gap::Claim { entry: claim, witness: Witness::Entry(number) });
                }
            }
        }
        gone
    }

    /// The same for the files of attempts: no attempt writes one before its claim stands. The files must have been listed before
    /// the log was.
    pub fn claims_gone_by_files<'a>(
        &self,
        unreadable: &BTreeSet<EntryNumber>,
        paths: impl IntoIterator<Item = &'a str>,
    ) -> Vec<Gap> {
        let mut gone = Vec::new();
        let mut seen = BTreeSet::from([EntryNumber(0)]);
        for path in paths {
            let Some(claim) = attempt_in(path).map(|attempt| EntryNumber(attempt.0)) else { continue };
            if seen.insert(claim) && self.get(claim).is_none() && !unreadable.contains(&claim) {
                gone.push(Gap::Claim { entry: claim, witness: Witness::File(path.to_owned()) });
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::super::ClaimBase::{Entry, Latest, None as Anew};
    use super::super::listing::tests::{checkpoint, claim, finished, log};
    use super::*;

    const WHOLE: BTreeSet<EntryNumber> = BTreeSet::new();

    fn number(number: u64) -> EntryNumber {
        EntryNumber(number)
    }

    /// Two are kept with the newest one; 2 and 3 are cleaned.
    fn cleaned() -> [(EntryNumber, std::sync::Arc<super::super::LogEntry>); 4] {
        [
            claim(1, Latest),
            checkpoint(4, 1, 3, &[2, 3]),
            checkpoint(5, 1, 4, &[3, 4]),
            checkpoint(6, 1, 5, &[4, 5]),
        ]
    }

    #[test]
    fn what_a_cleaner_has_deleted_is_no_gap() {
        assert_eq!(log(cleaned()).gaps(&WHOLE), []);
        let void = log(cleaned().into_iter().chain([claim(2, Anew), claim(7, Latest), finished(8, 7)]));
        assert_eq!(void.gaps(&WHOLE), []);
        assert_eq!(void.claims_gone(&WHOLE), []);
    }

    #[test]
    fn the_newest_entry_is_missed_by_what_was_cleaned_for_it() {
        let gone = log(cleaned().into_iter().take(3));
        assert_eq!(gone.gaps(&WHOLE), [Gap::Retained { entry: number(3), named_by: number(5) }]);
        assert_eq!(gone.gaps(&[number(6)].into()), [], "it stands, and cannot be read: that is told instead");
    }

    #[test]
    fn a_hole_below_a_claim_is_missed() {
        let gone = log([claim(1, Latest), claim(4, Latest), claim(6, Latest)]);
        let holes = [(2, 4), (5, 6)]
            .map(|(entry, below)| Gap::Uncleaned { entry: number(entry), below: number(below) });
        assert_eq!(gone.gaps(&WHOLE), holes);
    }

    #[test]
    fn what_a_person_has_decided_is_not_asked_again() {
        for base in [Entry(number(5)), Anew] {
            let decided = cleaned().into_iter().take(3).chain([claim(6, base), claim(7, Latest)]);
            assert_eq!(log(decided.clone()).gaps(&WHOLE), []);
            let again = log(decided.chain([checkpoint(8, 7, 5, &[]), checkpoint(9, 7, 6, &[8])]));
            assert_eq!(again.gaps(&WHOLE), []);
            let gone = log([claim(1, Latest), claim(6, base), claim(8, Latest)]);
            assert_eq!(gone.gaps(&WHOLE), [Gap::Uncleaned { entry: number(7), below: number(8) }]);
        }
    }

    #[test]
    fn a_claim_is_missed_by_its_entries_and_its_files() {
        let gone = log(cleaned().into_iter().skip(1));
        assert_eq!(
            gone.claims_gone(&WHOLE),
            [Gap::Claim { entry: number(1), witness: Witness::Entry(number(4)) }]
        );
        let paths = ["7-1/a", "8-9/a", "8-9/b", "log/id", "preflight/0"];
        let by_file = Gap::Claim { entry: number(9), witness: Witness::File("8-9/a".to_owned()) };
        assert_eq!(log(cleaned()).claims_gone_by_files(&WHOLE, paths), [by_file]);
    }
}
