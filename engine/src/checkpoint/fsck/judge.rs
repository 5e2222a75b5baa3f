//! A folder's files compared with its log, and what of them may be deleted.
//!
//! **Deletions.** Never a log entry; never what any entry names; nothing at all of an attempt while an entry cannot be read or
//! is missing, since that one may name it; nothing of an attempt that may still be alive. An attempt below the newest claim can complete no checkpoint
//! any more; the newest one is over when the log says `finished`, or when the caller knows that no job runs on the folder.
//!
//! Owns: both decisions. Does not own: reading files. Runs on: pure.

use std::collections::BTreeSet;

use super::finding::Finding;
use super::folder::CheckpointFolder;
use crate::checkpoint::cleaner::{attempt_in, is_of_preflight};
use crate::checkpoint::commit_log::{EnvelopeError, IDENTITY_PATH, Listing, RestorePoint};
use crate::ids::{AttemptId, EntryNumber};

/// What is wrong, but for the content of files. `alive`: what the newest attempt has under way is passed over.
pub(super) fn findings(folder: &CheckpointFolder, alive: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, why) in &folder.unreadable {
        let (path, text) = (path.clone(), why.to_string());
        findings.push(match why {
            _ if path == IDENTITY_PATH => Finding::DamagedLogId { why: text },
            EnvelopeError::Empty => Finding::EmptyEntry { path },
            EnvelopeError::Torn { .. } => Finding::TornEntry { path, why: text },
            _ => Finding::DamagedEntry { path, why: text },
        });
    }
    if folder.owner.is_none() && !folder.unreadable.iter().any(|(path, _)| path == IDENTITY_PATH) {
        findings.push(Finding::NoLogId);
    }
    findings.extend(missing_entries(folder));
    left_files(folder, alive, &mut findings);
    findings
}

/// What must stand in the log and does not: what the newest checkpoint retains, what a restore would begin from, what nobody can have
/// cleaned, and claims.
pub(super) fn missing_entries(folder: &CheckpointFolder) -> Vec<Finding> {
    let (listing, unreadable) = (&folder.listing, folder.unreadable_entries());
    let mut findings: Vec<_> = folder.gaps().iter().map(Finding::of_gap).collect();
    if let RestorePoint::Missing { claim, base } = listing.restore_point(listing.highest())
        && !unreadable.contains(&base)
    {
        let why = format!("entry {base} is missing, and the claim at entry {claim} goes back to it");
        findings.push(Finding::MissingEntry { entry: base, named_by: claim, why });
    }
    findings
}

fn left_files(folder: &CheckpointFolder, alive: bool, findings: &mut Vec<Finding>) {
    let named = named_files(&folder.listing);
    let newest = newest_claim(&folder.listing);
    let under_way =
        |attempt: Option<AttemptId>| alive && attempt.is_none_or(|attempt| Some(attempt) >= newest);
    for file in &folder.files {
        let (path, size_bytes, attempt) = (file.path.clone(), file.size_bytes, attempt_in(&file.path));
        let found = match attempt {
            _ if is_half_written(&path) => Finding::HalfWritten { path, size_bytes, attempt },
            None if is_of_preflight(&path) => Finding::PreflightLeft { path },
            Some(attempt) if !named.contains(path.as_str()) => Finding::Orphan { path, size_bytes, attempt },
            _ => continue,
        };
        if !under_way(attempt) {
            findings.push(found);
        }
    }
}

/// What may be deleted of a folder.
#[derive(Clone, Debug)]
pub struct Deletable {
    named: BTreeSet<String>,
    newest: Option<AttemptId>,
    newest_is_over: bool,
    log_is_whole: bool,
    alone: bool,
}

impl Deletable {
    /// For this folder. `alone`: no job runs on it and none starts.
    pub fn of(folder: &CheckpointFolder, alone: bool) -> Self {
        let listing = &folder.listing;
        let finished = matches!(listing.restore_point(listing.highest()), RestorePoint::Finished(_));
        Self {
            named: named_files(listing).into_iter().map(str::to_owned).collect(),
            newest: newest_claim(listing),
            newest_is_over: alone || finished,
            log_is_whole: folder.unreadable.is_empty()
                && folder.owner.is_some()
                && missing_entries(folder).is_empty(),
            alone,
        }
    }

    /// Whether what a finding is about may go.
    pub fn allows(&self, finding: &Finding) -> bool {
        match finding {
            Finding::Orphan { path, attempt, .. } => {
                self.log_is_whole && !self.named.contains(path) && self.is_over(*attempt)
            }
            Finding::HalfWritten { attempt: Some(attempt), .. } => self.alone || self.is_over(*attempt),
            Finding::HalfWritten { attempt: None, .. } | Finding::PreflightLeft { .. } => self.alone,
            _ => false,
        }
    }

    /// Whether an attempt can complete no checkpoint any more. One above the newest claim is not known at all.
    fn is_over(&self, attempt: AttemptId) -> bool {
        self.newest.is_some_and(|newest| attempt < newest || (attempt == newest && self.newest_is_over))
    }
}

/// Whether a path has the form `<id>-<attempt>/…`.
pub(super) fn is_of_an_attempt(path: &str) -> bool {
    attempt_in(path).is_some()
}

/// On local disk a put writes `name#1`, or another number, and links it to its name when it is whole.
fn is_half_written(path: &str) -> bool {
    path.rsplit_once('#')
        .is_some_and(|(_, number)| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn named_files(listing: &Listing) -> BTreeSet<&str> {
    listing.iter().filter_map(|(_, entry)| entry.manifest()).flat_map(|m| m.files()).collect()
}

fn newest_claim(listing: &Listing) -> Option<AttemptId> {
    listing.iter().rev().find(|(_, entry)| entry.is_claim()).map(|(EntryNumber(number), _)| AttemptId(number))
}

impl CheckpointFolder {
    /// Files that are none of the log, of a checkpoint or of a put: somebody else's, and left alone.
    pub fn foreign(&self) -> Vec<&str> {
        let ours = |path: &str| {
            path == IDENTITY_PATH
                || crate::checkpoint::commit_log::number_in(path).is_some()
                || is_of_an_attempt(path)
                || is_of_preflight(path)
                || is_half_written(path)
        };
        self.files.iter().map(|file| file.path.as_str()).filter(|path| !ours(path)).collect()
    }
}
