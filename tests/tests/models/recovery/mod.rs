//! Law 6: who commits and who rolls back after a rescale, while older attempts are still at work.
//!
//! **Modelled.** Attempt 1 ran a sink with some parallelism and left, for each subtask, a branch that the newest complete checkpoint lists, and
//! for some a branch of the next checkpoint, which never completed. Attempts 2 and 3 recover with other parallelisms, one claiming after
//! the other, both for ever at work; each subtask by itself commits what it owns, lists left-overs, rolls them back one by one, then opens
//! and prepares a branch of the next checkpoint, which completes once all subtasks have prepared and the attempt is still the newest.
//! A zombie of attempt 1 prepares one more branch at any time.
//!
//! **The engine decides**: [`owned`] (the owner rule) and [`to_roll_back`] (the sweep rule).
//!
//! **Left out.** The commit log (an attempt is fenced at its completion, and nowhere else), records, a second checkpoint of an attempt.
//!
//! **Property.** What a complete checkpoint lists is never rolled back; nothing is committed that no complete checkpoint lists; the newest
//! attempt is never told that a listed branch is lost.
//!
//! [`owned`]: tidegate_engine::operator::commit_driver::owned
//! [`to_roll_back`]: tidegate_engine::operator::commit_driver::to_roll_back

mod steps;
#[cfg(test)]
mod tests;
mod world;

use std::fmt;

use stateright::{Model, Property};

use self::world::{Phase, World};
use super::check::{Law, unbroken};
use super::server::Fate;

/// The parallelisms, and what is softened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recovery {
    /// Of attempts 1, 2 and 3.
    pub(super) parallelism: [u8; 3],
    pub(super) weakening: Weakening,
}

/// A weaker form of the law, as somebody might build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weakening {
    /// The law itself.
    None,
    /// Listed branches are handed out in parts, and each subtask knows only its part.
    SplitListState,
    /// The sweep takes branches of higher attempts too.
    SweepWithoutBound,
    /// Names have no attempt, so that opening one fences whoever holds it.
    StableIds,
    /// As before, and each act is preceded by a check that the attempt is still the newest.
    StableIdsChecked,
    /// A subtask opens, prepares and acknowledges while its recovery is still going on.
    AcknowledgesBeforeRecovered,
}

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// An attempt begins, and is the newest.
    Claims(u8),
    /// A subtask does what is next for it.
    Subtask(u8, usize, Step),
    /// The checkpoint of an attempt is complete.
    Completes(u8),
    /// Attempt 1 prepares one more.
    Zombie,
}

/// A step of one subtask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    CommitNext,
    ListLeftOvers,
    Check,
    RollBackNext,
    OpenAndPrepare,
    CommitOwn,
}

impl Model for Recovery {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        World::first(self)
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        match world.attempts.len() {
            0 => actions.push(Action::Claims(2)),
            1 => actions.push(Action::Claims(3)),
            _ => {}
        }
        for attempt in &world.attempts {
            let number = attempt.number;
            for who in 0..attempt.subtasks.len() {
                self.steps_of(world, attempt, who, |step| actions.push(Action::Subtask(number, who, step)));
            }
            let is_prepared = attempt.subtasks.iter().all(|s| s.has_prepared);
            if is_prepared && world.newest == number && world.complete < number {
                actions.push(Action::Completes(number));
            }
        }
        if !world.zombie_has_struck {
            actions.push(Action::Zombie);
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Claims(number) => self.claim(&mut next, number),
            Action::Subtask(number, who, step) => self.step(&mut next, number, who, step),
            Action::Completes(number) => {
                next.complete = number;
                next.listed_ever.extend(world::own_branches(self, number));
            }
            Action::Zombie => {
                next.zombie_has_struck = true;
                next.server.prepare(world::unlisted(1), 0);
            }
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![unbroken()];
        if self.weakening == Weakening::None {
            properties.push(Property::sometimes("both later attempts complete", |_: &Self, w: &World| {
                w.complete == 3 && w.listed_ever.iter().any(|b| b.attempt == 2)
            }));
            properties.push(Property::sometimes(
                "an old attempt sweeps after a new one has prepared",
                |_: &Self, w: &World| {
                    let is_sweeping =
                        |n: u8| w.subtasks_of(n).any(|s| matches!(s.phase, Phase::Sweeping { .. }));
                    is_sweeping(2) && w.subtasks_of(3).any(|s| s.has_prepared)
                },
            ));
        }
        properties
    }
}

impl Law for Recovery {
    fn broken(&self, world: &World) -> Option<String> {
        if let Some(branch) = world.lost {
            return Some(format!(
                "LOST: the newest attempt is told that {branch}, which is listed, was rolled back"
            ));
        }
        let is_rolled_back = |b: &&super::server::Branch| world.server.fate(**b) == Some(Fate::RolledBack);
        if let Some(branch) = world.listed_ever.iter().find(is_rolled_back) {
            return Some(format!("LOST: {branch} is rolled back, and a complete checkpoint lists it"));
        }
        let unlisted = world.server.committed().find(|b| !world.listed_ever.contains(b))?;
        Some(format!("DOUBLED: {unlisted} is committed, and no complete checkpoint lists it"))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Claims(number) => format!("attempt {number} claims"),
            Self::Completes(number) => format!("the checkpoint of attempt {number} is complete"),
            Self::Zombie => "subtask 1.1, long paused, prepares one more".to_owned(),
            Self::Subtask(number, who, step) => {
                let does = match step {
                    Step::CommitNext => "commits the next branch it owns",
                    Step::ListLeftOvers => "lists left-overs",
                    Step::Check => "checks that it is the newest",
                    Step::RollBackNext => "rolls the next one back",
                    Step::OpenAndPrepare => "opens and prepares its own branch",
                    Step::CommitOwn => "commits its own branch",
                };
                format!("{number}.{who} {does}")
            }
        };
        f.pad(&text)
    }
}
