//! The line between a client and a simulated database: late, stalling, dropping; and what arrives after its client has died.
//!
//! Owns: latency, stalls, drops, statements of dead clients. Does not own: the database. Runs on: the simulation's thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use super::clock::SimClock;
use super::coverage::{Area, SharedCoverage};
use super::rng::Rng;
use crate::api::ConnectorError;

/// Longer than any checkpoint timeout of a scenario.
pub const STALL_US: u64 = 4_000_000;
/// A statement of a dead client is executed within this time.
pub const LATE_STATEMENT_US_MAX: u64 = 20_000;

/// How bad a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LineFaults {
    /// The longest latency of one way, in microseconds.
    pub latency_us_max: u64,
    /// One way in so many takes [`STALL_US`]; checkpoints expire over it.
    pub stall_one_in: u64,
    /// How many stalls there are in all.
    pub stalls: u64,
    /// One way in so many ends with a dropped connection.
    pub drop_one_in: u64,
    /// How many drops there are in all.
    pub drops: u64,
    /// One commit in so many is answered with "retry after".
    pub retry_one_in: u64,
}

impl LineFaults {
    /// Draws how bad the line of a seed is.
    pub fn draw(rng: &mut Rng) -> Self {
        let pick = |rng: &mut Rng, of: [u64; 3]| of[usize::try_from(rng.below(3)).unwrap_or(0)];
        Self {
            latency_us_max: pick(rng, [0, 300, 2_000]),
            stall_one_in: pick(rng, [u64::MAX, 3_000, 400]),
            stalls: rng.between(0, 3),
            drop_one_in: pick(rng, [u64::MAX, 4_000, 800]),
            drops: rng.between(0, 2),
            retry_one_in: 20,
        }
    }

    /// The same latency without faults.
    #[must_use]
    pub fn without_faults(self) -> Self {
        Self { stalls: 0, drops: 0, retry_one_in: u64::MAX, ..self }
    }
}

/// Lets others go first.
async fn yield_once() {
    let mut yielded = false;
    std::future::poll_fn(|cx| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// A statement that runs on without its client.
type LateStatement = Box<dyn FnOnce() -> bool + Send>;

/// See the module. Clones share it.
#[derive(Clone)]
pub struct Line {
    inner: Arc<Inner>,
}

struct Inner {
    clock: Arc<SimClock>,
    faults: LineFaults,
    stalls_left: AtomicU64,
    drops_left: AtomicU64,
    /// Faults have stopped.
    calm: Arc<AtomicBool>,
    coverage: SharedCoverage,
    /// Guards what only one thread uses.
    state: Mutex<State>,
}

struct State {
    rng: Rng,
    late: Vec<(u64, LateStatement)>,
}

impl std::fmt::Debug for Line {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Line").field("faults", &self.inner.faults).finish_non_exhaustive()
    }
}

impl Line {
    /// A line.
    pub fn new(
        clock: Arc<SimClock>,
        rng: Rng,
        faults: LineFaults,
        calm: Arc<AtomicBool>,
        coverage: SharedCoverage,
    ) -> Self {
        let state = Mutex::new(State { rng, late: Vec::new() });
        let (stalls_left, drops_left) = (AtomicU64::new(faults.stalls), AtomicU64::new(faults.drops));
        Self { inner: Arc::new(Inner { clock, faults, stalls_left, drops_left, calm, coverage, state }) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.inner.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A number below `bound`.
    pub fn draw(&self, bound: u64) -> u64 {
        self.state().rng.below(bound)
    }

    /// Now, in microseconds.
    pub fn now(&self) -> u64 {
        self.inner.clock.micros()
    }

    /// What was come upon.
    pub fn coverage(&self) -> &SharedCoverage {
        &self.inner.coverage
    }

    /// Sleeps.
    pub async fn sleep(&self, micros: u64) {
        self.inner.clock.sleep(Duration::from_micros(micros)).await;
    }

    fn strikes(&self, one_in: u64, left: &AtomicU64) -> bool {
        if self.draw(one_in) != 0 || self.inner.calm.load(Ordering::Relaxed) {
            return false;
        }
        let before = left.load(Ordering::Relaxed);
        left.store(before.saturating_sub(1), Ordering::Relaxed);
        before > 0
    }

    /// One way between client and server.
    pub async fn way(&self) {
        let faults = self.inner.faults;
        if self.strikes(faults.stall_one_in, &self.inner.stalls_left) {
            self.inner.coverage.count(Area::Injected, "database stalled");
            return self.sleep(STALL_US).await;
        }
        let span = self.draw(faults.latency_us_max + 1);
        if span == 0 && self.draw(3) == 0 {
            return yield_once().await;
        }
        self.sleep(span).await;
    }

    /// As [`Line::way`], unless the connection drops on it.
    ///
    /// # Errors
    /// The connection dropped; whether the server has got the statement is not known.
    pub async fn way_or_drop(&self) -> Result<(), ConnectorError> {
        self.way().await;
        if self.strikes(self.inner.faults.drop_one_in, &self.inner.drops_left) {
            self.inner.coverage.count(Area::Injected, "connection dropped");
            return Err(ConnectorError::transient("the connection to the database was lost"));
        }
        Ok(())
    }

    /// Whether the server is too busy to commit now.
    pub fn is_busy(&self) -> bool {
        self.draw(self.inner.faults.retry_one_in) == 0 && !self.inner.calm.load(Ordering::Relaxed)
    }

    /// Whether a disk is full now: as often as a connection drops, and from the same stock.
    pub fn is_out_of_room(&self) -> bool {
        self.strikes(self.inner.faults.drop_one_in, &self.inner.drops_left)
    }

    /// The client of a statement has died while it was on its way: half of them are executed all the same, some time later. The
    /// statement says whether it had any effect.
    pub fn outlive(&self, statement: impl FnOnce() -> bool + Send + 'static) -> Option<u64> {
        let mut state = self.state();
        if !state.rng.one_in(2) {
            return None;
        }
        let due = self.inner.clock.micros() + state.rng.below(LATE_STATEMENT_US_MAX);
        state.late.push((due, Box::new(statement)));
        Some(due)
    }

    /// Runs something at a moment.
    pub fn at(&self, due: u64, what: impl FnOnce() + Send + 'static) {
        let statement = Box::new(move || {
            what();
            false
        });
        self.state().late.push((due, statement));
    }

    /// Executes what is due.
    pub fn settle(&self) {
        let now = self.inner.clock.micros();
        if self.state().late.iter().all(|(due, _)| *due > now) {
            return;
        }
        let (mut due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.state().late).into_iter().partition(|(due, _)| *due <= now);
        self.state().late = rest;
        due.sort_by_key(|(due, _)| *due);
        for (_, statement) in due {
            if statement() {
                self.inner.coverage.count(Area::Injected, "statement of a dead client executed");
            }
        }
    }

    /// When something is due.
    pub fn next_due(&self) -> Option<u64> {
        self.state().late.iter().map(|(due, _)| *due).min()
    }
}
