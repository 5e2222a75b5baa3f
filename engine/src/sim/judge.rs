//! Judges a run that has come to its end.
//!
//! Output counts as far as the line of the log reaches: what lies under a start without restore, or was passed over by a rewind, is
//! expected to be there twice, so it is left out (law 4 names exactly that).
//!
//! Owns: which output counts, which files and transactions may be left. Does not own: the oracle (see [`super::oracle`]).
//! Runs on: the simulation's thread, over a world in which nothing moves.

use std::collections::BTreeSet;

use super::database::CommittedRows;
use super::floating::FloatingStore;
use crate::checkpoint::commit_log::{ClaimBase, EntryBody, Listing, entry_in};
use crate::ids::{AttemptId, CheckpointId, EntryNumber};

/// Output of attempts below `below` counts only up to checkpoint `up_to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// The attempt that restored explicitly.
    pub below: AttemptId,
    /// What it restored; 0: nothing.
    pub up_to: CheckpointId,
}

/// Every entry that ever stood in the log.
pub fn history(store: &FloatingStore) -> Listing {
    store.log_history().iter().filter_map(|(path, bytes)| entry_in(path, bytes)).collect()
}

/// What explicit restores have cut off.
pub fn cuts(history: &Listing) -> Vec<Cut> {
    let of = |(number, base): (EntryNumber, ClaimBase)| {
        let up_to = match base {
            ClaimBase::Latest => return None,
            ClaimBase::None => CheckpointId(0),
            ClaimBase::Entry(entry) => history.checkpoint(entry)?.id(),
        };
        (!history.is_void(number)).then_some(Cut { below: AttemptId(number.0), up_to })
    };
    let claims = history.iter().filter_map(|(number, entry)| match entry.body {
        EntryBody::Claim { base, .. } => Some((number, base)),
        _ => None,
    });
    claims.filter_map(of).collect()
}

/// The output that counts.
pub fn on_the_line<R>(committed: Vec<CommittedRows<R>>, cuts: &[Cut]) -> Vec<CommittedRows<R>> {
    let is_cut =
        |c: &CommittedRows<R>| cuts.iter().any(|cut| c.name.attempt < cut.below && c.closed_by > cut.up_to);
    committed.into_iter().filter(|c| !is_cut(c)).collect()
}

/// Files that no entry of the log names, but for those of `excused` attempts and those that were put late.
pub fn orphans(store: &FloatingStore, excused: &BTreeSet<AttemptId>) -> Vec<String> {
    let standing = store.paths();
    let log = store.log_history();
    let entries = standing.iter().filter_map(|path| entry_in(path, log.get(path)?));
    let listing: Listing = entries.collect();
    let named: BTreeSet<String> = listing
        .checkpoints()
        .flat_map(|c| c.manifest.files().map(str::to_owned).collect::<Vec<_>>())
        .collect();
    let is_excused = |path: &str| {
        let attempt = path.split_once('/').and_then(|(folder, _)| folder.split_once('-')?.1.parse().ok());
        attempt.is_some_and(|attempt| excused.contains(&AttemptId(attempt)))
    };
    let outside = |path: &str| path.starts_with("log/") || path.starts_with("preflight/");
    let is_orphan = |path: &String| {
        !outside(path) && !named.contains(path) && !store.was_applied_late(path) && !is_excused(path)
    };
    standing.into_iter().filter(is_orphan).collect()
}

/// Who wrote `finished`.
pub fn finisher(history: &Listing) -> Option<AttemptId> {
    history.iter().find(|(_, e)| matches!(e.body, EntryBody::Finished)).map(|(_, e)| e.attempt)
}
