//! Reads the state that checkpoints refer to, and compares it with what was written.
//!
//! Owns: the checks of one file, and that a file named by several checkpoints is read once. Does not own: the formats (see
//! [`tidegate_state`]). Runs on: the I/O side.

use std::collections::BTreeMap;

use tidegate_state::{CheckpointStorage, StateFileReader, check_list};

use super::{Finding, FsckError};
use crate::checkpoint::completed::CompletedCheckpoint;
use crate::checkpoint::manifest::{KeyedStateHandle, OperatorSubtaskState, StateBlob};
use crate::error::chain_text;
use crate::ids::{CheckpointId, OperatorUid};

/// What was read, and what was wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Checkpoints whose files were read.
    pub checkpoints: Vec<CheckpointId>,
    /// How many files were read.
    pub files: u64,
    /// How many bytes were read from them.
    pub bytes: u64,
}

/// A file as a manifest names it.
struct Named<'a> {
    size_bytes: u64,
    /// Key groups and operator, for a file of keyed state.
    keyed: Option<(&'a KeyedStateHandle, &'a OperatorUid)>,
    checkpoints: Vec<CheckpointId>,
}

/// Reads every file of these checkpoints.
pub(super) async fn check(
    storage: &CheckpointStorage,
    checkpoints: &[CompletedCheckpoint],
) -> Result<Checked, FsckError> {
    let mut checked = Checked {
        checkpoints: checkpoints.iter().map(CompletedCheckpoint::id).collect(),
        ..Checked::default()
    };
    let mut files: BTreeMap<&str, Named<'_>> = BTreeMap::new();
    for checkpoint in checkpoints {
        for state in checkpoint.manifest.operators.iter().flat_map(|o| &o.subtasks) {
            name_files(state, checkpoint.id(), &mut files);
            check_inline(state, checkpoint.id(), &mut checked.findings);
        }
    }
    for (path, named) in files {
        let Some(bytes) = storage.get(path).await? else {
            let checkpoints = named.checkpoints;
            checked.findings.push(Finding::MissingFile { path: path.to_owned(), checkpoints });
            continue;
        };
        checked.files += 1;
        checked.bytes += bytes.len() as u64;
        checked.findings.extend(check_file(path, &bytes, named));
    }
    Ok(checked)
}

fn name_files<'a>(
    state: &'a OperatorSubtaskState,
    checkpoint: CheckpointId,
    files: &mut BTreeMap<&'a str, Named<'a>>,
) {
    let mut name = |path: &'a str, size_bytes, keyed| {
        let named = files.entry(path).or_insert_with(|| Named { size_bytes, keyed, checkpoints: Vec::new() });
        named.checkpoints.push(checkpoint);
    };
    if let Some(keyed) = &state.keyed {
        name(&keyed.path, keyed.size_bytes, Some((keyed, &state.uid)));
    }
    for list in &state.lists {
        if let StateBlob::File(path, size_bytes) = &list.blob {
            name(path, *size_bytes, None);
        }
    }
}

fn check_inline(state: &OperatorSubtaskState, checkpoint: CheckpointId, findings: &mut Vec<Finding>) {
    for list in &state.lists {
        let StateBlob::Inline(bytes) = &list.blob else { continue };
        let path = format!("list state \"{}\" of \"{}\"", list.name, state.uid);
        if let Err(error) = check_list(&path, bytes) {
            findings.push(Finding::DamagedState {
                why: chain_text(&error),
                path,
                checkpoints: vec![checkpoint],
            });
        }
    }
}

fn check_file(path: &str, bytes: &[u8], named: Named<'_>) -> Option<Finding> {
    let (is_bytes, should_bytes) = (bytes.len() as u64, named.size_bytes);
    let (path, checkpoints) = (path.to_owned(), named.checkpoints);
    if is_bytes != should_bytes {
        return Some(Finding::TornFile { path, is_bytes, should_bytes, checkpoints });
    }
    let damaged = |path, why| Some(Finding::DamagedState { path, why, checkpoints });
    let Some((keyed, uid)) = named.keyed else {
        return match check_list(&path, bytes) {
            Ok(()) => None,
            Err(error) => damaged(path, chain_text(&error)),
        };
    };
    let read = StateFileReader::open_named(&path, bytes).and_then(|reader| {
        reader.verify()?;
        Ok((reader.operator_uid().to_owned(), reader.range()))
    });
    match read {
        Err(error) => damaged(path, chain_text(&error)),
        Ok((operator, range)) if operator != uid.as_str() || range != keyed.range => {
            let why = format!(
                "it is of operator \"{operator}\", key groups {} to {}, and the manifest says \"{uid}\", {} to {}",
                range.start, range.end, keyed.range.start, keyed.range.end
            );
            damaged(path, why)
        }
        Ok(_) => None,
    }
}
