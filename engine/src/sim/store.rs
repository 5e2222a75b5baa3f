//! Faults of a simulated object store: late, refused, or applied although the answer is an error.
//!
//! Owns: the policy. Does not own: the store ([`object_store::memory::InMemory`] under
//! [`tidegate_state::storage::FaultyStore`]). Runs on: the simulation's thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use object_store::path::Path;
use tidegate_state::storage::{FaultAction, StoreFaults, StoreOp};

use super::clock::SimClock;
use super::rng::Rng;

/// Draws latencies and faults.
#[derive(Debug)]
pub struct SimStoreFaults {
    clock: Arc<SimClock>,
    /// Guards the stream of numbers; one thread uses it.
    rng: Mutex<Rng>,
    /// The longest latency of one side of an operation, in microseconds.
    latency_us_max: u64,
    /// One in so many puts fails.
    fault_one_in: u64,
    /// Faults have stopped: only latencies remain.
    pub calm: Arc<AtomicBool>,
    /// Puts that were refused.
    pub refused: AtomicU64,
    /// Puts that were applied and answered with an error.
    pub applied_with_error: AtomicU64,
}

impl SimStoreFaults {
    /// A policy.
    pub fn new(clock: Arc<SimClock>, rng: Rng, latency_us_max: u64, fault_one_in: u64) -> Self {
        Self {
            clock,
            rng: Mutex::new(rng),
            latency_us_max,
            fault_one_in,
            calm: Arc::default(),
            refused: AtomicU64::new(0),
            applied_with_error: AtomicU64::new(0),
        }
    }

    fn late(&self, action: FaultAction) -> BoxFuture<'static, FaultAction> {
        let span = self.rng.lock().unwrap_or_else(PoisonError::into_inner).below(self.latency_us_max + 1);
        let sleep = self.clock.sleep(Duration::from_micros(span));
        Box::pin(async move {
            sleep.await;
            action
        })
    }

    fn strikes(&self, op: StoreOp) -> bool {
        let puts = matches!(op, StoreOp::Put | StoreOp::Create);
        let calm = self.calm.load(Ordering::Relaxed);
        puts && !calm && self.rng.lock().unwrap_or_else(PoisonError::into_inner).one_in(self.fault_one_in)
    }
}

impl StoreFaults for SimStoreFaults {
    fn before(&self, op: StoreOp, _path: &Path) -> BoxFuture<'static, FaultAction> {
        if self.strikes(op) {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return self.late(FaultAction::Fail);
        }
        self.late(FaultAction::Proceed)
    }

    fn after(&self, op: StoreOp, _path: &Path, succeeded: bool) -> BoxFuture<'static, FaultAction> {
        if succeeded && self.strikes(op) {
            self.applied_with_error.fetch_add(1, Ordering::Relaxed);
            return self.late(FaultAction::Fail);
        }
        self.late(FaultAction::Proceed)
    }
}
