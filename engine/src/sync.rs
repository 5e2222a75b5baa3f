//! The primitives that the protocols between slots are built from: park and wake, and credits.
//!
//! Owns: which library they come from: the standard library here, `loom` in the crate that checks them by including the
//! same source files. Does not own: the protocols ([`crate::taskworker::slot_wake`], [`crate::exchange::credits`]). Runs on: everywhere.

pub(crate) use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
pub(crate) use std::thread::{Thread, current};

use std::time::Duration;

/// Parks the calling thread until it is unparked, at most for `span`.
pub(crate) fn park_timeout(span: Duration) {
    std::thread::park_timeout(span);
}

/// Whether the protocol is to be broken on purpose; only ever so under `loom`.
pub(crate) const fn broken() -> bool {
    false
}
