//! Many durations, and their percentiles.
//!
//! Owns: a histogram from a nanosecond to an hour, exact to a thousandth. Does not own: who measures. Runs on: any thread.

use std::time::Duration;

use hdrhistogram::Histogram;

/// An hour.
const LONGEST_NS: u64 = 3_600_000_000_000;
/// Digits of a figure that are kept.
const DIGITS: u8 = 3;

/// Durations.
#[derive(Clone, Debug)]
pub(crate) struct Samples(Histogram<u64>);

impl Default for Samples {
    fn default() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_NS, DIGITS).expect("the bounds are in order"))
    }
}

impl Samples {
    /// Adds one.
    pub(crate) fn add(&mut self, span: Duration) {
        self.0.saturating_record(u64::try_from(span.as_nanos()).unwrap_or(LONGEST_NS));
    }

    /// Adds all of `other`.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.0.add(&other.0).expect("both have the same bounds");
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Milliseconds below which `percent` of them lie; `None` without samples.
    pub(crate) fn percentile_ms(&self, percent: f64) -> Option<f64> {
        (self.count() > 0).then(|| self.0.value_at_percentile(percent) as f64 / 1e6)
    }

    /// The largest, in milliseconds.
    pub(crate) fn max_ms(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.0.max() as f64 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_a_thousand_milliseconds() {
        let (mut low, mut high) = (Samples::default(), Samples::default());
        (1..=500).for_each(|ms| low.add(Duration::from_millis(ms)));
        (501..=1_000).for_each(|ms| high.add(Duration::from_millis(ms)));
        low.add_all(&high);
        assert_eq!(low.count(), 1_000);
        let near = |is: Option<f64>, wanted: f64| (is.unwrap() - wanted).abs() <= wanted / 500.0;
        assert!(near(low.percentile_ms(50.0), 500.0), "{:?}", low.percentile_ms(50.0));
        assert!(near(low.percentile_ms(99.0), 990.0), "{:?}", low.percentile_ms(99.0));
        assert!(near(low.max_ms(), 1_000.0));
        assert_eq!(Samples::default().percentile_ms(99.0), None);
    }
}
