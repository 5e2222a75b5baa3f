//! What can be wrong in a checkpoint folder.
//!
//! Owns: the closed list, in words and as JSON. Does not own: how it is found. Runs on: plain data.

use std::fmt;

use serde::Serialize;

use crate::checkpoint::commit_log::Gap;
use crate::ids::{AttemptId, CheckpointId, EntryNumber};

/// Something that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "finding", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Finding {
    /// There are entries or files of checkpoints and nothing that says whose.
    NoLogId,
    /// `log/id` cannot be read.
    DamagedLogId {
        /// What is wrong with it.
        why: String,
    },
    /// A log entry without content: how a file looks after a power loss.
    EmptyEntry {
        /// Its path.
        path: String,
    },
    /// A log entry whose end is missing.
    TornEntry {
        /// Its path.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// A log entry that cannot be read for another reason.
    DamagedEntry {
        /// Its path.
        path: String,
        /// What is wrong with it.
        why: String,
    },
    /// An entry that another one names is not there: the newest checkpoint retains it, or a start began from it.
    MissingEntry {
        /// The entry.
        entry: EntryNumber,
        /// Who names it.
        named_by: EntryNumber,
        /// What that means.
        why: String,
    },
    /// An entry is not there, and no newer checkpoint stands for which it could have been cleaned.
    UncleanedEntry {
        /// The entry.
        entry: EntryNumber,
        /// The lowest one above it.
        below: EntryNumber,
        /// What that means.
        why: String,
    },
    /// A claim is not there: nobody ever deletes one.
    MissingClaim {
        /// The entry, and so the attempt.
        entry: EntryNumber,
        /// What that means.
        why: String,
    },
    /// A file that a checkpoint names is not there.
    MissingFile {
        /// Its path.
        path: String,
        /// The checkpoints that name it.
        checkpoints: Vec<CheckpointId>,
    },
    /// A file of another length than its checkpoint says.
    TornFile {
        /// Its path.
        path: String,
        /// Bytes there.
        is_bytes: u64,
        /// Bytes that its checkpoint names.
        should_bytes: u64,
        /// The checkpoints that name it.
        checkpoints: Vec<CheckpointId>,
    },
    /// A file, or state inside a manifest, whose content is not what was written.
    DamagedState {
        /// Its path, or the operator whose state it is.
        path: String,
        /// What is wrong with it.
        why: String,
        /// The checkpoints that name it.
        checkpoints: Vec<CheckpointId>,
    },
    /// A file of an attempt that no entry names.
    Orphan {
        /// Its path.
        path: String,
        /// Its size.
        size_bytes: u64,
        /// The attempt that wrote it.
        attempt: AttemptId,
    },
    /// What a put leaves that is cut short on local disk.
    HalfWritten {
        /// Its path.
        path: String,
        /// Its size.
        size_bytes: u64,
        /// The attempt that wrote it, if its path says so.
        attempt: Option<AttemptId>,
    },
    /// What a start leaves that dies while it tries out the store.
    PreflightLeft {
        /// Its path.
        path: String,
    },
}

impl Finding {
    /// From a gap in the log.
    pub(super) fn of_gap(gap: &Gap) -> Self {
        let why = gap.to_string();
        match gap {
            Gap::Retained { entry, named_by } => {
                Self::MissingEntry { entry: *entry, named_by: *named_by, why }
            }
            Gap::Uncleaned { entry, below } => Self::UncleanedEntry { entry: *entry, below: *below, why },
            Gap::Claim { entry, .. } => Self::MissingClaim { entry: *entry, why },
        }
    }

    /// Whether something of the log is not there: what is left in the folder may belong to it.
    pub fn is_of_a_gap(&self) -> bool {
        matches!(self, Self::MissingEntry { .. } | Self::UncleanedEntry { .. } | Self::MissingClaim { .. })
    }

    /// The path it is about, if it is about one object.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::NoLogId
            | Self::DamagedLogId { .. }
            | Self::MissingEntry { .. }
            | Self::UncleanedEntry { .. }
            | Self::MissingClaim { .. } => None,
            Self::EmptyEntry { path }
            | Self::TornEntry { path, .. }
            | Self::DamagedEntry { path, .. }
            | Self::MissingFile { path, .. }
            | Self::TornFile { path, .. }
            | Self::DamagedState { path, .. }
            | Self::Orphan { path, .. }
            | Self::HalfWritten { path, .. }
            | Self::PreflightLeft { path } => Some(path),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoLogId => write!(f, "log/id is missing: nothing says whose folder this is"),
            Self::DamagedLogId { why } => write!(f, "log/id: {why}"),
            Self::EmptyEntry { path } => write!(f, "{path}: the entry is empty"),
            Self::TornEntry { path, why } | Self::DamagedEntry { path, why } => write!(f, "{path}: {why}"),
            Self::MissingEntry { why, .. } | Self::UncleanedEntry { why, .. } => {
                write!(
                    f,
                    "{why}\n    help: a start refuses to go on from what is left; bring the entries back from a copy, or say with \
                     --restore what to go on from"
                )
            }
            Self::MissingClaim { why, .. } => {
                write!(f, "{why}\n    help: bring it back from a copy; or start in another checkpoint folder")
            }
            Self::MissingFile { path, checkpoints } => {
                write!(f, "{path}: missing, and {} it", named(checkpoints))
            }
            Self::TornFile { path, is_bytes, should_bytes, checkpoints } => {
                let named = named(checkpoints);
                write!(f, "{path}: torn: {is_bytes} bytes where {should_bytes} belong; {named} it")
            }
            Self::DamagedState { path, why, checkpoints } => {
                write!(f, "{path}: {why}; {} it", named(checkpoints))
            }
            Self::Orphan { path, size_bytes, attempt } => {
                write!(f, "{path}: {size_bytes} bytes of attempt {attempt} that no entry names")
            }
            Self::HalfWritten { path, size_bytes, .. } => {
                write!(f, "{path}: {size_bytes} bytes left by a put that was cut short")
            }
            Self::PreflightLeft { path } => {
                write!(f, "{path}: left by a start that died while it tried out the store")
            }
        }
    }
}

fn named(checkpoints: &[CheckpointId]) -> String {
    let ids: Vec<_> = checkpoints.iter().map(ToString::to_string).collect();
    match ids.len() {
        1 => format!("checkpoint {} names", ids[0]),
        _ => format!("checkpoints {} name", ids.join(", ")),
    }
}
