//! A head that reads channels.
//!
//! Owns: an input gate and the chain behind it. Does not own: alignment (the gate does). Runs on: the slot's thread.

use super::head::{Head, Taken};
use crate::element::CheckpointBarrier;
use crate::exchange::InputGate;
use crate::ids::CheckpointId;
use crate::operator::{AnyStage, OperatorPart, Stage, StageContext, StageElement};
use crate::taskworker::mail::{MailBody, TaskFailure};

/// Head of a subtask whose input comes from other subtasks.
pub struct GateHead<T> {
    gate: InputGate<T>,
    chain: Box<dyn Stage<T>>,
    records_in: u64,
}

impl<T> std::fmt::Debug for GateHead<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GateHead").field("records_in", &self.records_in).finish_non_exhaustive()
    }
}

impl<T: 'static> GateHead<T> {
    /// Puts `chain` behind `gate`.
    pub fn new(gate: InputGate<T>, chain: Box<dyn Stage<T>>) -> Self {
        Self { gate, chain, records_in: 0 }
    }
}

impl<T: 'static> Head for GateHead<T> {
    fn chain(&mut self) -> &mut dyn AnyStage {
        &mut *self.chain
    }

    fn note(&mut self) -> bool {
        self.gate.note()
    }

    fn awaits_barrier(&self) -> bool {
        self.gate.awaited().is_some()
    }

    fn take_barrier(&mut self) -> Option<CheckpointBarrier> {
        self.gate.take_aligned()
    }

    fn take_declined(&mut self) -> Vec<CheckpointId> {
        self.gate.take_declined()
    }

    fn take_input(&mut self, cx: &mut StageContext) -> Result<Taken, TaskFailure> {
        let Some(element) = self.gate.next_element() else { return Ok(Taken::Nothing) };
        let taken = match &element {
            StageElement::EndOfData => Taken::EndOfData,
            StageElement::Records(batch) => {
                self.records_in += batch.len() as u64;
                Taken::Element
            }
            _ => Taken::Element,
        };
        self.chain.push(element, cx)?;
        Ok(taken)
    }

    fn freeze(&mut self, _barrier: &CheckpointBarrier, _cx: &mut StageContext) -> Option<OperatorPart> {
        None
    }

    fn source_mail(&mut self, _mail: MailBody) -> Result<(), TaskFailure> {
        Ok(())
    }

    fn is_source(&self) -> bool {
        false
    }

    fn is_closed(&self) -> bool {
        self.gate.is_closed()
    }

    fn notify_complete(&mut self, _id: CheckpointId) {}

    fn records_in(&self) -> u64 {
        self.records_in
    }
}
