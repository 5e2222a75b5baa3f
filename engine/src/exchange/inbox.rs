//! The inbox of one receiving subtask, and the senders of its channels.
//!
//! Owns: credits (batches in flight per channel) and the queue. Does not own: what a sender does when it has no credit
//! (see [`super::result_partition`]). Runs on: both slots; the only state they share is the queue and the credits.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use crossbeam_channel::{Receiver, Sender, TrySendError};

use crate::element::Element;
use crate::io::Waker;

/// Control elements (barriers, watermarks, ends) that fit into a channel beside its batches. They take no credit.
const CONTROL_ROOM: usize = 16;

struct Credits {
    left: AtomicU32,
    /// The sending slot, which may wait for a credit.
    sender: Waker,
}

/// The sending end of one channel.
pub struct ChannelSender<T> {
    channel: u32,
    queue: Sender<(u32, Element<T>)>,
    credits: Arc<Credits>,
    receiver: Waker,
}

/// The receiving end of all channels of one subtask.
pub struct Inbox<T> {
    queue: Receiver<(u32, Element<T>)>,
    credits: Vec<Arc<Credits>>,
}

impl<T> std::fmt::Debug for ChannelSender<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChannelSender").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl<T> std::fmt::Debug for Inbox<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inbox").field("channels", &self.credits.len()).finish_non_exhaustive()
    }
}

impl<T> Inbox<T> {
    /// An inbox of one channel per sending slot, each with room for `credits` batches; `receiver` wakes the receiving slot.
    pub fn new(sending: &[Waker], credits: u32, receiver: &Waker) -> (Vec<ChannelSender<T>>, Self) {
        let room = sending.len() * (credits as usize + CONTROL_ROOM);
        let (tx, rx) = crossbeam_channel::bounded(room.max(1));
        let credit = |sender: &Waker| Credits { left: AtomicU32::new(credits), sender: Arc::clone(sender) };
        let credits: Vec<_> = sending.iter().map(|sender| Arc::new(credit(sender))).collect();
        let senders = credits
            .iter()
            .zip(0..)
            .map(|(credits, channel)| ChannelSender {
                channel,
                queue: tx.clone(),
                credits: Arc::clone(credits),
                receiver: Arc::clone(receiver),
            })
            .collect();
        (senders, Self { queue: rx, credits })
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.credits.len()
    }

    /// The next element that has arrived.
    pub fn try_recv(&self) -> Option<(u32, Element<T>)> {
        self.queue.try_recv().ok()
    }

    /// A batch of this channel was taken up: its sender may send another one.
    pub fn give_back(&self, channel: u32) {
        if let Some(credits) = self.credits.get(channel as usize)
            && credits.left.fetch_add(1, Ordering::AcqRel) == 0
        {
            credits.sender.wake();
        }
    }
}

impl<T> ChannelSender<T> {
    /// Sends an element, or hands it back: no credit for a batch, or the receiver has not looked for long.
    ///
    /// # Errors
    /// The element.
    #[allow(clippy::result_large_err, reason = "the element goes back to its queue, nothing is lost")]
    pub fn try_send(&self, element: Element<T>) -> Result<(), Element<T>> {
        let takes_credit = matches!(element, Element::Records(_));
        if takes_credit && !self.take_credit() {
            return Err(element);
        }
        match self.queue.try_send((self.channel, element)) {
            Ok(()) => {
                self.receiver.wake();
                Ok(())
            }
            Err(TrySendError::Full((_, element))) => {
                if takes_credit {
                    self.credits.left.fetch_add(1, Ordering::Release);
                }
                Err(element)
            }
            // The receiving subtask is gone: its failure ends the attempt, nothing is lost that a restore does not bring back.
            Err(TrySendError::Disconnected(_)) => Ok(()),
        }
    }

    fn take_credit(&self) -> bool {
        // Only this sender takes; the receiver only gives.
        let left = self.credits.left.load(Ordering::Acquire);
        if left == 0 {
            return false;
        }
        self.credits.left.fetch_sub(1, Ordering::Acquire);
        true
    }
}

#[cfg(test)]
mod tests;
