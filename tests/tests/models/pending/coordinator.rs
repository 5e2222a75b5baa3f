//! The coordinator: triggers, aborts, completions.
//!
//! Owns: the checkpoint in flight. Does not own: when one may be triggered (the engine decides). Runs on: the checker.

use tidegate_engine::ids::CheckpointId;
use tidegate_engine::operator::CommitOutcome;

use super::sink::hand_over;
use super::world::{Completed, InChannel, InFlight, World};
use super::{Pending, Weakening};

impl Pending {
    pub(super) fn trigger(&self, world: &mut World, is_savepoint: bool) {
        let id = world.next_id;
        world.next_id += 1;
        world.barriers_out += 1;
        world.in_flight = Some(InFlight { id, is_savepoint, position: world.position, acknowledged: None });
        world.channel.push_back(InChannel::Barrier { id, newest_completed: world.completed.id });
    }

    pub(super) fn abort(&self, world: &mut World, is_counted: bool) {
        let Some(in_flight) = world.in_flight.take() else { return };
        world.failures += u32::from(is_counted);
        if !is_counted && self.weakening == Weakening::OnlyCountedFailuresTakeAPlace {
            world.barriers_out -= 1;
        }
        let rolled_back = world.driver.on_abort(CheckpointId(u64::from(in_flight.id)));
        debug_assert!(rolled_back.is_empty());
        if self.weakening == Weakening::RollbackOnAbort {
            let own: Vec<_> = world.server.prepared().filter(|b| b.closed_by == in_flight.id).collect();
            for branch in own {
                world.server.roll_back(branch);
                // The driver forgets it, as after an answer.
                let forgotten = world.driver.on_outcome(&branch.name(), CommitOutcome::AlreadyCommitted);
                debug_assert!(forgotten.is_ok());
            }
        }
    }

    pub(super) fn complete(&self, world: &mut World) {
        let Some(InFlight { id, is_savepoint, position, acknowledged: Some(listed) }) =
            world.in_flight.take()
        else {
            return;
        };
        match self.weakening {
            Weakening::SavepointCommitsNothing if is_savepoint => world.barriers_out -= 1,
            Weakening::SavepointIsNoRecoveryPoint if is_savepoint => {
                world.driver.on_complete(CheckpointId(u64::from(id)));
                hand_over(world);
            }
            _ => {
                world.completed = Completed { id, position, listed };
                world.completions += 1;
                world.failures = 0;
                world.barriers_out = 0;
            }
        }
    }
}
