//! The end of a chain that leads to other subtasks: routes records into one buffer per channel and sends batches.
//!
//! A batch leaves when it is full, when it is old enough, or before a control element. A channel without credit keeps what it
//! could not send in a queue; as long as any queue holds something, the chain is blocked. The overdraft is so at most one batch
//! per channel plus the output of one call of a user function (here: the one batch that was pushed), asserted in debug builds.
//!
//! Owns: buffers and queues. Does not own: credits. Runs on: the sending slot.

use std::sync::Arc;

use tidegate_state::{MaxParallelism, fault_point};

use super::channel_queues::ChannelQueues;
use super::inbox::ChannelSender;
use super::partitioner::{Partitioner, Router};
use crate::clock::Moment;
use crate::element::{Batch, CheckpointBarrier, Element, EventTime};
use crate::operator::{
    AnyStage, Flow, OperatorPart, Stage, StageContext, StageControl, StageElement, StageStatus,
};
use crate::taskworker::mail::TaskFailure;

/// The stage at the sending end of an edge.
#[derive(Debug)]
pub struct ResultPartition<T> {
    router: Router<T>,
    buffers: Vec<Batch<T>>,
    /// Buffers that have become full, on their way to their channel; empty between two calls.
    full: Vec<(usize, Batch<T>)>,
    out: OutChannels<T>,
    /// Since when a record has been waiting in a buffer.
    oldest: Option<Moment>,
    /// A watermark that waits for the records before it: watermarks coalesce, and do not cut batches.
    watermark: Option<EventTime>,
    closed: bool,
}

#[derive(Debug)]
struct OutChannels<T> {
    senders: Vec<ChannelSender<T>>,
    /// What found no room.
    queues: ChannelQueues<Element<T>>,
}

impl<T> OutChannels<T> {
    /// Sends an element, or queues it behind what waits already; a watermark takes the place of one that has not been sent.
    fn put(&mut self, channel: usize, element: Element<T>) {
        let element = match self.queues.back_mut(channel) {
            None => match self.senders[channel].try_send(element) {
                Ok(()) => return,
                Err(element) => element,
            },
            Some(last @ Element::Watermark(_)) if matches!(element, Element::Watermark(_)) => {
                *last = element;
                return;
            }
            Some(_) => element,
        };
        self.queues.push_back(channel, element);
    }

    /// Sends what has waited and finds room now.
    fn send(&mut self) -> Flow {
        if self.queues.all_empty() {
            return Flow::Idle;
        }
        for (channel, sender) in self.senders.iter().enumerate() {
            while self.queues.front(channel).is_some_and(|element| sender.has_room(element))
                && let Some(element) = self.queues.pop_front(channel)
            {
                let sent = sender.try_send(element);
                debug_assert!(sent.is_ok(), "a channel that had room had none");
            }
        }
        if self.queues.all_empty() { Flow::Idle } else { Flow::Blocked }
    }
}

impl<T: Clone + 'static> ResultPartition<T> {
    /// Sends to `senders`, one per channel. `subtask` is the sender's index.
    pub fn new(
        partitioner: Partitioner<T>,
        senders: Vec<ChannelSender<T>>,
        subtask: u32,
        max_parallelism: MaxParallelism,
    ) -> Self {
        let count = u32::try_from(senders.len()).unwrap_or(u32::MAX);
        let out = OutChannels { queues: ChannelQueues::new(senders.len()), senders };
        let buffers = (0..count).map(|_| Batch::default()).collect();
        let router = Router::new(partitioner, max_parallelism, count, subtask);
        Self { router, buffers, full: Vec::new(), out, oldest: None, watermark: None, closed: false }
    }

    fn flush_all(&mut self) {
        for (channel, buffer) in self.buffers.iter_mut().enumerate() {
            if !buffer.is_empty() {
                self.out.put(channel, Element::Records(std::mem::take(buffer)));
            }
        }
        self.oldest = None;
        if let Some(at) = self.watermark.take() {
            self.put_all(&Element::Watermark(at));
        }
    }

    fn put_all(&mut self, element: &Element<T>) {
        for channel in 0..self.buffers.len() {
            self.out.put(channel, element.clone());
        }
    }

    fn broadcast(&mut self, element: &Element<T>) {
        self.flush_all();
        self.put_all(element);
    }

    fn assert_overdraft(&self, batch_records: usize) {
        if cfg!(debug_assertions) {
            let queued: usize = self.out.queues.iter().map(records_in).sum();
            let limit = batch_records * (self.buffers.len() + 1);
            assert!(queued <= limit, "overdraft of {queued} records, at most {limit} are allowed");
        }
    }
}

fn records_in<T>(element: &Element<T>) -> usize {
    if let Element::Records(batch) = element { batch.len() } else { 0 }
}

impl<T: Clone + 'static> AnyStage for ResultPartition<T> {
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        if let Some(oldest) = self.oldest {
            let due = oldest + cx.limits.batch_age;
            if cx.now >= due {
                self.flush_all();
            } else {
                cx.wake_at(due);
            }
        }
        Ok(self.out.send())
    }

    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        _parts: &mut Vec<OperatorPart>,
        _cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        fault_point!("barrier.forward.before");
        self.broadcast(&Element::Barrier(*barrier));
        fault_point!("barrier.forward.after");
        Ok(())
    }

    fn control(&mut self, control: StageControl, _cx: &mut StageContext) -> Result<(), TaskFailure> {
        if control == StageControl::Finish && !self.closed {
            self.closed = true;
            self.broadcast(&Element::EndOfPartition);
        }
        Ok(())
    }

    fn poll(&mut self, _cx: &mut StageContext) -> Result<bool, TaskFailure> {
        Ok(false)
    }

    fn status(&self) -> StageStatus {
        let finished = self.closed && self.out.queues.all_empty();
        StageStatus { recovered: true, canceled: true, finished }
    }
}

impl<T: Clone + 'static> Stage<T> for ResultPartition<T> {
    fn push(&mut self, element: StageElement<T>, cx: &mut StageContext) -> Result<(), TaskFailure> {
        match element {
            StageElement::Records(batch) => {
                if let Some(name) = self.router.key_name() {
                    cx.operator = Arc::clone(name);
                }
                self.router.route(batch, &mut self.buffers, cx.limits.batch_records, &mut self.full);
                for (channel, batch) in self.full.drain(..) {
                    self.out.put(channel, Element::Records(batch));
                }
                if self.oldest.is_none() && self.buffers.iter().any(|b| !b.is_empty()) {
                    self.oldest = Some(cx.now);
                }
                self.assert_overdraft(cx.limits.batch_records);
            }
            StageElement::Watermark(at) => {
                self.watermark = Some(at);
                self.oldest = self.oldest.or(Some(cx.now));
            }
            StageElement::Status(status) => self.broadcast(&Element::Status(status)),
            StageElement::EndOfData => self.broadcast(&Element::EndOfData),
        }
        Ok(())
    }
}
