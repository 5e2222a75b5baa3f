//! The records of `benches chain`, and its three steps.
//!
//! Owns: what each step computes. Does not own: who calls it. Runs on: plain data.

/// A record and the three steps that every candidate runs on it.
pub(super) trait ChainRecord: Clone + Send + 'static {
    /// Record `index`.
    fn make(index: u64) -> Self;
    /// The first map.
    fn first(self) -> Self;
    /// The filter.
    fn keep(&self) -> bool;
    /// The second map.
    fn second(self) -> Self;
}

impl ChainRecord for u64 {
    #[inline]
    fn make(index: u64) -> Self {
        index.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }

    #[inline]
    fn first(self) -> Self {
        self.wrapping_mul(3).wrapping_add(1)
    }

    #[inline]
    fn keep(&self) -> bool {
        self & 7 != 0
    }

    #[inline]
    fn second(self) -> Self {
        self ^ (self >> 7)
    }
}

/// A struct of 48 bytes, one of its fields on the heap.
#[derive(Clone, Debug)]
pub(super) struct Order {
    order_id: u64,
    user_id: u64,
    amount_cents: i64,
    item: String,
}

impl ChainRecord for Order {
    #[inline]
    fn make(index: u64) -> Self {
        let amount_cents = i64::from((index & 0xffff) as u16);
        Self {
            order_id: index,
            user_id: index % 1_000,
            amount_cents,
            item: String::from("a record of vinyl"),
        }
    }

    #[inline]
    fn first(mut self) -> Self {
        self.amount_cents += 250;
        self
    }

    #[inline]
    fn keep(&self) -> bool {
        self.order_id & 7 != 0 && !self.item.is_empty()
    }

    #[inline]
    fn second(mut self) -> Self {
        self.user_id ^= 0x55;
        self
    }
}

/// How many of the first `records` records pass the filter.
pub(super) fn kept<R: ChainRecord>(records: u64) -> u64 {
    // The filter looks at the lowest three bits only, and both makers run through them evenly.
    let of_eight = (0..8).filter(|index| R::make(*index).first().keep()).count() as u64;
    let rest = (0..records % 8).filter(|index| R::make(*index).first().keep()).count() as u64;
    records / 8 * of_eight + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_number_is_what_a_count_gives() {
        for records in [0, 1, 7, 8, 9, 1_000, 1_003] {
            let counted = (0..records).filter(|i| u64::make(*i).first().keep()).count() as u64;
            assert_eq!(kept::<u64>(records), counted);
            let counted = (0..records).filter(|i| Order::make(*i).first().keep()).count() as u64;
            assert_eq!(kept::<Order>(records), counted);
        }
    }

    #[test]
    fn an_order_has_48_bytes() {
        assert_eq!(size_of::<Order>(), 48);
    }
}
