//! What may be deleted.
//!
//! **Cleaner law** (part of law 4): each checkpoint entry names the checkpoints retained with it; its cleaner deletes only what
//! its *own* newest entry does not name, entry first, then files; never a claim, never the newest checkpoint entry. A cleaner
//! that decided by a listing could delete what a later attempt has just rewound to: deletions cannot be fenced.
//!
//! Owns: the decisions. Does not own: deleting (see [`super::commit_log::LogClient::clean`]). Runs on: pure.

use std::collections::BTreeSet;

use tidegate_state::PREFLIGHT_FOLDER;

use super::commit_log::{Listing, number_in};
use super::completed::CompletedCheckpoint;
use crate::ids::{AttemptId, EntryNumber};

/// Deletions that an own newest entry allows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanPlan {
    /// What to delete, lowest first.
    pub delete: Vec<DeletedCheckpoint>,
    /// Files that a kept checkpoint names, wherever they lie.
    pub keep: BTreeSet<String>,
}

/// One checkpoint to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedCheckpoint {
    /// Its entry: deleted first.
    pub number: EntryNumber,
    /// The folder of its files: emptied next.
    pub folder: String,
}

/// Plans the cleaning after `newest`, an own entry that names `retained`, became complete. `candidates` are checkpoint entries
/// that this attempt knows of.
pub fn plan_cleaning(
    newest: &CompletedCheckpoint,
    retained: &[CompletedCheckpoint],
    candidates: &[CompletedCheckpoint],
) -> CleanPlan {
    let kept: Vec<_> = retained.iter().chain([newest]).collect();
    let named = |c: &CompletedCheckpoint| kept.iter().any(|k| k.number == c.number);
    let mut delete: Vec<_> = candidates
        .iter()
        .filter(|c| !named(c) && c.number < newest.number)
        .map(|c| DeletedCheckpoint { number: c.number, folder: c.folder() })
        .collect();
    delete.sort_by_key(|d| d.number);
    let keep = kept.iter().flat_map(|k| k.manifest.files()).map(str::to_owned).collect();
    CleanPlan { delete, keep }
}

/// Files of attempts below `own` that no entry of the log names, and what starts have left that died while they tried out the store. Only after the claim of `own`: from then on no lower attempt
/// can complete a checkpoint.
pub fn sweep_orphans(own: AttemptId, listing: &Listing, paths: &[String]) -> Vec<String> {
    let checkpoints: Vec<_> = listing.checkpoints().collect();
    let named: BTreeSet<&str> = checkpoints.iter().flat_map(|c| c.manifest.files()).collect();
    let is_orphan = |path: &&String| {
        let of_lower = attempt_in(path).is_some_and(|attempt| attempt < own);
        (of_lower && !named.contains(path.as_str())) || is_of_preflight(path)
    };
    paths.iter().filter(is_orphan).cloned().collect()
}

/// Whether an attempt below `own` was to write the object at `path`: one of its files, or an entry up to the claim of `own` (who puts
/// an entry there now puts it in vain), or an object of its preflight (a start that is at it now tries again).
pub fn is_of_lower(own: AttemptId, path: &str) -> bool {
    is_of_preflight(path)
        || attempt_in(path).is_some_and(|attempt| attempt < own)
        || number_in(path).is_some_and(|number| number.0 <= own.0)
}

/// Whether a start makes the object at `path` while it tries out the store.
pub(crate) fn is_of_preflight(path: &str) -> bool {
    path.split_once('/').is_some_and(|(folder, _)| folder == PREFLIGHT_FOLDER)
}

/// The attempt in a path of the form `<id>-<attempt>/…`; `None` for everything else in the folder.
pub(crate) fn attempt_in(path: &str) -> Option<AttemptId> {
    let (folder, _) = path.split_once('/')?;
    let (id, attempt) = folder.split_once('-')?;
    id.parse::<u64>().ok()?;
    attempt.parse().ok().map(AttemptId)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_state::KeyGroupRange;

    use super::*;
    use crate::checkpoint::commit_log::{EntryBody, LogEntry, Nonce};
    use crate::checkpoint::manifest::{KeyedStateHandle, Manifest, OperatorState, OperatorSubtaskState};
    use crate::element::CheckpointKind;
    use crate::ids::CheckpointId;

    fn manifest(id: u64, attempt: u64, file: &str) -> Manifest {
        let range = KeyGroupRange { start: 0, end: 128 };
        let keyed = KeyedStateHandle { path: file.to_owned(), size_bytes: 1, range };
        let state =
            OperatorSubtaskState { uid: "total".into(), keyed: Some(keyed), lists: Vec::new(), ended: false };
        Manifest {
            job: "orders".into(),
            log_id: "feed".into(),
            lineage: Default::default(),
            checkpoint: CheckpointId(id),
            attempt: AttemptId(attempt),
            kind: CheckpointKind::Checkpoint,
            completed_at_ms: 0,
            operators: vec![OperatorState {
                uid: "total".into(),
                max_parallelism: 128,
                two_phase: false,
                has_on_end: false,
                subtasks: vec![state],
                ended: vec![false],
                upstream: Vec::new(),
                enumerator: None,
            }],
        }
    }

    fn checkpoint(number: u64, id: u64, file: &str) -> CompletedCheckpoint {
        CompletedCheckpoint { number: EntryNumber(number), manifest: Arc::new(manifest(id, 1, file)) }
    }

    #[test]
    fn only_what_the_own_newest_entry_does_not_name_is_deleted() {
        let all = [checkpoint(2, 1, "1-1/a"), checkpoint(3, 2, "2-1/a"), checkpoint(4, 3, "3-1/a")];
        let plan = plan_cleaning(&all[2], &all[1..2], &all);
        assert_eq!(plan.delete, [DeletedCheckpoint { number: EntryNumber(2), folder: "1-1".into() }]);
        assert_eq!(plan.keep.into_iter().collect::<Vec<_>>(), ["2-1/a", "3-1/a"]);
    }

    #[test]
    fn an_entry_above_the_own_newest_is_never_deleted() {
        let (own, later) = (checkpoint(3, 2, "2-1/a"), checkpoint(9, 7, "7-8/a"));
        assert_eq!(plan_cleaning(&own, &[], &[own.clone(), later]).delete, []);
    }

    #[test]
    fn what_a_lower_attempt_was_to_write_is_told_by_its_path() {
        let is = |path| is_of_lower(AttemptId(7), path);
        assert!(is("3-6/total-0.state") && is("log/00000000000000000007"));
        assert!(!is("3-7/total-0.state") && !is("log/00000000000000000008"));
        assert!(!is("log/id") && is("preflight/0") && !is("preflights/0"));
    }

    #[test]
    fn orphans_are_files_of_lower_attempts_that_no_entry_names() {
        let body =
            EntryBody::Checkpoint { manifest: manifest(2, 1, "2-1/a"), retained: vec![], committed: vec![] };
        let entry = LogEntry { attempt: AttemptId(1), nonce: Nonce(1), body };
        let listing = [(EntryNumber(3), Arc::new(entry))].into_iter().collect();
        let paths =
            ["log/id", "2-1/a", "2-1/b", "3-1/a", "4-5/a", "5-6/a", "savepoints/x-y/z", "preflight/0"];
        let paths: Vec<_> = paths.map(str::to_owned).to_vec();
        assert_eq!(sweep_orphans(AttemptId(5), &listing, &paths), ["2-1/b", "3-1/a", "preflight/0"]);
    }
}
