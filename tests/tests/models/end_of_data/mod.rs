//! Law 7: the end of data, the last checkpoint, and a record that an operator emits at its end.
//!
//! **Modelled.** Two bounded sources, one operator that counts records and emits two more in `on_end`, one two-phase sink; in-order channels, and
//! an output so small that `on_end` can stop in the middle. Barriers are aligned at the operator. The checkpoint can be given up once, and
//! the job can crash twice, also between completion and everything after it.
//!
//! **Left out.** The commit log and zombies (other models); parallelism; timers. The sources take a barrier at the same moment. This law
//! has no pure decision in the engine to ask: the model is written by hand after the law's words.
//!
//! **Properties.** (1) No record, nor either half of `on_end`, is committed twice; when the job is finished, each is committed once.
//! (2) From every state the job can still come to its end.

mod action;
mod operator;
mod sink;
#[cfg(test)]
mod tests;
mod world;

use stateright::{Model, Property};

use self::action::Action;
use self::world::World;
use super::check::{Law, unbroken};

/// How large the model is.
#[derive(Clone, Copy, Debug)]
pub(super) struct EndOfData {
    /// Records of each source.
    pub(super) records: [u8; 2],
    pub(super) crashes: u8,
    pub(super) weakening: Weakening,
}

/// A weaker form of the law, as somebody might build it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weakening {
    /// The law itself.
    None,
    /// A subtask blocked in the middle of `on_end` takes the snapshot of a barrier at the head of its inputs.
    SnapshotInTheMiddle,
    /// As before, and `ended` is set when `on_end` begins.
    EndedSetEarly,
    /// Nothing may follow the end of an input.
    NothingFollowsTheEnd,
    /// A restored operator that had ended calls `on_end` again.
    OnEndAfterRestore,
    /// The job is finished when everything has ended, without a last checkpoint.
    NoLastCheckpoint,
}

impl Model for EndOfData {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        vec![World::default()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        self.actions_in(world, actions);
    }

    fn next_state(&self, world: &World, action: Action) -> Option<World> {
        let mut next = world.clone();
        match action {
            Action::Emit(source) => next.emit(source),
            Action::SendEnd(source) => next.send_end(source),
            Action::Trigger => self.trigger(&mut next),
            Action::TakeInput(channel) => self.take_input(&mut next, channel),
            Action::OnEnd => self.on_end(&mut next),
            Action::Snapshot => self.snapshot(&mut next),
            Action::SinkTakes => self.sink_takes(&mut next),
            Action::Complete => self.complete(&mut next),
            Action::CompleteAndCrash => {
                self.complete(&mut next);
                next.is_finished = false; // the crash comes before
                self.crash(&mut next);
            }
            Action::Abort => next.abort(),
            Action::Crash => self.crash(&mut next),
            Action::Finish => next.is_finished = true,
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = vec![unbroken()];
        if self.weakening == Weakening::None {
            properties
                .push(Property::sometimes("the job finishes after every crash", |m: &Self, w: &World| {
                    w.is_finished && w.crashes == m.crashes
                }));
        }
        properties
    }
}

impl Law for EndOfData {
    fn broken(&self, world: &World) -> Option<String> {
        let records: u8 = self.records.iter().sum();
        let out = &world.output;
        if out.records > records || out.halves.iter().any(|times| *times > 1) {
            return Some(format!("DOUBLED: {out} is committed, of {records} records and two halves"));
        }
        let is_whole = out.records == records && out.halves == [1, 1];
        (world.is_finished && !is_whole).then(|| {
            format!("LOST: the job is finished, and {out} is committed, of {records} records and two halves")
        })
    }
}
