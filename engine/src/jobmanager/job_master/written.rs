//! What the sinks of an attempt have written, and how much of it the newest completed checkpoint covers.
//!
//! The rest is written again if the attempt fails: whoever reads from the checkpoint's positions comes by the same records once more.
//!
//! Owns: counts by subtask. Does not own: what follows from them (see [`crate::execution::output_meter`]). Runs on: the job manager. Pure.

use std::collections::BTreeMap;

use crate::ids::{CheckpointId, SubtaskId, VertexId};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Written {
    /// As last said.
    said: BTreeMap<SubtaskId, u64>,
    /// In front of the barriers of checkpoints that are not complete.
    in_front_of: BTreeMap<CheckpointId, BTreeMap<SubtaskId, u64>>,
    /// In front of the barrier of the newest completed one.
    covered: BTreeMap<SubtaskId, u64>,
}

impl Written {
    /// A subtask's sinks have written so many records in this attempt.
    pub(super) fn said(&mut self, subtask: SubtaskId, records: u64) {
        let said = self.said.entry(subtask).or_default();
        *said = (*said).max(records);
    }

    /// So many of them in front of a barrier.
    pub(super) fn acknowledged(&mut self, id: CheckpointId, subtask: SubtaskId, records: u64) {
        self.said(subtask, records);
        self.in_front_of.entry(id).or_default().insert(subtask, records);
    }

    /// A checkpoint is complete.
    pub(super) fn completed(&mut self, id: CheckpointId) {
        if let Some(covered) = self.in_front_of.remove(&id) {
            self.covered = covered;
        }
        self.in_front_of.retain(|other, _| *other > id);
    }

    /// A checkpoint was given up.
    pub(super) fn given_up(&mut self, id: CheckpointId) {
        self.in_front_of.remove(&id);
    }

    /// For each vertex: records written, and how many of them no completed checkpoint covers.
    pub(super) fn by_vertex(&self) -> BTreeMap<VertexId, (u64, u64)> {
        let mut by_vertex = BTreeMap::<VertexId, (u64, u64)>::new();
        for (subtask, written) in &self.said {
            let covered = self.covered.get(subtask).copied().unwrap_or(0);
            let sums = by_vertex.entry(subtask.vertex).or_default();
            sums.0 += written;
            sums.1 += written.saturating_sub(covered);
        }
        by_vertex
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_behind_the_barrier_of_the_newest_completed_checkpoint_is_not_covered() {
        let sink = |index| SubtaskId { vertex: VertexId(3), index };
        let mut written = Written::default();
        written.said(sink(0), 40);
        assert_eq!(written.by_vertex()[&VertexId(3)], (40, 40));
        written.acknowledged(CheckpointId(1), sink(0), 50);
        written.acknowledged(CheckpointId(1), sink(1), 20);
        written.acknowledged(CheckpointId(2), sink(0), 70);
        assert_eq!(written.by_vertex()[&VertexId(3)], (90, 90));
        written.completed(CheckpointId(1));
        written.given_up(CheckpointId(2));
        written.completed(CheckpointId(2));
        assert_eq!(written.by_vertex()[&VertexId(3)], (90, 20));
    }
}
