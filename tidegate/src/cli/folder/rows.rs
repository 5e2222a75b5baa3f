//! The entries of a log, a row each.
//!
//! Owns: what is said of each kind. Does not own: the table. Runs on: the main thread. Pure.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::engine::checkpoint::commit_log::{ClaimBase, EntryBody, LogEntry};
use crate::engine::checkpoint::fsck::CheckpointFolder;
use crate::engine::ids::EntryNumber;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct EntryRow {
    pub(super) entry: u64,
    pub(super) kind: &'static str,
    pub(super) attempt: Option<u64>,
    pub(super) checkpoint: Option<u64>,
    /// Of a checkpoint: whether the newest entry names it, or it is the newest.
    pub(super) retained: Option<bool>,
    pub(super) files: Option<u64>,
    pub(super) size_bytes: Option<u64>,
    /// In milliseconds since 1970: when the checkpoint was completed, of other entries when the file was written.
    pub(super) written_ms: i64,
    pub(super) note: String,
}

/// Every entry, lowest first, damaged ones too.
pub(super) fn entry_rows(folder: &CheckpointFolder) -> Vec<EntryRow> {
    let (listing, kept) = (&folder.listing, folder.listing.kept());
    let written: BTreeMap<&str, i64> =
        folder.files.iter().map(|file| (file.path.as_str(), file.modified_ms)).collect();
    let written = |path: &str| written.get(path).copied().unwrap_or(0);
    let ids: BTreeMap<EntryNumber, u64> =
        listing.iter().filter_map(|(number, entry)| Some((number, entry.checkpoint_id()?.0))).collect();
    // People name checkpoints by their ids; an entry that is gone has none.
    let named = |number: &EntryNumber| match ids.get(number) {
        Some(id) => format!("checkpoint {id}"),
        None => format!("entry {number}"),
    };
    let whole = listing.iter().map(|(number, entry)| {
        let retained = entry.manifest().map(|_| kept.contains(&number));
        // Below a claim at 1 nothing has ever stood; of others cleaned checkpoints are not known any more.
        let note = note(listing.is_void(number) && entry.is_claim(), number == EntryNumber(1), entry, named);
        EntryRow {
            entry: number.0,
            kind: kind(entry),
            attempt: Some(entry.attempt.0),
            checkpoint: entry.checkpoint_id().map(|id| id.0),
            retained,
            files: entry.manifest().map(|manifest| manifest.files().count() as u64),
            size_bytes: entry.manifest().map(|manifest| manifest.size_bytes()),
            written_ms: entry.manifest().map_or_else(|| written(&path(number)), |m| m.completed_at_ms),
            note,
        }
    });
    let damaged = folder.unreadable.iter().filter_map(|(path, why)| {
        let entry = path.strip_prefix("log/")?.parse().ok()?;
        Some(EntryRow {
            entry,
            kind: "damaged",
            attempt: None,
            checkpoint: None,
            retained: None,
            files: None,
            size_bytes: None,
            written_ms: written(path),
            note: why.to_string(),
        })
    });
    let mut rows: Vec<_> = whole.chain(damaged).collect();
    rows.sort_by_key(|row| row.entry);
    rows
}

fn path(EntryNumber(number): EntryNumber) -> String {
    format!("log/{number:020}")
}

fn kind(entry: &LogEntry) -> &'static str {
    match &entry.body {
        EntryBody::Claim { .. } => "claim",
        EntryBody::Checkpoint { .. } => "checkpoint",
        EntryBody::Settled { .. } => "settled",
        EntryBody::Forgotten { .. } => "forgotten",
        EntryBody::Finished => "finished",
    }
}

/// `first`: the log begins with it.
fn note(void: bool, first: bool, entry: &LogEntry, named: impl Fn(&EntryNumber) -> String) -> String {
    match &entry.body {
        EntryBody::Claim { .. } if void => "void: an older attempt had written above it".to_owned(),
        EntryBody::Claim { base: ClaimBase::Latest, .. } if first => {
            "begins: there was no checkpoint".to_owned()
        }
        EntryBody::Claim { base: ClaimBase::Latest, .. } => "restores the newest checkpoint".to_owned(),
        EntryBody::Claim { base: ClaimBase::None, .. } => "begins anew".to_owned(),
        EntryBody::Claim { base: ClaimBase::Entry(number), .. } => format!("goes back to {}", named(number)),
        EntryBody::Checkpoint { retained, .. } if retained.is_empty() => String::new(),
        EntryBody::Checkpoint { retained, .. } => {
            let kept: Vec<_> = retained.iter().map(named).collect();
            format!("keeps {}", kept.join(", "))
        }
        EntryBody::Settled { .. } => "everything up to it is committed".to_owned(),
        EntryBody::Forgotten { transaction } => format!("goes on without {transaction}, if it is lost"),
        EntryBody::Finished => "everything is committed".to_owned(),
    }
}
