//! The clock of a simulation: moves only when the scheduler says so.
//!
//! Wall-clock time runs beside it and jumps, back and forth, when the scheduler says so.
//!
//! Owns: the moment, and who sleeps until when. Does not own: when it moves. Runs on: the simulation's thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use crate::clock::{Clock, Moment};

/// See the module.
#[derive(Debug, Default)]
pub struct SimClock {
    micros: AtomicU64,
    /// How far the wall clock is ahead, in milliseconds.
    wall_ahead_ms: AtomicI64,
    /// Guards the list of sleepers. One thread uses it; the lock is there because a clock must be `Sync`.
    sleepers: Mutex<Vec<(u64, Waker)>>,
}

impl SimClock {
    /// A clock at zero.
    pub fn shared() -> Arc<Self> {
        Arc::default()
    }

    /// Moves on by `micros` and wakes whoever has slept long enough.
    pub fn advance(&self, micros: u64) {
        let now = self.micros.fetch_add(micros, Ordering::Relaxed) + micros;
        let mut sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.retain(|(until, waker)| {
            if *until <= now {
                waker.wake_by_ref();
            }
            *until > now
        });
    }

    /// The next moment at which somebody wakes.
    pub fn next_sleeper(&self) -> Option<u64> {
        let sleepers = self.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.iter().map(|(until, _)| *until).min()
    }

    /// The wall clock jumps.
    pub fn jump_wall(&self, by_ms: i64) {
        self.wall_ahead_ms.fetch_add(by_ms, Ordering::Relaxed);
    }

    /// Now, in microseconds.
    pub fn micros(&self) -> u64 {
        self.micros.load(Ordering::Relaxed)
    }

    /// Sleeps for a span of simulated time.
    pub fn sleep(self: &Arc<Self>, span: Duration) -> Sleep {
        let until = self.micros() + u64::try_from(span.as_micros()).unwrap_or(u64::MAX / 2);
        Sleep { clock: Arc::clone(self), until }
    }
}

impl Clock for SimClock {
    fn now(&self) -> Moment {
        Duration::from_micros(self.micros())
    }

    fn wall_ms(&self) -> i64 {
        let micros = i64::try_from(self.micros() / 1_000).unwrap_or(i64::MAX);
        micros.saturating_add(self.wall_ahead_ms.load(Ordering::Relaxed))
    }
}

/// Ready once the clock has reached its moment.
#[derive(Debug)]
pub struct Sleep {
    clock: Arc<SimClock>,
    until: u64,
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if self.clock.micros() >= self.until {
            return Poll::Ready(());
        }
        let mut sleepers = self.clock.sleepers.lock().unwrap_or_else(PoisonError::into_inner);
        sleepers.push((self.until, cx.waker().clone()));
        Poll::Pending
    }
}
