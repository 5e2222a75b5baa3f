//! The park and wake protocol of slots under `loom`: every interleaving of a waker and a parking thread.
//!
//! Owns: the `loom` side of the primitives and the two tests. Does not own: the protocol: it is the production source file,
//! included by path. Runs on: `cargo test -p tidegate-loom-tests`.
#![cfg(test)]

mod sync {
    //! The primitives of `engine/src/sync.rs`, from `loom`.

    use std::sync::atomic::{AtomicBool, Ordering as StdOrdering};
    use std::time::Duration;

    pub(crate) use loom::sync::atomic::{AtomicU8, Ordering};
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

use std::sync::atomic::Ordering as StdOrdering;
use std::time::Duration;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU8, Ordering};
use slot_wake::SlotWake;

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

#[test]
fn a_load_and_a_store_in_place_of_the_exchange_lose_a_wake_up() {
    let tests = std::env::current_exe().unwrap();
    let run = std::process::Command::new(tests)
        .args(["--ignored", "--exact", "the_weaker_form"])
        .env("RUST_BACKTRACE", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(!run.status.success() && said.contains("deadlock"), "went unnoticed: {said}");
}
