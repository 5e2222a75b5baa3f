//! The events of `benches keyed-sum`.
//!
//! Owns: keys and values. Does not own: who makes them, and where they go. Runs on: plain data.

use std::hash::Hash;

use tidegate_state::StateType;

/// An event: its key and its value.
pub(super) type Event<K> = (K, i64);

/// A key of one of the two types.
#[cfg(feature = "peers")]
pub(super) trait BenchKey:
    StateType + Eq + Hash + renoir::operator::DataKey + timely::ExchangeData
{
    /// The key with this number.
    fn of(number: u64) -> Self;
}

/// A key of one of the two types.
#[cfg(not(feature = "peers"))]
pub(super) trait BenchKey: StateType + Eq + Hash {
    /// The key with this number.
    fn of(number: u64) -> Self;
}

impl BenchKey for u64 {
    #[inline]
    fn of(number: u64) -> Self {
        number
    }
}

impl BenchKey for String {
    #[inline]
    fn of(number: u64) -> Self {
        const DIGITS: [char; 16] =
            ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
        let mut key = String::with_capacity(16);
        key.extend((0..16).rev().map(|place| DIGITS[(number >> (4 * place)) as usize & 0xf]));
        key
    }
}

/// How many events over how many keys.
#[derive(Clone, Copy, Debug)]
pub(super) struct Workload {
    /// Events in all.
    pub(super) events: u64,
    keys: u64,
}

impl Workload {
    /// Events over keys.
    pub(super) fn new(events: u64, keys: u64) -> Self {
        Self { events, keys }
    }

    /// Event `index`.
    #[inline]
    pub(super) fn event<K: BenchKey>(self, index: u64) -> Event<K> {
        let key = index.wrapping_mul(0x9E37_79B9_7F4A_7C15) % self.keys;
        (K::of(key), i64::from((index & 0xff) as u8))
    }

    /// The events of one of `makers` that share the work.
    #[inline]
    pub(super) fn share<K: BenchKey>(self, maker: u64, makers: u64) -> impl Iterator<Item = Event<K>> {
        // A plain range in steps: `step_by` on `u64` costs a division at its start only.
        (maker..self.events).step_by(makers as usize).map(move |index| self.event(index))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_all_makers_are_all_events() {
        let load = Workload::new(1_000, 100);
        let mut shared: Vec<Event<u64>> = (0..3).flat_map(|maker| load.share(maker, 3)).collect();
        let mut all: Vec<Event<u64>> = (0..1_000).map(|index| load.event(index)).collect();
        shared.sort_unstable();
        all.sort_unstable();
        assert_eq!(shared, all);
    }

    #[test]
    fn a_string_key_has_16_bytes() {
        assert_eq!(String::of(0x2f), "000000000000002f");
    }
}
