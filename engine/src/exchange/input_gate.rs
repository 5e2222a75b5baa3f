//! All input channels of one subtask.
//!
//! Elements are taken from the inbox into one queue per channel ([`ChannelQueues`], bounded by the channels' credits). Barriers at the head of a
//! queue are *noted* at once, also while the chain has an element in hand; the aligned one waits in `aligned` until the chain is
//! idle. A channel held by alignment keeps its elements in its queue.
//!
//! Owns: queues, alignment, the watermark valve, which channel comes next. Does not own: the chain. Runs on: the receiving slot.

use super::barrier_aligner::{BarrierAligner, BarrierOutcome};
use super::channel_queues::ChannelQueues;
use super::inbox::Inbox;
use super::watermark_valve::{ValveOutput, WatermarkValve};
#[cfg(debug_assertions)]
use crate::element::grammar::ChannelGrammar;
use crate::element::{CheckpointBarrier, Element};
use crate::ids::CheckpointId;
use crate::mutation::{self, Mutation};
use crate::operator::StageElement;

/// The gate.
#[derive(Debug)]
pub struct InputGate<T> {
    inbox: Inbox<T>,
    queues: ChannelQueues<Element<T>>,
    channels: Vec<Channel>,
    aligner: BarrierAligner,
    valve: WatermarkValve,
    next: usize,
    aligned: Option<CheckpointBarrier>,
    declined: Vec<CheckpointId>,
    closed: usize,
}

#[derive(Debug, Default)]
struct Channel {
    /// Only kept in debug builds.
    #[cfg(debug_assertions)]
    grammar: ChannelGrammar,
    /// `EndOfData` has come; only barriers follow.
    ended: bool,
}

impl<T> InputGate<T> {
    /// A gate over an inbox.
    pub fn new(inbox: Inbox<T>) -> Self {
        let count = inbox.channels();
        Self {
            inbox,
            queues: ChannelQueues::new(count),
            channels: (0..count).map(|_| Channel::default()).collect(),
            aligner: BarrierAligner::new(count),
            valve: WatermarkValve::new(count),
            next: 0,
            aligned: None,
            declined: Vec::new(),
            closed: 0,
        }
    }

    /// Takes in what has arrived and notes barriers at the heads. `true` if anything changed.
    pub fn note(&mut self) -> bool {
        let mut any = false;
        while let Some((channel, element)) = self.inbox.try_recv() {
            any = true;
            self.put(channel as usize, element);
        }
        if !self.queues.all_empty() {
            for index in 0..self.channels.len() {
                any |= self.note_head(index);
            }
        }
        any
    }

    /// A watermark takes the place of one that stands right before it: a held channel's queue is bounded by its credits.
    fn put(&mut self, index: usize, element: Element<T>) {
        #[cfg(debug_assertions)]
        {
            let checked = self.channels[index].grammar.check(&element);
            assert!(checked.is_ok(), "channel grammar: {checked:?}");
        }
        match (&element, self.queues.back_mut(index)) {
            (Element::Watermark(_), Some(last @ Element::Watermark(_))) => *last = element,
            _ => self.queues.push_back(index, element),
        }
    }

    /// Takes barriers from the head of one channel as long as it is not held and no snapshot is due.
    fn note_head(&mut self, index: usize) -> bool {
        let mut any = false;
        while self.aligned.is_none() && !self.aligner.holds(index) {
            let Some(Element::Barrier(barrier)) = self.queues.front(index) else { break };
            let barrier = *barrier;
            self.queues.pop_front(index);
            if self.channels[index].ended && mutation::on(Mutation::EndedChannelNotAligned) {
                continue;
            }
            let outcome = self.aligner.on_barrier(index, barrier);
            self.on_outcome(outcome);
            any = true;
        }
        any
    }

    fn on_outcome(&mut self, outcome: BarrierOutcome) {
        if let Some(barrier) = outcome.declined {
            self.declined.push(barrier.id);
        }
        if let Some(barrier) = outcome.aligned {
            debug_assert!(self.aligned.is_none(), "two aligned barriers at once");
            self.aligned = Some(barrier);
        }
    }

    /// The barrier that has come on every channel and waits for the chain. Taking it lets the channels go on.
    pub fn take_aligned(&mut self) -> Option<CheckpointBarrier> {
        self.aligned.take()
    }

    /// The barrier that is still being aligned, or waits for the chain.
    pub fn awaited(&self) -> Option<&CheckpointBarrier> {
        self.aligned.as_ref().or_else(|| self.aligner.awaited())
    }

    /// Checkpoints whose alignment a later barrier has ended. (Their barrier is not sent on: the later one is, and takes its place.)
    pub fn take_declined(&mut self) -> Vec<CheckpointId> {
        std::mem::take(&mut self.declined)
    }

    /// Whether every channel has closed.
    pub fn is_closed(&self) -> bool {
        self.closed == self.channels.len()
    }

    /// The next element for the chain. Called only when the chain is idle and no aligned barrier waits.
    pub fn next_element(&mut self) -> Option<StageElement<T>> {
        debug_assert!(self.aligned.is_none(), "a record overtook an aligned barrier");
        if self.queues.all_empty() {
            return None;
        }
        for _ in 0..self.channels.len() {
            let index = self.next;
            self.next = (self.next + 1) % self.channels.len();
            while !self.aligner.holds(index) && self.aligned.is_none() {
                if self.note_head(index) {
                    continue;
                }
                let Some(element) = self.queues.pop_front(index) else { break };
                if let Some(out) = self.take(index, element) {
                    return Some(out);
                }
            }
            if self.aligned.is_some() {
                return None;
            }
        }
        None
    }

    fn take(&mut self, index: usize, element: Element<T>) -> Option<StageElement<T>> {
        let output = match element {
            Element::Records(batch) => {
                self.inbox.give_back(u32::try_from(index).unwrap_or(u32::MAX));
                return Some(StageElement::Records(batch));
            }
            Element::Watermark(at) => self.valve.on_watermark(index, at),
            Element::Status(status) => self.valve.on_status(index, status),
            Element::EndOfData => {
                self.channels[index].ended = true;
                self.valve.on_end(index)
            }
            Element::Barrier(_) => ValveOutput::Nothing, // noted before
            Element::EndOfPartition => {
                self.closed += 1;
                let outcome = self.aligner.on_closed(index);
                self.on_outcome(outcome);
                ValveOutput::Nothing
            }
        };
        match output {
            ValveOutput::Nothing => None,
            ValveOutput::Watermark(at) => Some(StageElement::Watermark(at)),
            ValveOutput::Status(status) => Some(StageElement::Status(status)),
            ValveOutput::EndOfData => Some(StageElement::EndOfData),
        }
    }
}

#[cfg(test)]
mod all_orders;
#[cfg(test)]
mod tests;
