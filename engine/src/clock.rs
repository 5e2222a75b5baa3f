//! The only place where time is read.
//!
//! Owns: [`Clock`] and the system's implementation of it. Does not own: timers (whoever waits keeps the moment it waits for and
//! reports it to its scheduler). Runs on: everywhere. The simulation brings its own clock.

use std::sync::Arc;
use std::time::Duration;

/// Time since an arbitrary start; never goes back.
pub type Moment = Duration;

/// A source of time. No component reads a time in another way.
pub trait Clock: Send + Sync + 'static {
    /// Monotonic time since this clock's start.
    fn now(&self) -> Moment;
    /// Wall-clock time in milliseconds since 1970-01-01 00:00 UTC; may jump.
    fn wall_ms(&self) -> i64;
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// The operating system's clocks.
#[derive(Debug)]
pub struct SystemClock {
    start: std::time::Instant,
}

impl SystemClock {
    /// Starts a clock at zero.
    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    pub fn new() -> Self {
        Self { start: std::time::Instant::now() }
    }

    /// A shared system clock.
    pub fn shared() -> SharedClock {
        Arc::new(Self::new())
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Moment {
        self.start.elapsed()
    }

    #[allow(clippy::disallowed_methods, reason = "this is the clock module")]
    fn wall_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |d| i64::try_from(d.as_millis()).unwrap_or(i64::MAX))
    }
}

/// A clock that a test moves by hand.
#[derive(Debug, Default)]
pub struct ManualClock {
    micros: std::sync::atomic::AtomicU64,
}

impl ManualClock {
    /// A clock that stands at zero.
    pub fn shared() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Moves the clock on by `by`.
    pub fn advance(&self, by: Duration) {
        let micros = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.micros.fetch_add(micros, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Moment {
        Duration::from_micros(self.micros.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn wall_ms(&self) -> i64 {
        i64::try_from(self.now().as_millis()).unwrap_or(i64::MAX)
    }
}
