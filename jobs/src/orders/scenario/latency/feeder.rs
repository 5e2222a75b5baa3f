//! Fills the topic while the job runs, and puts down when each order was sent.
//!
//! Owns: the pace and the times. Does not own: the producer ([`crate::topic::produce`]).
//! Runs on: a thread of its own.

use std::thread::JoinHandle;

use super::{joined, micros};
use crate::address::servers::KafkaAddress;
use crate::generate::order_of;
use crate::scenario::ScenarioError;
use crate::scenario::stage::Set;
use crate::topic::produce::{Feed, Pace};
use tidegate_jobs::stopwatch::Stopwatch;

/// See the module.
pub(super) struct Feeder {
    thread: JoinHandle<Result<Vec<u64>, ScenarioError>>,
}

impl Feeder {
    /// Begins to send orders 1 to `orders`, `rate` a second.
    ///
    /// # Errors
    /// [`ScenarioError::Topic`].
    pub(super) fn start(
        set: &Set<'_>,
        topic: &KafkaAddress,
        orders: u64,
        rate: u64,
        clock: Stopwatch,
    ) -> Result<Self, ScenarioError> {
        let (seed, users) = (set.args.seed, set.args.users);
        let mut feed = Feed::open(topic)?;
        let thread = std::thread::spawn(move || {
            let pace = Pace::of(Some(rate));
            let mut sent_us = Vec::with_capacity(usize::try_from(orders).unwrap_or(0));
            for order_id in 1..=orders {
                pace.wait(&feed, order_id - 1);
                sent_us.push(micros(clock));
                feed.send(&order_of(seed, order_id, users))?;
            }
            feed.finish()?;
            Ok(sent_us)
        });
        Ok(Self { thread })
    }

    /// When each order was sent, in microseconds of the clock.
    ///
    /// # Errors
    /// [`ScenarioError`].
    pub(super) fn join(self) -> Result<Vec<u64>, ScenarioError> {
        joined(self.thread, "the last order sent")
    }
}
