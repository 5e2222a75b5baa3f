//! How long to pause before a store is asked again.
//!
//! Owns: the pauses, bounded and without chance. Does not own: whether to ask again (an append asks for ever). Runs on: pure.

use std::time::Duration;

const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(5);

/// Pauses of 50 ms, doubled up to 5 s.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses {
    taken: u32,
}

impl Pauses {
    /// How many were taken.
    pub(super) fn taken(self) -> u32 {
        self.taken
    }

    /// The next one.
    pub(super) fn next(&mut self) -> Duration {
        let pause = FIRST.saturating_mul(1 << self.taken.min(16)).min(LONGEST);
        self.taken = self.taken.saturating_add(1);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound() {
        let mut pauses = Pauses::default();
        let all: Vec<_> = (0..9).map(|_| pauses.next().as_millis()).collect();
        assert_eq!(all, [50, 100, 200, 400, 800, 1600, 3200, 5000, 5000]);
        assert_eq!(pauses.taken(), 9);
    }
}
