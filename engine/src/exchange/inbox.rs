//! The inbox of one receiving subtask, and the senders of its channels.
//!
//! **Bound.** A channel has room for so many batches in flight, from its sender to the receiver's chain, and for
//! [`CONTROL_ROOM`] control elements that the receiver has not looked at: [`Credits`] of its own for each. So all channels
//! together bound the queue, which itself grows and shrinks with what is in flight: a hundred channels that carry little cost
//! little. Asserted in debug builds.
//!
//! Owns: the queue, and when a sender is woken for room. Does not own: what a sender does without room (see
//! [`super::result_partition`]). Runs on: both slots; the only state they share is the queue and the credits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_queue::SegQueue;

use super::credits::Credits;
use crate::element::Element;
use crate::io::Waker;

/// Control elements (barriers, watermarks, ends) that fit into a channel beside its batches. They take no credit of a batch.
pub const CONTROL_ROOM: u32 = 16;

struct Channel {
    batches: Credits,
    control: Credits,
    /// The sending slot, which may wait for room.
    sender: Waker,
}

struct Shared<T> {
    queue: SegQueue<(u32, Element<T>)>,
    channels: Box<[Channel]>,
    batches_max: u32,
    receiver: Waker,
    /// The receiving end is gone: what is sent now is dropped.
    gone: AtomicBool,
}

/// The sending end of one channel.
pub struct ChannelSender<T> {
    channel: u32,
    shared: Arc<Shared<T>>,
}

/// The receiving end of all channels of one subtask.
pub struct Inbox<T> {
    shared: Arc<Shared<T>>,
}

impl<T> std::fmt::Debug for ChannelSender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelSender").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("channels", &self.channels()).finish_non_exhaustive()
    }
}

impl<T> Inbox<T> {
    /// An inbox of one channel per sending slot, each with room for `credits` batches; `receiver` wakes the receiving slot.
    pub fn new(sending: &[Waker], credits: u32, receiver: &Waker) -> (Vec<ChannelSender<T>>, Self) {
        let channel = |sender: &Waker| Channel {
            batches: Credits::new(credits),
            control: Credits::new(CONTROL_ROOM),
            sender: Arc::clone(sender),
        };
        let shared = Arc::new(Shared {
            queue: SegQueue::new(),
            channels: sending.iter().map(channel).collect(),
            batches_max: credits,
            receiver: Arc::clone(receiver),
            gone: AtomicBool::new(false),
        });
        let sender = |(channel, _)| ChannelSender { channel, shared: Arc::clone(&shared) };
        ((0..).zip(sending).map(sender).collect(), Self { shared })
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.shared.channels.len()
    }

    /// The next element that has arrived.
    pub fn try_recv(&self) -> Option<(u32, Element<T>)> {
        let (index, element) = self.shared.queue.pop()?;
        if !takes_batch_credit(&element) {
            let channel = &self.shared.channels[index as usize];
            if channel.control.give_back(CONTROL_ROOM) {
                channel.sender.wake();
            }
        }
        Some((index, element))
    }

    /// A batch of this channel was taken up: its sender may send another one.
    pub fn give_back(&self, channel: u32) {
        if let Some(channel) = self.shared.channels.get(channel as usize)
            && channel.batches.give_back(self.shared.batches_max)
        {
            channel.sender.wake();
        }
    }
}

impl<T> Drop for Inbox<T> {
    /// The receiving subtask is gone: its failure ends the attempt, nothing is lost that a restore does not bring back.
    fn drop(&mut self) {
        self.shared.gone.store(true, Ordering::Release);
        while self.shared.queue.pop().is_some() {}
    }
}

impl<T> ChannelSender<T> {
    /// Whether [`ChannelSender::try_send`] would take this element. It stays true until something is sent.
    pub fn has_room(&self, element: &Element<T>) -> bool {
        self.room(element).any() || self.is_gone()
    }

    /// Sends an element, or hands it back: the channel has no room for it now. Its slot is woken when it has.
    ///
    /// # Errors
    /// The element.
    #[allow(clippy::result_large_err, reason = "the element goes back to its queue, nothing is lost")]
    pub fn try_send(&self, element: Element<T>) -> Result<(), Element<T>> {
        if self.is_gone() {
            return Ok(());
        }
        if !self.room(&element).take() {
            return Err(element);
        }
        self.shared.queue.push((self.channel, element));
        self.assert_bound();
        self.shared.receiver.wake();
        Ok(())
    }

    fn is_gone(&self) -> bool {
        self.shared.gone.load(Ordering::Acquire)
    }

    fn room(&self, element: &Element<T>) -> &Credits {
        let channel = &self.shared.channels[self.channel as usize];
        if takes_batch_credit(element) { &channel.batches } else { &channel.control }
    }

    fn assert_bound(&self) {
        if cfg!(debug_assertions) {
            let bound = self.shared.channels.len() * (self.shared.batches_max + CONTROL_ROOM) as usize;
            let queued = self.shared.queue.len();
            assert!(queued <= bound, "{queued} elements in an inbox that is bounded by {bound}");
        }
    }
}

fn takes_batch_credit<T>(element: &Element<T>) -> bool {
    matches!(element, Element::Records(_))
}

#[cfg(test)]
mod tests;
