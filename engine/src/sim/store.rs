//! Faults of a simulated object store: late, refused, applied although the answer is an error, or listings and reads that fail.
//!
//! Owns: the policy. Does not own: the store (see [`super::floating`] under [`tidegate_state::storage::FaultyStore`]).
//! Runs on: the simulation's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::BoxFuture;
use object_store::path::Path;
use tidegate_state::storage::{FaultAction, StoreFaults, StoreOp};

use super::clock::SimClock;
use super::coverage::{Area, SharedCoverage};
use super::floating::{EntryPuts, PutFault};
use super::rng::Rng;

/// Draws latencies and faults.
#[derive(Debug)]
pub struct SimStoreFaults {
    clock: Arc<SimClock>,
    /// Guards the stream of numbers; one thread uses it.
    rng: Mutex<Rng>,
    /// The longest latency of one side of an operation, in microseconds.
    latency_us_max: u64,
    /// One in so many puts fails; reads and listings fail a quarter as often.
    fault_one_in: u64,
    /// Faults have stopped: only latencies remain.
    calm: Arc<AtomicBool>,
    puts: EntryPuts,
    coverage: SharedCoverage,
}

impl SimStoreFaults {
    /// A policy.
    pub fn new(
        clock: Arc<SimClock>,
        rng: Rng,
        latency_us_max: u64,
        fault_one_in: u64,
        calm: Arc<AtomicBool>,
        puts: EntryPuts,
        coverage: SharedCoverage,
    ) -> Self {
        Self { clock, rng: Mutex::new(rng), latency_us_max, fault_one_in, calm, puts, coverage }
    }

    fn late(&self, action: FaultAction) -> BoxFuture<'static, FaultAction> {
        let span = self.rng.lock().unwrap_or_else(PoisonError::into_inner).below(self.latency_us_max + 1);
        let sleep = self.clock.sleep(Duration::from_micros(span));
        Box::pin(async move {
            sleep.await;
            action
        })
    }

    fn strikes(&self, one_in: u64) -> bool {
        let drawn = self.rng.lock().unwrap_or_else(PoisonError::into_inner).one_in(one_in);
        drawn && !self.calm.load(Ordering::Relaxed)
    }
}

impl StoreFaults for SimStoreFaults {
    fn before(&self, op: StoreOp, path: &Path) -> BoxFuture<'static, FaultAction> {
        let (one_in, what) = match op {
            StoreOp::Put | StoreOp::Create => (self.fault_one_in, "put refused"),
            StoreOp::Get => (self.fault_one_in.saturating_mul(8), "read refused"),
            StoreOp::List => (self.fault_one_in.saturating_mul(2), "listing refused"),
            StoreOp::Delete | StoreOp::Copy => (self.fault_one_in, "deletion refused"),
        };
        if !self.strikes(one_in) {
            return self.late(FaultAction::Proceed);
        }
        if op == StoreOp::Create {
            self.puts.faulted(path, PutFault::Refused);
        }
        self.coverage.count(Area::Injected, what);
        self.late(FaultAction::Fail)
    }

    fn after(&self, op: StoreOp, path: &Path, succeeded: bool) -> BoxFuture<'static, FaultAction> {
        let put = matches!(op, StoreOp::Put | StoreOp::Create);
        if !put || !succeeded || !self.strikes(self.fault_one_in) {
            return self.late(FaultAction::Proceed);
        }
        if op == StoreOp::Create {
            self.puts.faulted(path, PutFault::AppliedWithError);
        }
        self.coverage.count(Area::Injected, "put applied and answered with an error");
        self.late(FaultAction::Fail)
    }
}
