//! Sink, coordinator, and restore.
//!
//! Owns: the way from a barrier at the sources to committed output. Does not own: the operator's part. Runs on: the checker.

use super::world::{Checkpoint, Element, Ending, Operator, Output, Source, World};
use super::{EndOfData, Weakening};

impl EndOfData {
    pub(super) fn trigger(&self, world: &mut World) {
        world.in_flight = Some(Checkpoint { sources: world.sources, operator: None, listed: None });
        let name = world.aborts;
        world.inputs.iter_mut().for_each(|input| input.push_back(Element::Barrier(name)));
    }

    pub(super) fn sink_takes(&self, world: &mut World) {
        let name = match world.between.take() {
            Some(Element::Record) => return world.open.records += 1,
            Some(Element::Half(half)) => return world.open.halves[half] += 1,
            Some(Element::Barrier(name)) => name,
            Some(Element::EndOfData) | None => return,
        };
        let closed = std::mem::take(&mut world.open);
        if !closed.is_empty() {
            world.pending.push(closed);
        }
        if name == world.aborts
            && let Some(checkpoint) = &mut world.in_flight
        {
            checkpoint.listed = Some(world.pending.clone());
        }
    }

    /// The entry exists: what is listed is committed. If everything had ended, this was the last checkpoint.
    pub(super) fn complete(&self, world: &mut World) {
        let Some(mut checkpoint) = world.in_flight.take() else { return };
        for transaction in checkpoint.listed.take().unwrap_or_default() {
            world.output.add(transaction);
        }
        world.pending.clear();
        let has_ended = matches!(checkpoint.operator, Some((_, Ending::Ended)));
        world.is_finished = has_ended && checkpoint.sources.iter().all(|s| s.has_ended);
        world.restored_from = checkpoint;
    }

    /// An ended source sends `EndOfData` again; an ended operator does not call `on_end` again; one that was in the middle begins anew.
    pub(super) fn crash(&self, world: &mut World) {
        let from = world.restored_from.clone();
        let (count, ending) = from.operator.unwrap_or_default();
        let ending = match ending {
            Ending::Ended if self.weakening != Weakening::OnEndAfterRestore => Ending::Ended,
            _ => Ending::Running,
        };
        let sources = from.sources.map(|source| Source { has_ended: false, ..source });
        *world = World {
            sources,
            operator: Operator { count, ending, ..Operator::default() },
            restored_from: from,
            output: world.output,
            crashes: world.crashes + 1,
            aborts: world.aborts,
            open: Output::default(),
            ..World::default()
        };
    }
}
