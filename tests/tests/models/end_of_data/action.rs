//! What can happen, and when.
//!
//! Owns: the conditions. Does not own: the effects. Runs on: the checker.

use std::fmt;

use super::world::{Element, Ending, World};
use super::{EndOfData, Weakening};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Emit(usize),
    SendEnd(usize),
    Trigger,
    /// The operator takes the element at the head of an input.
    TakeInput(usize),
    OnEnd,
    Snapshot,
    SinkTakes,
    Complete,
    CompleteAndCrash,
    Abort,
    Crash,
    Finish,
}

/// Elements that a channel holds at most; a barrier takes no credit.
const IN_CHANNEL: usize = 2;

impl EndOfData {
    pub(super) fn actions_in(&self, world: &World, actions: &mut Vec<Action>) {
        if world.is_finished {
            return;
        }
        self.sources_in(world, actions);
        self.operator_in(world, actions);
        if world.between.is_some() {
            actions.push(Action::SinkTakes);
        }
        let may_crash = world.crashes < self.crashes;
        if world.in_flight.as_ref().is_some_and(|c| c.listed.is_some() && c.operator.is_some()) {
            actions.push(Action::Complete);
            if may_crash {
                actions.push(Action::CompleteAndCrash);
            }
        }
        if world.in_flight.is_some() && world.aborts < 1 {
            actions.push(Action::Abort);
        }
        if may_crash {
            actions.push(Action::Crash);
        }
        let ended = world.operator.ending == Ending::Ended && world.between.is_none();
        if self.weakening == Weakening::NoLastCheckpoint && ended {
            actions.push(Action::Finish);
        }
    }

    fn sources_in(&self, world: &World, actions: &mut Vec<Action>) {
        for (source, input) in world.inputs.iter().enumerate() {
            let state = world.sources[source];
            if input.len() >= IN_CHANNEL || state.has_ended {
                continue;
            }
            match state.position < self.records[source] {
                true => actions.push(Action::Emit(source)),
                false => actions.push(Action::SendEnd(source)),
            }
        }
        let has_room = world.inputs.iter().all(|input| input.len() <= IN_CHANNEL);
        let may_follow =
            self.weakening != Weakening::NothingFollowsTheEnd || world.sources.iter().all(|s| !s.has_ended);
        if world.in_flight.is_none() && has_room && may_follow {
            actions.push(Action::Trigger);
        }
    }

    fn operator_in(&self, world: &World, actions: &mut Vec<Action>) {
        let operator = &world.operator;
        if world.between.is_some() {
            return; // the output is full
        }
        for channel in 0..2 {
            // A barrier is noted whatever is under way; a channel whose barrier is noted is held.
            let is_taken = match world.inputs[channel].front() {
                Some(Element::Record) => operator.ending == Ending::Running,
                Some(Element::EndOfData | Element::Barrier(_)) => true,
                Some(Element::Half(_)) | None => false,
            };
            if is_taken && operator.aligned[channel].is_none() {
                actions.push(Action::TakeInput(channel));
            }
        }
        let is_ending = operator.has_all_ends() && operator.ending != Ending::Ended;
        if is_ending {
            actions.push(Action::OnEnd);
        }
        // Snapshot and forwarding wait until `on_end` is out and `EndOfData` is forwarded.
        let in_the_middle =
            matches!(self.weakening, Weakening::SnapshotInTheMiddle | Weakening::EndedSetEarly);
        if operator.aligned.iter().all(Option::is_some) && (!is_ending || in_the_middle) {
            actions.push(Action::Snapshot);
        }
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Emit(source) => format!("source {source} emits a record"),
            Self::SendEnd(source) => format!("source {source} ends"),
            Self::TakeInput(channel) => format!("the operator takes from input {channel}"),
            Self::Trigger => "a checkpoint is triggered".to_owned(),
            Self::OnEnd => "the operator goes on with on_end".to_owned(),
            Self::Snapshot => "the operator snapshots, forwards the barrier".to_owned(),
            Self::SinkTakes => "the sink takes what has come".to_owned(),
            Self::Complete => "the checkpoint is complete and committed".to_owned(),
            Self::CompleteAndCrash => "the checkpoint is complete; crash, restore".to_owned(),
            Self::Abort => "the checkpoint is given up".to_owned(),
            Self::Crash => "crash, restore".to_owned(),
            Self::Finish => "the job is called finished".to_owned(),
        };
        f.pad(&text)
    }
}
