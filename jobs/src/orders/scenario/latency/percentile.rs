//! Percentiles of sorted figures, by nearest rank.
//!
//! Owns: the rank. Does not own: the figures. Runs on: anywhere. Pure.

/// The smallest figure that so many percent of all are not above; none of none.
pub(crate) fn percentile(sorted: &[u64], percent: u64) -> Option<u64> {
    let rank = (sorted.len() as u64 * percent).div_ceil(100).max(1);
    sorted.get(usize::try_from(rank - 1).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_go_by_nearest_rank() {
        let figures: Vec<_> = (1..=200).collect();
        assert_eq!(
            [50, 99, 100].map(|percent| percentile(&figures, percent)),
            [Some(100), Some(198), Some(200)]
        );
        assert_eq!(percentile(&[7], 1), Some(7));
        assert_eq!(percentile(&[], 50), None);
    }
}
