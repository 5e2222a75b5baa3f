//! The operator: records, ends, barriers, `on_end`.
//!
//! Owns: what the operator does with an element. Does not own: when it may (see `action.rs`). Runs on: the checker.

use super::world::{Element, Ending, World};
use super::{EndOfData, Weakening};

impl EndOfData {
    pub(super) fn take_input(&self, world: &mut World, channel: usize) {
        let operator = &mut world.operator;
        match world.inputs[channel].pop_front() {
            Some(Element::Record) => {
                operator.count += 1;
                world.between = Some(Element::Record);
            }
            Some(Element::EndOfData) => operator.input_ended[channel] = true,
            Some(Element::Barrier(name)) => operator.aligned[channel] = Some(name),
            Some(Element::Half(_)) | None => {}
        }
    }

    /// The next half goes out; after the second one `EndOfData` is forwarded, and only then `ended` is set.
    pub(super) fn on_end(&self, world: &mut World) {
        let (half, ending) = match world.operator.ending {
            Ending::Running => (0, Ending::InTheMiddle),
            Ending::InTheMiddle => (1, Ending::Ended),
            Ending::Ended => return,
        };
        world.operator.ending = ending;
        world.between = Some(Element::Half(half));
    }

    pub(super) fn snapshot(&self, world: &mut World) {
        let Some(name) = world.operator.aligned[0] else { return };
        world.operator.aligned = [None, None];
        world.between = Some(Element::Barrier(name));
        if name != world.aborts {
            return; // its checkpoint was given up; the barrier is forwarded all the same
        }
        let ending = match (self.weakening, world.operator.ending) {
            (Weakening::EndedSetEarly, Ending::InTheMiddle) => Ending::Ended,
            (_, ending) => ending,
        };
        if let Some(checkpoint) = &mut world.in_flight {
            checkpoint.operator = Some((world.operator.count, ending));
        }
    }
}
