//! The room that is left in one channel, shared by its two ends.
//!
//! The sending slot takes, the receiving slot gives back; nobody else does either. A sender that finds nothing left says so and is
//! stepped again when it is woken. **No wake-up is lost**: taking and giving are read-modify-writes of one number, so whoever
//! gives back sees in the *same* operation that nothing was left, and wakes. (Looking first and adding afterwards loses one: the
//! sender may take the last and park in between.)
//!
//! Checked with `loom`, on this file: `tests/loom`.
//!
//! Owns: the number. Does not own: what is bounded by it, nor waking (see [`super::inbox`]). Runs on: both slots.

use crate::sync::{AtomicU32, Ordering, broken};

/// What is left of a bound.
#[derive(Debug)]
pub struct Credits {
    left: AtomicU32,
}

impl Credits {
    /// All of `bound`.
    pub fn new(bound: u32) -> Self {
        Self { left: AtomicU32::new(bound) }
    }

    /// Whether [`Credits::take`] would succeed. Only the sender asks: nobody else takes, so it stays true until it does.
    pub fn any(&self) -> bool {
        self.left.load(Ordering::Acquire) > 0
    }

    /// Takes one, if there is one. Only the sender does.
    #[must_use]
    pub fn take(&self) -> bool {
        if !self.any() {
            return false;
        }
        self.left.fetch_sub(1, Ordering::AcqRel);
        true
    }

    /// Gives one back. `true`: nothing was left, so the sender may be waiting and has to be woken.
    #[must_use]
    pub fn give_back(&self, bound: u32) -> bool {
        if broken() {
            let left = self.left.load(Ordering::Acquire);
            self.left.fetch_add(1, Ordering::AcqRel);
            return left == 0;
        }
        let left = self.left.fetch_add(1, Ordering::AcqRel);
        debug_assert!(left < bound, "more was given back than was taken");
        left == 0
    }
}
