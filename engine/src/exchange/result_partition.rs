//! The end of a chain that leads to other subtasks: routes records into one buffer per channel and sends batches.
//!
//! A batch leaves when it is full, when it is old enough, or before a control element. A channel without credit keeps what it
//! could not send in a queue; as long as any queue holds something, the chain is blocked. The overdraft is so at most one batch
//! per channel plus the output of one call of a user function (here: the one batch that was pushed), asserted in debug builds.
//!
//! Owns: buffers and queues. Does not own: credits. Runs on: the sending slot.

use std::collections::VecDeque;

use tidegate_state::{MaxParallelism, fault_point};

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
    /// Buffers that have become full, on their way to their channel's queue; empty between two calls.
    full: Vec<(usize, Batch<T>)>,
    channels: Vec<OutChannel<T>>,
    /// Since when a record has been waiting in a buffer.
    oldest: Option<Moment>,
    /// A watermark that waits for the records before it: watermarks coalesce, and do not cut batches.
    watermark: Option<EventTime>,
    closed: bool,
}

#[derive(Debug)]
struct OutChannel<T> {
    queue: VecDeque<Element<T>>,
    sender: ChannelSender<T>,
}

impl<T> OutChannel<T> {
    fn send(&mut self) -> bool {
        while let Some(element) = self.queue.pop_front() {
            if let Err(element) = self.sender.try_send(element) {
                self.queue.push_front(element);
                return false;
            }
        }
        true
    }

    /// Queues an element; a watermark takes the place of one that has not been sent.
    fn put(&mut self, element: Element<T>) {
        if let (Element::Watermark(_), Some(last @ Element::Watermark(_))) = (&element, self.queue.back_mut())
        {
            *last = element;
        } else {
            self.queue.push_back(element);
        }
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
        let channels =
            senders.into_iter().map(|sender| OutChannel { queue: VecDeque::new(), sender }).collect();
        let buffers = (0..count).map(|_| Batch::default()).collect();
        let router = Router::new(partitioner, max_parallelism, count, subtask);
        Self { router, buffers, full: Vec::new(), channels, oldest: None, watermark: None, closed: false }
    }

    fn flush_all(&mut self) {
        for (buffer, channel) in self.buffers.iter_mut().zip(&mut self.channels) {
            if !buffer.is_empty() {
                channel.put(Element::Records(std::mem::take(buffer)));
            }
        }
        self.oldest = None;
        if let Some(at) = self.watermark.take() {
            for channel in &mut self.channels {
                channel.put(Element::Watermark(at));
            }
        }
    }

    fn send(&mut self) -> Flow {
        let mut all = true;
        for channel in &mut self.channels {
            all &= channel.send();
        }
        if all { Flow::Idle } else { Flow::Blocked }
    }

    fn broadcast(&mut self, element: &Element<T>) {
        self.flush_all();
        for channel in &mut self.channels {
            channel.put(element.clone());
        }
        self.send();
    }

    fn assert_overdraft(&self, batch_records: usize) {
        if cfg!(debug_assertions) {
            let queued: usize = self.channels.iter().flat_map(|c| &c.queue).map(records_in).sum();
            let limit = batch_records * (self.channels.len() + 1);
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
        Ok(self.send())
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
        let finished = self.closed && self.channels.iter().all(|c| c.queue.is_empty());
        StageStatus { recovered: true, canceled: true, finished }
    }
}

impl<T: Clone + 'static> Stage<T> for ResultPartition<T> {
    fn push(&mut self, element: StageElement<T>, cx: &mut StageContext) -> Result<(), TaskFailure> {
        match element {
            StageElement::Records(batch) => {
                self.router.route(batch, &mut self.buffers, cx.limits.batch_records, &mut self.full);
                for (channel, batch) in self.full.drain(..) {
                    self.channels[channel].put(Element::Records(batch));
                }
                if self.oldest.is_none() && self.buffers.iter().any(|b| !b.is_empty()) {
                    self.oldest = Some(cx.now);
                }
                self.send();
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
