//! The sink subtask: records, barriers, notifications, commits, and recovery after a crash.
//!
//! Owns: the steps at the sink. Does not own: what is listed and handed over (the engine's driver says). Runs on: the checker.

use tidegate_engine::ids::CheckpointId;
use tidegate_engine::operator::CommitOutcome;
use tidegate_engine::operator::commit_driver::{CommitDriver, owned, to_roll_back};

use super::super::server::Branch;
use super::world::{InChannel, World};
use super::{Pending, Weakening};

fn id_of(id: u8) -> CheckpointId {
    CheckpointId(u64::from(id))
}

impl Pending {
    pub(super) fn write(&self, world: &mut World) {
        if let Some(InChannel::Record(record)) = world.channel.pop_front() {
            world.open |= 1 << record;
        }
    }

    pub(super) fn barrier(&self, world: &mut World) {
        let Some(InChannel::Barrier { id, newest_completed }) = world.channel.pop_front() else { return };
        world.notified = world.notified.max(newest_completed);
        let no_place = world.driver.on_barrier(id_of(id), id_of(newest_completed)).is_err();
        let gives_places_back = matches!(
            self.weakening,
            Weakening::OnlyCountedFailuresTakeAPlace | Weakening::SavepointCommitsNothing
        );
        if no_place && !gives_places_back {
            world.has_failed = true;
            return;
        }
        let prepared = (world.open != 0).then(|| {
            let branch = Branch { attempt: world.attempt, subtask: 0, closed_by: id };
            world.server.prepare(branch, std::mem::take(&mut world.open));
            branch.prepared()
        });
        let listed = world.driver.on_prepared(id_of(id), prepared).into_iter().map(|p| p.committable);
        let listed: Vec<Branch> = match self.weakening {
            Weakening::HandedOverEndsPending => listed.filter(|b| !world.at_committer.contains(b)).collect(),
            Weakening::ListsOnlyOwnCheckpoint => listed.filter(|b| b.closed_by == id).collect(),
            _ => listed.collect(),
        };
        if let Some(in_flight) = world.in_flight.as_mut().filter(|in_flight| in_flight.id == id) {
            in_flight.acknowledged = Some(listed);
        }
        hand_over(world);
    }

    pub(super) fn notify(&self, world: &mut World) {
        world.notified = world.completed.id;
        world.driver.on_complete(id_of(world.completed.id));
        hand_over(world);
    }

    pub(super) fn commit_next(&self, world: &mut World) {
        let Some(branch) = world.at_committer.pop_front() else { return };
        let outcome = world.server.commit(branch);
        if world.driver.on_outcome(&branch.name(), outcome).is_err() {
            world.lost = Some(branch);
        }
        if self.records.is_none() {
            world.server.forget(branch);
        }
        if world.at_committer.is_empty() {
            hand_over(world);
        }
    }

    /// Everything but log and server is gone; the next attempt restores the newest completed checkpoint and recovers.
    pub(super) fn crash(&self, world: &mut World) {
        let completed = world.completed.clone();
        let mut next = World::first(self.places());
        next.attempt = world.attempt + 1;
        next.server = std::mem::take(&mut world.server);
        next.driver = CommitDriver::new(id_of(completed.id), self.places());
        (next.position, next.next_id, next.notified) = (completed.position, completed.id + 1, completed.id);
        next.completions = world.completions;
        let listed: Vec<_> = completed.listed.iter().map(|branch| branch.prepared()).collect();
        for owned in owned(&listed, 0, 1) {
            if matches!(next.server.commit(owned.committable), CommitOutcome::Lost { .. }) {
                next.lost = Some(owned.committable);
            }
        }
        let own = Branch { attempt: next.attempt, subtask: 0, closed_by: completed.id + 1 };
        let names: Vec<_> = listed.into_iter().map(|p| p.name).collect();
        let left_overs = next.server.prepared().map(Branch::name).collect();
        for branch in next.server.among(&to_roll_back(left_overs, &names, &own.name(), 1)) {
            next.server.roll_back(branch);
        }
        next.completed = completed;
        *world = next;
    }
}

/// Hands to the committer what is complete, if it has nothing to do.
pub(super) fn hand_over(world: &mut World) {
    world.at_committer.extend(world.driver.next_commits().into_iter().map(|p| p.committable));
}
