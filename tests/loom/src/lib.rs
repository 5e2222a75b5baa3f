//! The protocols between slots under `loom`: park and wake, and the credits of a channel, in every interleaving.
//!
//! Owns: the `loom` side of the primitives and the tests. Does not own: the protocols: they are the production source files,
//! included by path. Runs on: `cargo test -p tidegate-loom-tests`.
#![cfg(test)]

mod sync {
    //! The primitives of `engine/src/sync.rs`, from `loom`.

    use std::sync::atomic::{AtomicBool, Ordering as StdOrdering};
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::{AtomicU8, AtomicU32, Ordering};
    pub(crate) use loom::thread::{Thread, current};

    /// Set by the test that shows that a weaker form is noticed.
    pub(crate) static BROKEN: AtomicBool = AtomicBool::new(false);

    /// Parks for ever: a time limit would hide a lost wake-up.
    pub(crate) fn park_timeout(_span: Duration) {
        loom::thread::park();
    }

    pub(crate) fn broken() -> bool {
        BROKEN.load(StdOrdering::Relaxed)
    }
}

#[allow(unreachable_pub, reason = "in its own crate it is public")]
#[path = "../../../engine/src/taskworker/slot_wake.rs"]
mod slot_wake;

#[allow(unreachable_pub, reason = "in its own crate it is public")]
#[path = "../../../engine/src/exchange/credits.rs"]
mod credits;

use std::sync::atomic::Ordering as StdOrdering;
use std::time::Duration;

use credits::Credits;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, Ordering};
use slot_wake::{SlotWake, SubtaskWake};

/// Two wakers put one element each; the slot parks until it has seen both. A lost wake-up is a deadlock, which loom reports.
fn two_wakers_and_a_slot() {
    loom::model(|| {
        let wake = Arc::new(SlotWake::of_current_thread());
        let queue = Arc::new(AtomicU8::new(0));
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let (wake, queue) = (Arc::clone(&wake), Arc::clone(&queue));
                loom::thread::spawn(move || {
                    queue.fetch_add(1, Ordering::Relaxed);
                    wake.notify();
                })
            })
            .collect();
        while queue.load(Ordering::Relaxed) < 2 {
            wake.park(Duration::MAX);
        }
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

/// A channel of two batches; the sender has one under way, sends another and wants to send a third, while the receiver takes up
/// the first. A sender that parks although there is room again is a deadlock, which loom reports.
fn a_sender_without_credit_and_a_receiver() {
    loom::model(|| {
        let wake = Arc::new(SlotWake::of_current_thread());
        let credits = Arc::new(Credits::new(2));
        assert!(credits.take());
        let receiver = {
            let (wake, credits) = (Arc::clone(&wake), Arc::clone(&credits));
            loom::thread::spawn(move || {
                if credits.give_back(2) {
                    wake.notify();
                }
            })
        };
        let mut to_send = 2;
        while to_send > 0 {
            if credits.take() { to_send -= 1 } else { wake.park(Duration::MAX) }
        }
        receiver.join().unwrap();
        assert!(!credits.any(), "two are under way");
    });
}

#[test]
fn no_wake_up_is_lost() {
    two_wakers_and_a_slot();
}

/// Loses a wake-up, which loom reports by ending the process; run by the test below.
#[test]
#[ignore = "fails on purpose, in a process of its own"]
fn the_weaker_form() {
    sync::BROKEN.store(true, StdOrdering::Relaxed);
    two_wakers_and_a_slot();
}

/// A thread with two subtasks, each of which waits for one element; it steps a subtask only if it was notified for it.
#[test]
fn no_wake_up_of_a_subtask_is_lost() {
    loom::model(|| {
        let slot = std::sync::Arc::new(SlotWake::of_current_thread());
        let subtasks: Vec<_> = (0..2)
            .map(|_| {
                let wake = Arc::new(SubtaskWake::new(std::sync::Arc::clone(&slot)));
                (wake, Arc::new(AtomicU8::new(0)))
            })
            .collect();
        let senders: Vec<_> = subtasks
            .iter()
            .map(|(wake, queue)| {
                let (wake, queue) = (Arc::clone(wake), Arc::clone(queue));
                loom::thread::spawn(move || {
                    queue.store(1, Ordering::Relaxed);
                    wake.notify();
                })
            })
            .collect();
        let mut got = [false; 2];
        loop {
            for ((wake, queue), got) in subtasks.iter().zip(&mut got) {
                if wake.take() {
                    *got |= queue.load(Ordering::Relaxed) == 1;
                }
            }
            if got == [true; 2] {
                break;
            }
            slot.park(Duration::MAX);
        }
        for sender in senders {
            sender.join().unwrap();
        }
    });
}

#[test]
fn no_credit_is_lost() {
    a_sender_without_credit_and_a_receiver();
}

/// As above, for credits.
#[test]
#[ignore = "fails on purpose, in a process of its own"]
fn the_weaker_credits() {
    sync::BROKEN.store(true, StdOrdering::Relaxed);
    a_sender_without_credit_and_a_receiver();
}

#[test]
fn a_load_and_a_store_in_place_of_the_exchange_lose_a_wake_up() {
    goes_noticed("the_weaker_form");
}

#[test]
fn a_look_before_the_addition_loses_a_wake_up() {
    goes_noticed("the_weaker_credits");
}

fn goes_noticed(weaker: &str) {
    let tests = std::env::current_exe().unwrap();
    let run = std::process::Command::new(tests)
        .args(["--ignored", "--exact", weaker])
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success() && said.contains("deadlock"), "went unnoticed: {said}");
}
