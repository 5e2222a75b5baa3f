//! A running attempt: records, barriers, aborts, cleaning.
//!
//! Owns: the life between two entries. Does not own: the entry (see `putting.rs`). Runs on: the checker.

use std::sync::Arc;

use tidegate_engine::checkpoint::CompletedCheckpoint;
use tidegate_engine::checkpoint::cleaner::plan_cleaning;
use tidegate_engine::ids::{CheckpointId, EntryNumber};

use super::super::server::Branch;
use super::attempt::{Attempt, Phase};
use super::log::{Snapshot, manifest};
use super::world::World;
use super::{CommitLog, Weakening};

impl CommitLog {
    pub(super) fn record(&self, attempt: &mut Attempt) {
        attempt.open |= 1 << attempt.position;
        attempt.position += 1;
    }

    pub(super) fn barrier(&self, world: &mut World, attempt: &mut Attempt) {
        let id = attempt.next_id;
        attempt.next_id += 1;
        let prepared = (attempt.open != 0).then(|| {
            let branch = Branch { attempt: attempt.number, subtask: 0, closed_by: id };
            world.server_mut().prepare(branch, std::mem::take(&mut attempt.open));
            branch.prepared()
        });
        let (checkpoint, completed) =
            (CheckpointId(u64::from(id)), CheckpointId(u64::from(attempt.completed)));
        let has_place = attempt.driver.on_barrier(checkpoint, completed);
        debug_assert!(has_place.is_ok());
        let listed = attempt.driver.on_prepared(checkpoint, prepared);
        let listed = listed.into_iter().map(|p| p.committable).collect();
        let snapshot = Snapshot { id, position: attempt.position, listed, since: attempt.since };
        attempt.phase = Phase::Acknowledged { snapshot };
        if self.weakening == Weakening::FilesWithoutAttempt {
            world.written_by.retain(|(of, _)| *of != id);
            world.written_by.push((id, attempt.number));
        }
    }

    pub(super) fn abort(&self, attempt: &mut Attempt) {
        let Phase::Acknowledged { snapshot } = &attempt.phase else { return };
        let rolled_back = attempt.driver.on_abort(CheckpointId(u64::from(snapshot.id)));
        debug_assert!(rolled_back.is_empty());
        attempt.has_aborted = true;
        attempt.phase = Phase::Running;
    }

    /// Plans what may be deleted now that the entry at `number` is complete.
    pub(super) fn plan(&self, world: &World, attempt: &mut Attempt, number: u8, retained: &[u8]) {
        attempt.known.push(number);
        let completed = |number: &u8| CompletedCheckpoint {
            number: EntryNumber(u64::from(*number)),
            manifest: Arc::new(manifest(0, 0)), // the plan goes by numbers
        };
        let retained: Vec<_> = retained.iter().map(completed).collect();
        let known: Vec<_> = attempt.known.iter().map(completed).collect();
        let plan: Vec<u8> = match self.weakening {
            Weakening::CleanerKeepsHighestEntry => Vec::new(),
            Weakening::CleanerDecidesByListing => {
                let checkpoints: Vec<u8> = world.log.checkpoints().map(|(e, _)| e.number).collect();
                checkpoints.split_last().map(|(_, older)| older.to_vec()).unwrap_or_default()
            }
            _ => plan_cleaning(&completed(&number), &retained, &known)
                .delete
                .iter()
                .map(|deleted| deleted.number.0 as u8)
                .collect(),
        };
        attempt.known.retain(|known| !plan.contains(known));
        attempt.to_clean.extend(plan);
        if self.weakening == Weakening::CleanerDeletesClaims {
            attempt
                .to_clean
                .extend(world.log.claims().map(|(e, _)| e.number).filter(|claim| *claim < number));
        }
    }

    pub(super) fn clean_next(&self, world: &mut World, attempt: &mut Attempt) {
        let next = attempt.to_clean.pop_front().or_else(|| self.not_highest(world));
        if let Some(number) = next {
            world.delete(number);
        }
    }

    /// [`Weakening::CleanerKeepsHighestEntry`]: a checkpoint that is not the highest entry.
    pub(super) fn not_highest(&self, world: &World) -> Option<u8> {
        let highest = world.log.highest();
        world.log.checkpoints().map(|(e, _)| e.number).find(|number| *number != highest)
    }
}
