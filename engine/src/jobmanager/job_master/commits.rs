//! What each two-phase sink has committed.
//!
//! Owns: the newest report of each sink subtask. Does not own: committing. Runs on: the job manager. Pure.

use std::collections::BTreeMap;

use crate::ids::{CheckpointId, OperatorUid, SubtaskId};

#[derive(Debug)]
pub(super) struct CommitTracker {
    sinks: BTreeMap<(OperatorUid, SubtaskId), Commits>,
    /// All sinks have committed up to here, and it was told.
    told: CheckpointId,
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
        let mut tracker = Self {
            sinks: sinks.iter().map(|sink| (sink.clone(), commits(&sink.0))).collect(),
            told: CheckpointId::default(),
        };
        tracker.told = tracker.all().unwrap_or_default();
        tracker
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

    /// The checkpoint up to which all sinks have committed since, if it has risen since this was last asked.
    pub(super) fn risen(&mut self) -> Option<CheckpointId> {
        let all = self.all().filter(|all| *all > self.told)?;
        self.told = all;
        Some(all)
    }

    fn all(&self) -> Option<CheckpointId> {
        self.sinks.values().map(|c| c.up_to).min()
    }

    /// How many transactions the sinks hold prepared, as they last said.
    pub(super) fn prepared(&self) -> u32 {
        self.sinks.values().map(|c| c.prepared).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::VertexId;

    #[test]
    fn a_checkpoint_counts_as_committed_when_its_last_sink_says_so_and_is_told_once() {
        let sinks: Vec<_> = [0, 1]
            .map(|index| (OperatorUid("out".to_owned()), SubtaskId { vertex: VertexId(0), index }))
            .into();
        let mut tracker = CommitTracker::new(&sinks, &[(sinks[0].0.clone(), CheckpointId(3))]);
        assert_eq!(tracker.risen(), None, "what the restored entry knew is not new");
        tracker.report(&sinks[0].0, sinks[0].1, CheckpointId(5), 0, false);
        assert_eq!(tracker.risen(), None, "the other subtask is behind");
        tracker.report(&sinks[1].0, sinks[1].1, CheckpointId(4), 0, false);
        assert_eq!(tracker.risen(), Some(CheckpointId(4)));
        assert_eq!(tracker.risen(), None);
    }
}
