//! Random numbers that belong to one record.
//!
//! Owns: the sequence. Does not own: the seed. Runs on: slot threads. Not for secrets.

/// A small generator (the splitmix64 sequence), started from a seed and a record's index.
#[derive(Clone, Debug)]
pub struct Random {
    state: u64,
}

impl Random {
    /// The sequence of record `index` under `seed`.
    pub fn of(seed: u64, index: u64) -> Self {
        let mut start = Self { state: seed };
        let seed = start.next_u64();
        Self { state: seed ^ index.wrapping_mul(0xd1b5_4a32_d192_ed03) }
    }

    /// Any number.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`; 0 if `bound` is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        let product = u128::from(self.next_u64()) * u128::from(bound);
        u64::try_from(product >> 64).unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_same_numbers_at_every_run() {
        let first: Vec<u64> = (0..5).map(|i| Random::of(7, i).next_u64()).collect();
        let again: Vec<u64> = (0..5).map(|i| Random::of(7, i).next_u64()).collect();
        assert_eq!(first, again);
        assert_ne!(first[0], Random::of(8, 0).next_u64());
    }

    #[test]
    fn below_is_spread_and_bounded() {
        let mut seen = [0_u32; 10];
        for index in 0..10_000 {
            seen[usize::try_from(Random::of(1, index).below(10)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|n| (850..1_150).contains(n)), "{seen:?}");
        assert_eq!(Random::of(1, 1).below(0), 0);
    }
}
