//! Seeded pseudo-random numbers: the same seed gives the same input on every machine, today and later.
//!
//! Owns: the mixing function and its stream.
//! Does not own: what the numbers are used for.
//! Runs on: anywhere. Pure: no clock, no I/O, no global state.

/// Distance between two neighbouring states: 2^64 divided by the golden ratio, made odd.
const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// A SplitMix64 stream: small, fast, and good enough for test data; not for secrets.
#[derive(Debug, Clone)]
pub struct SplitMix64 {
    state: u64,
}

impl SplitMix64 {
    /// The stream of one seed.
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed }
    }

    /// The stream of item `index` under `seed`, so that each item can be made alone and in any order.
    pub fn for_item(seed: u64, index: u64) -> Self {
        Self { state: mix(seed).wrapping_add(mix(index.wrapping_mul(GAMMA) ^ !seed)) }
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(GAMMA);
        mix(self.state)
    }

    /// A number below `bound`, which is at least 1. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0, "there is no number below 0");
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

fn mix(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_of_seed_zero_is_the_published_one() {
        let mut stream = SplitMix64::seeded(0);
        assert_eq!(stream.next_u64(), 0xE220_A839_7B1D_CDAF);
        assert_eq!(stream.next_u64(), 0x6E78_9E6A_A1B9_65F4);
    }

    #[test]
    fn numbers_stay_below_their_bound_and_reach_all_of_it() {
        let mut stream = SplitMix64::seeded(7);
        let mut seen = [0_u32; 10];
        for _ in 0..10_000 {
            seen[stream.below(10) as usize] += 1;
        }
        assert!(seen.iter().all(|&times| (800..1_200).contains(&times)), "{seen:?}");
    }

    #[test]
    fn an_item_is_the_same_alone_and_differs_from_its_neighbour() {
        let value = |seed, index| SplitMix64::for_item(seed, index).next_u64();
        assert_eq!(value(1, 5), value(1, 5));
        assert_ne!(value(1, 5), value(1, 6));
        assert_ne!(value(1, 5), value(2, 5));
    }
}
