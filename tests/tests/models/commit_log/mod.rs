//! Law 4 (with the parts of laws 5 and 6 that it needs): one log, several starts of the job, one two-phase sink.
//!
//! **Modelled.** Starts A, B, C begin one after another and then interleave at will; none ever dies, since a kill is a pause for ever. Each
//! surveys, claims, looks again, restores (latest, a rewind, or nothing), commits what is listed, sweeps, and runs: records, barriers, an
//! abort, entries, commits, cleaning. A put can be answered, applied with an error, applied with a second try still in flight, or be in
//! flight for as long as it likes, and so can a claim whose start has given up. Commits and deletions that were begun go on after their job manager is fenced.
//!
//! **The engine decides**: [`decide_after_claim`], [`decide_after_put`], [`read_back`], [`Listing`]'s walks, [`plan_cleaning`], [`CommitDriver`],
//! [`owned`], [`to_roll_back`].
//!
//! **Left out.** A listing is one step, and so are a barrier with its acknowledgement, and the deletion of an entry with its files; one sink
//! subtask; `settled`, `finished` and `forgotten`; what a rewind repeats on purpose is not judged.
//!
//! **Property.** After every step, a restart that came now would restore files that are there, and every record would be in the output exactly
//! once. No attempt that is still the newest is told that a listed transaction is lost.
//!
//! [`decide_after_claim`]: tidegate_engine::checkpoint::commit_log::decide_after_claim
//! [`decide_after_put`]: tidegate_engine::checkpoint::commit_log::decide_after_put
//! [`read_back`]: tidegate_engine::checkpoint::commit_log::read_back
//! [`Listing`]: tidegate_engine::checkpoint::commit_log::Listing
//! [`plan_cleaning`]: tidegate_engine::checkpoint::cleaner::plan_cleaning
//! [`CommitDriver`]: tidegate_engine::operator::commit_driver::CommitDriver
//! [`owned`]: tidegate_engine::operator::commit_driver::owned
//! [`to_roll_back`]: tidegate_engine::operator::commit_driver::to_roll_back

mod action;
mod attempt;
mod claiming;
mod log;
mod putting;
mod recovering;
mod running;
#[cfg(test)]
mod tests;
mod verdict;
mod world;

use stateright::{Model, Property};

use self::action::{Action, Step};
use self::world::World;
use super::check::{Law, unbroken};

/// How large the model is, and what may happen in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct CommitLog {
    /// How often the job is started; at most 3.
    pub(super) starts: usize,
    /// Records in the input.
    pub(super) records: u8,
    /// The highest checkpoint id.
    pub(super) checkpoints: u8,
    /// Later starts may rewind.
    pub(super) rewinds: bool,
    /// Later starts may begin without restore.
    pub(super) anew: bool,
    /// Puts may stay in flight.
    pub(super) late_puts: bool,
    /// Old checkpoints are cleaned.
    pub(super) cleaning: bool,
    /// How many older checkpoints an entry names as retained.
    pub(super) older: usize,
    /// The law that is softened, if any.
    pub(super) weakening: Weakening,
}

/// A weaker form of the law, as somebody might build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weakening {
    /// The law itself.
    None,
    /// No log: one create-if-absent per checkpoint id.
    NoLog,
    /// The cleaner deletes old claims too.
    CleanerDeletesClaims,
    /// A claim does not say what its start restores.
    BaseNotInLog,
    /// The claimant does not look again after its put.
    NoSecondListing,
    /// The cleaner deletes every checkpoint but the highest entry.
    CleanerKeepsHighestEntry,
    /// The cleaner keeps the newest checkpoint of a listing, whatever its own newest entry names.
    CleanerDecidesByListing,
    /// A rewind may name whatever the newest checkpoint of the *line* retains, also after a rewind that completed nothing.
    RewindToWhatTheLineRetains,
    /// After a rewind the first entry names what the restored entry retained, although the newest entry of the log did not.
    RetainsWhatTheRestoredRetains,
    /// Every entry goes at highest listed + 1.
    NumbersFromListing,
    /// A put that reports an error has failed.
    ErrorMeansFailure,
    /// A put replaces what stands there.
    RenameReplaces,
    /// Recovery rolls back whatever is not listed, of higher attempts too.
    SweepWithoutBound,
    /// Attempts are counted from 1 in each lineage.
    AttemptsCountWithinLineage,
    /// State files lie under the checkpoint's id alone.
    FilesWithoutAttempt,
}

impl Model for CommitLog {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::new(self.starts)]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        if world.in_flight.is_some() {
            actions.push(Action::LatePutLands);
        }
        for who in 0..self.starts {
            self.steps_of(world, who, |step| actions.push(Action::Of(who, step)));
        }
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        match action {
            Action::LatePutLands => {
                let mut next = world.clone();
                let entry = next.in_flight.take()?;
                self.put(&mut next, entry);
                Some(next)
            }
            Action::Of(who, step) => Some(self.step(world, who, step)),
        }
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![unbroken()];
        if self.weakening == Weakening::None {
            properties.push(Property::sometimes("the last start runs", |m: &Self, w: &World| {
                w.is_running(m.starts - 1)
            }));
            properties.push(Property::sometimes("the last checkpoint is complete", |m: &Self, w: &World| {
                w.has_completed(m.checkpoints)
            }));
            if self.cleaning {
                properties.push(Property::sometimes("something is cleaned", |_: &Self, w: &World| {
                    w.files_gone != 0
                }));
            }
        }
        properties
    }
}

impl Law for CommitLog {
    fn broken(&self, world: &World) -> Option<String> {
        self.verdict(world)
    }
}

impl CommitLog {
    /// Applies one step of one start.
    fn step(&self, world: &World, who: usize, step: Step) -> World {
        let mut next = world.clone();
        let mut attempt = next.take(who);
        match step {
            Step::Survey(wish) => self.survey(&next, &mut attempt, wish),
            Step::PutClaim => self.put_claim(&mut next, &mut attempt),
            Step::LoseClaim => self.lose_claim(&mut next, &mut attempt),
            Step::LookAgain => self.look_again(&next, &mut attempt),
            Step::CommitNext => self.commit_next(&mut next, &mut attempt),
            Step::ListLeftOvers => self.list_left_overs(&next, &mut attempt),
            Step::RollBackNext => self.roll_back_next(&mut next, &mut attempt),
            Step::Record => self.record(&mut attempt),
            Step::Barrier => self.barrier(&mut next, &mut attempt),
            Step::Abort => self.abort(&mut attempt),
            Step::Put(fate) => self.put_checkpoint(&mut next, &mut attempt, fate),
            Step::ReadBack => self.read_back_checkpoint(&mut next, &mut attempt),
            Step::CleanNext => self.clean_next(&mut next, &mut attempt),
        }
        next.put_back(who, attempt);
        next
    }
}
