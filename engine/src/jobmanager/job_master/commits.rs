//! What each two-phase sink has committed.
//!
//! Owns: the newest report of each sink subtask. Does not own: committing. Runs on: the job manager. Pure.

use std::collections::BTreeMap;

use crate::ids::{CheckpointId, OperatorUid, SubtaskId};

#[derive(Debug)]
pub(super) struct CommitTracker {
    sinks: BTreeMap<(OperatorUid, SubtaskId), Commits>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Commits {
    up_to: CheckpointId,
    prepared: u32,
    swept: bool,
}

impl CommitTracker {
    /// `committed` is what the restored entry knew.
    pub(super) fn new(sinks: &[(OperatorUid, SubtaskId)], committed: &[(OperatorUid, CheckpointId)]) -> Self {
        let known = |uid: &OperatorUid| committed.iter().find(|(of, _)| of == uid).map(|(_, m)| *m);
        let commits = |uid| Commits { up_to: known(uid).unwrap_or_default(), ..Commits::default() };
        Self { sinks: sinks.iter().map(|sink| (sink.clone(), commits(&sink.0))).collect() }
    }

    /// A report; older ones that come late change nothing.
    pub(super) fn report(
        &mut self,
        uid: &OperatorUid,
        subtask: SubtaskId,
        up_to: CheckpointId,
        prepared: u32,
        swept: bool,
    ) {
        let Some(commits) = self.sinks.get_mut(&(uid.clone(), subtask)) else { return };
        if up_to > commits.up_to {
            *commits = Commits { up_to, prepared, swept };
        } else if up_to == commits.up_to {
            *commits = Commits { up_to, prepared, swept: swept || commits.swept };
        }
    }

    /// Sink subtasks that have not reported everything up to `id` as committed.
    pub(super) fn behind(&self, id: CheckpointId) -> Vec<SubtaskId> {
        self.which(|c| c.up_to < id)
    }

    /// Sink subtasks that have not both committed everything up to `id` and swept after that.
    pub(super) fn unsettled(&self, id: CheckpointId) -> Vec<SubtaskId> {
        self.which(|c| c.up_to < id || !c.swept)
    }

    fn which(&self, is: impl Fn(&Commits) -> bool) -> Vec<SubtaskId> {
        let mut subtasks: Vec<_> = self.sinks.iter().filter(|(_, c)| is(c)).map(|((_, s), _)| *s).collect();
        subtasks.sort();
        subtasks.dedup();
        subtasks
    }

    /// For each sink the checkpoint up to which all its subtasks have committed.
    pub(super) fn per_sink(&self) -> Vec<(OperatorUid, CheckpointId)> {
        let mut least = BTreeMap::new();
        for ((uid, _), commits) in &self.sinks {
            let of = least.entry(uid.clone()).or_insert(commits.up_to);
            *of = commits.up_to.min(*of);
        }
        least.into_iter().collect()
    }

    /// How many transactions the sinks hold prepared, as they last said.
    pub(super) fn prepared(&self) -> u32 {
        self.sinks.values().map(|c| c.prepared).sum()
    }
}
