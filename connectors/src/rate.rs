//! A limit on records per second, shared by all readers of one source in a process.
//!
//! Owns: how much of the rate has been used. Does not own: time (the caller reads it from its `Clock`), nor what is done while
//! waiting. Runs on: slot threads.

use std::sync::{Arc, Mutex, PoisonError};

use tidegate_engine::clock::Moment;

const NANOS_PER_SECOND: u128 = 1_000_000_000;
/// A pause, also a restart, is made up for by at most this many records.
const BURST_RECORDS: u64 = 1_024;

/// What a reader may do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Grant {
    /// Hand out this many records, at most what was asked for.
    Records(usize),
    /// Nothing before this moment.
    Wait(Moment),
}

/// A rate for one source. Clones share it, so that the readers of a process together keep to it.
#[derive(Clone, Debug)]
pub(crate) struct SharedRate {
    per_second: u64,
    /// Guards the moment up to which the rate is used up, in nanoseconds; `None` before the first record. A mutex and no message,
    /// since readers on several slot threads draw on it at every poll; held for a few instructions.
    used_until: Arc<Mutex<Option<u64>>>,
}

impl SharedRate {
    /// A rate of `per_second` records; 0 is refused by the sources' `validate`.
    pub(crate) fn per_second(per_second: u64) -> Self {
        Self { per_second, used_until: Arc::new(Mutex::new(None)) }
    }

    /// Records per second.
    pub(crate) fn records_per_second(&self) -> u64 {
        self.per_second
    }

    /// Asks for `want` records at `now`. Waits are long enough for 5 ms worth of records, so that batches stay worth their while.
    pub(crate) fn grant(&self, now: Moment, want: usize) -> Grant {
        let now = u64::try_from(now.as_nanos()).unwrap_or(u64::MAX);
        let quantum = (self.per_second / 200).clamp(1, BURST_RECORDS);
        let burst = (self.per_second / 20).clamp(quantum, BURST_RECORDS);
        let mut used_until = self.used_until.lock().unwrap_or_else(PoisonError::into_inner);
        let mut used = used_until.unwrap_or_else(|| now.saturating_sub(self.span(quantum)));
        // Far ahead of this clock: it was written under another clock (a job started again in one process).
        if used > now.saturating_add(1_000_000_000) {
            used = now;
        }
        used = used.max(now.saturating_sub(self.span(burst)));
        let at_least = quantum.min(want as u64);
        let free = u128::from(now.saturating_sub(used)) * u128::from(self.per_second) / NANOS_PER_SECOND;
        let free = u64::try_from(free).unwrap_or(u64::MAX);
        if free < at_least || (free == 0 && want > 0) {
            *used_until = Some(used);
            return Grant::Wait(Moment::from_nanos(used.saturating_add(self.span(at_least))));
        }
        let records = free.min(want as u64);
        *used_until = Some(used.saturating_add(self.span(records)));
        Grant::Records(usize::try_from(records).unwrap_or(want))
    }

    fn span(&self, records: u64) -> u64 {
        let nanos = (u128::from(records) * NANOS_PER_SECOND).div_ceil(u128::from(self.per_second.max(1)));
        u64::try_from(nanos).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn taken(rate: &SharedRate, now_ms: u64, want: usize) -> usize {
        match rate.grant(Duration::from_millis(now_ms), want) {
            Grant::Records(records) => records,
            Grant::Wait(_) => 0,
        }
    }

    #[test]
    fn a_second_holds_the_rate_whatever_the_steps() {
        for step_ms in [1, 3, 7, 20] {
            let rate = SharedRate::per_second(10_000);
            let mut records = 0;
            let mut now = 1_000;
            while now < 2_000 {
                records += taken(&rate, now, 1_024);
                now += step_ms;
            }
            assert!((9_700..=10_100).contains(&records), "{records} at steps of {step_ms} ms");
        }
    }

    #[test]
    fn a_long_pause_is_made_up_for_by_one_batch_at_most() {
        let rate = SharedRate::per_second(1_000_000);
        taken(&rate, 0, 1_024);
        let now = 60_000;
        let burst: usize = (0..10).map(|_| taken(&rate, now, 1_024)).sum();
        assert!(burst <= 1_024, "{burst}");
    }

    #[test]
    fn the_moment_to_wait_for_is_late_enough() {
        let rate = SharedRate::per_second(3);
        assert_eq!(taken(&rate, 1_000, 5), 1);
        let Grant::Wait(moment) = rate.grant(Duration::from_millis(1_000), 5) else { panic!("no wait") };
        assert_eq!(rate.grant(moment, 5), Grant::Records(1));
    }

    #[test]
    fn clones_share_one_rate() {
        let rate = SharedRate::per_second(100);
        let other = rate.clone();
        let mut records = 0;
        for now in 1_000..2_000 {
            records += taken(&rate, now, 1_024) + taken(&other, now, 1_024);
        }
        assert!((98..=102).contains(&records), "{records}");
    }

    #[test]
    fn a_clock_that_starts_again_does_not_stall_it() {
        let rate = SharedRate::per_second(100);
        taken(&rate, 1_000_000, 1);
        let Grant::Wait(moment) = rate.grant(Duration::ZERO, 1) else { panic!("no wait") };
        assert!(moment <= Duration::from_millis(10), "{moment:?}");
    }
}
