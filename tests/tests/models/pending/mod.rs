//! Law 5: what a sink lists and commits under aborts, lost notifications and crashes, and whether it can get stuck.
//!
//! **Modelled.** A source, one in-order channel, one sink subtask with its committer, a coordinator with one checkpoint in flight, and
//! savepoints that let the job go on. A checkpoint can be given up for a reason that counts or for one that does not, before or behind its
//! barrier; a completion is learnt by notification or from a later barrier. The server holds a bounded number of transactions; a sink that
//! updates rows in place also holds a lock on its hot row from prepare to commit.
//!
//! **The engine decides**: [`CommitDriver`] (what is listed, handed over, settled; places), [`decide_trigger`], [`CheckpointConfig`],
//! [`owned`] and [`to_roll_back`] after a crash.
//!
//! **Left out.** Attempts that live on after a crash (the models of laws 4 and 6 have them): recovery is one step. A failure beyond the
//! tolerable ones, which fails the job. For the second property records have no identity.
//!
//! **Properties.** (1) After every step, a restart from the newest completed checkpoint has every record in the output exactly once.
//! (2) From every state either the next checkpoint can still complete, or the job can fail with the reason that no place is left; for that
//! nobody needs luck: a state from which neither can be reached is stuck.
//!
//! [`CommitDriver`]: tidegate_engine::operator::commit_driver::CommitDriver
//! [`owned`]: tidegate_engine::operator::commit_driver::owned
//! [`to_roll_back`]: tidegate_engine::operator::commit_driver::to_roll_back
//! [`decide_trigger`]: tidegate_engine::checkpoint::trigger_decider::decide_trigger
//! [`CheckpointConfig`]: tidegate_engine::checkpoint::CheckpointConfig

mod action;
mod coordinator;
mod sink;
#[cfg(test)]
mod tests;
mod world;

use stateright::{Model, Property};
use tidegate_engine::checkpoint::CheckpointConfig;

use self::action::Action;
use self::world::World;
use super::check::{Law, unbroken};

/// How large the model is, and what may happen in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pending {
    /// Records in the input; `None`: without end and without identity.
    pub(super) records: Option<u8>,
    /// Completed checkpoints at which a schedule ends.
    pub(super) completions: u8,
    /// The highest checkpoint id.
    pub(super) ids: u8,
    /// How many counted failures in a row are borne.
    pub(super) tolerable: u32,
    /// How often the job crashes.
    pub(super) crashes: u8,
    /// Rows are updated in place.
    pub(super) locks: bool,
    /// Checkpoints also fail for reasons that are not counted.
    pub(super) uncounted: bool,
    /// There are savepoints.
    pub(super) savepoints: bool,
    pub(super) weakening: Weakening,
}

/// A weaker form of the law, as somebody might build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weakening {
    /// The law itself.
    None,
    /// An aborted checkpoint rolls its transaction back.
    RollbackOnAbort,
    /// What is handed to the committer is listed no more.
    HandedOverEndsPending,
    /// A snapshot lists only the transaction of its own checkpoint.
    ListsOnlyOwnCheckpoint,
    /// A sink that holds row locks runs with tolerable failures.
    TolerableFailuresWithLocks,
    /// A barrier whose checkpoint failed for a reason that is not counted gives its place back.
    OnlyCountedFailuresTakeAPlace,
    /// A blocked subtask takes no mail.
    BlockedIsNotStepped,
    /// A savepoint commits nothing; its transactions wait for the next checkpoint.
    SavepointCommitsNothing,
    /// A savepoint commits its transactions but is no recovery point.
    SavepointIsNoRecoveryPoint,
}

impl Pending {
    /// The engine's settings: a sink that holds row locks changes them.
    pub(super) fn config(&self) -> CheckpointConfig {
        let config = CheckpointConfig { tolerable_failures: self.tolerable, ..CheckpointConfig::default() };
        match self.locks && self.weakening != Weakening::TolerableFailuresWithLocks {
            true => config.with_locks_held(),
            false => config,
        }
    }

    /// Transactions that the sink may hold.
    pub(super) fn places(&self) -> usize {
        self.config().barrier_places() as usize + 2
    }
}

impl Model for Pending {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::first(self.places())]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.actions_in(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Emit => next.emit(self),
            Action::Trigger { is_savepoint } => self.trigger(&mut next, is_savepoint),
            Action::FailForPlaces => next.has_failed = true,
            Action::Write => self.write(&mut next),
            Action::Barrier => self.barrier(&mut next),
            Action::Abort { is_counted } => self.abort(&mut next, is_counted),
            Action::Complete => self.complete(&mut next),
            Action::Notify => self.notify(&mut next),
            Action::CommitNext => self.commit_next(&mut next),
            Action::Crash => self.crash(&mut next),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![unbroken()];
        if self.weakening == Weakening::None {
            properties.push(Property::sometimes(
                "a completed checkpoint lists a transaction for each record",
                |m: &Self, w: &World| Some(w.completed.listed.len()) == m.records.map(usize::from),
            ));
            properties.push(Property::sometimes(
                "everything is completed after every crash",
                |m: &Self, w: &World| w.completions == m.completions && w.attempt == m.crashes + 1,
            ));
        }
        properties
    }
}

impl Law for Pending {
    fn broken(&self, world: &World) -> Option<String> {
        if let Some(branch) = world.lost {
            return Some(format!("LOST: the server says that {branch}, which is listed, was rolled back"));
        }
        self.records?;
        world.server.wrong_output(world.completed.position, &world.completed.listed, true, |_| true)
    }
}
