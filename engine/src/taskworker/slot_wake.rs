//! How a slot's thread parks when none of its subtasks can move, and how others wake it for one of them.
//!
//! One byte has three values: *running*, *notified*, *parked*. A waker swaps in *notified* and unparks the thread if it was *parked*.
//! Parking is one compare-and-exchange from *running* to *parked*: it fails if anything was notified since the last park, so what
//! arrived after the last look at the queues is looked at before the thread sleeps. All three steps are read-modify-writes of
//! one byte, so they have one order, and the element that a waker put into a queue before its swap is seen by whoever reads that
//! swap. A notification that came while the thread was stepping costs one more round, never a lost wake-up.
//!
//! A thread with hundreds of subtasks steps only those for which something has arrived: each has a byte of its own, which a waker
//! sets *before* it notifies the thread. To the thread that byte is one more thing that can arrive, so the same argument holds.
//!
//! Checked with `loom`, on this file: `tests/loom` (the form with a load and a store in place of the exchange loses wake-ups there).
//!
//! Owns: the bytes and the thread. Does not own: queues. Runs on: any thread wakes, the slot's thread parks.

use std::sync::Arc;
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

/// Wakes a slot's thread for one of its subtasks.
#[derive(Debug)]
pub struct SubtaskWake {
    ready: AtomicU8,
    slot: Arc<SlotWake>,
}

impl SubtaskWake {
    /// For a subtask that has not been stepped yet: it is ready.
    pub fn new(slot: Arc<SlotWake>) -> Self {
        Self { ready: AtomicU8::new(NOTIFIED), slot }
    }

    /// Says that something has arrived for the subtask. From any thread.
    pub fn notify(&self) {
        self.ready.swap(NOTIFIED, Ordering::AcqRel);
        self.slot.notify();
    }

    /// Whether anything has arrived since the last call. On the slot's thread, right before the step.
    pub fn take(&self) -> bool {
        self.ready.swap(RUNNING, Ordering::AcqRel) == NOTIFIED
    }
}
