//! How a slot's thread parks when none of its subtasks can move, and how others wake it.
//!
//! One byte has three values: *running*, *notified*, *parked*. A waker swaps in *notified* and unparks the thread if it was *parked*.
//! Parking is one compare-and-exchange from *running* to *parked*: it fails if anything was notified since the last park, so what
//! arrived after the last look at the queues is looked at before the thread sleeps. All three steps are read-modify-writes of
//! one byte, so they have one order, and the element that a waker put into a queue before its swap is seen by whoever reads that
//! swap. A notification that came while the thread was stepping costs one more round, never a lost wake-up.
//!
//! Checked with `loom`, on this file: `tests/loom` (the form with a load and a store in place of the exchange loses wake-ups there).
//!
//! Owns: the byte and the thread. Does not own: queues. Runs on: any thread wakes, the slot's thread parks.

use std::time::Duration;

use crate::sync::{AtomicU8, Ordering, Thread, broken, current, park_timeout};

const RUNNING: u8 = 0;
const NOTIFIED: u8 = 1;
const PARKED: u8 = 2;

/// See the module.
#[derive(Debug)]
pub struct SlotWake {
    state: AtomicU8,
    thread: Thread,
}

impl SlotWake {
    /// For the calling thread.
    pub fn of_current_thread() -> Self {
        Self { state: AtomicU8::new(RUNNING), thread: current() }
    }

    /// Says that something has arrived. From any thread.
    pub fn notify(&self) {
        if self.state.swap(NOTIFIED, Ordering::AcqRel) == PARKED {
            self.thread.unpark();
        }
    }

    /// Sleeps until notified, at most for `span`; not at all if notified since the last call. Only on the thread it was made on.
    pub fn park(&self, span: Duration) {
        if broken() {
            if self.state.load(Ordering::Acquire) == NOTIFIED {
                self.state.store(RUNNING, Ordering::Release);
                return;
            }
            self.state.store(PARKED, Ordering::Release);
            park_timeout(span);
            self.state.store(RUNNING, Ordering::Release);
            return;
        }
        if self.state.compare_exchange(RUNNING, PARKED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            park_timeout(span);
        }
        self.state.swap(RUNNING, Ordering::AcqRel);
    }
}
