//! The two-phase sink of a simulation: every call of its database is late before and after.
//!
//! Owns: latency between the client and the database model. Does not own: the database. Runs on: the simulation's thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::clock::SimClock;
use super::database::{Database, Row};
use super::rng::Rng;
use crate::api::{Committer, ConnectorError, Prepared, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter};
use crate::element::Batch;
use crate::operator::{CommitOutcome, TransactionName};

/// The line between a client and the database.
#[derive(Clone, Debug)]
pub struct Line {
    /// Time.
    pub clock: Arc<SimClock>,
    /// Guards the stream of numbers; one thread uses it.
    pub rng: Arc<Mutex<Rng>>,
    /// The longest latency of one way, in microseconds.
    pub latency_us_max: u64,
    /// One way in so many takes [`STALL_US`]; checkpoints expire over it.
    pub stall_one_in: u64,
    /// How many stalls are left.
    pub stalls_left: Arc<AtomicU64>,
    /// Faults have stopped: no more stalls.
    pub calm: Arc<AtomicBool>,
}

/// Longer than any checkpoint timeout of a scenario.
pub const STALL_US: u64 = 4_000_000;

impl Line {
    fn draw(&self, bound: u64) -> u64 {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner).below(bound)
    }

    fn stalls(&self) -> bool {
        if self.draw(self.stall_one_in) != 0 || self.calm.load(Ordering::Relaxed) {
            return false;
        }
        let left = self.stalls_left.load(Ordering::Relaxed);
        self.stalls_left.store(left.saturating_sub(1), Ordering::Relaxed);
        left > 0
    }

    async fn way(&self) {
        let span = if self.stalls() { STALL_US } else { self.draw(self.latency_us_max + 1) };
        self.clock.sleep(Duration::from_micros(span)).await;
    }
}

/// See the module.
#[derive(Clone, Debug)]
pub struct SimSink {
    database: Database,
    line: Line,
}

impl SimSink {
    /// A sink into `database`.
    pub fn new(database: Database, line: Line) -> Self {
        Self { database, line }
    }
}

/// Writer of [`SimSink`].
#[derive(Debug)]
pub struct SimWriter {
    sink: SimSink,
    open: Option<TransactionName>,
}

/// Committer of [`SimSink`].
#[derive(Debug)]
pub struct SimCommitter {
    sink: SimSink,
    context: TransactionName,
}

impl TwoPhaseSink for SimSink {
    type Record = Row;
    type Committable = u64;
    type Writer = SimWriter;
    type Committer = SimCommitter;

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<SimCommitter, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(SimCommitter { sink: self.clone(), context: context.name }))
    }

    fn open_writer(
        &self,
        _context: TwoPhaseContext,
    ) -> impl Future<Output = Result<SimWriter, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(SimWriter { sink: self.clone(), open: None }))
    }
}

impl TwoPhaseWriter for SimWriter {
    type Record = Row;
    type Committable = u64;

    async fn write(&mut self, name: &TransactionName, batch: Batch<Row>) -> Result<(), ConnectorError> {
        self.sink.line.way().await;
        let open = self.open.get_or_insert_with(|| name.clone());
        if !self.sink.database.write(open, batch.values) {
            return Err(ConnectorError::fatal(format!("transaction {open} was taken before it was opened")));
        }
        self.sink.line.way().await;
        Ok(())
    }

    async fn prepare(&mut self) -> Result<Option<u64>, ConnectorError> {
        let Some(open) = self.open.take() else { return Ok(None) };
        self.sink.line.way().await;
        if !self.sink.database.prepare(&open) {
            return Err(ConnectorError::transient(format!("transaction {open} is gone")));
        }
        self.sink.line.way().await;
        Ok(Some(self.sink.line.draw(1_000)))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        if let Some(open) = self.open.take() {
            self.sink.line.way().await;
            self.sink.database.roll_back(&open);
        }
        Ok(())
    }
}

impl Committer for SimCommitter {
    type Committable = u64;

    async fn commit(&mut self, item: &Prepared<u64>) -> Result<CommitOutcome, ConnectorError> {
        self.sink.line.way().await;
        if self.sink.line.draw(20) == 0 {
            return Ok(CommitOutcome::RetryAfter { ms: 1, reason: "the server is busy".to_owned() });
        }
        let outcome = self.sink.database.commit(&item.name);
        self.sink.line.way().await;
        Ok(outcome)
    }

    async fn list(&mut self) -> Result<Vec<TransactionName>, ConnectorError> {
        self.sink.line.way().await;
        let own = &self.context.scope;
        let same = |n: &TransactionName| {
            n.scope.job == own.job && n.scope.log_id == own.log_id && n.scope.uid == own.uid
        };
        Ok(self.sink.database.left_overs().into_iter().filter(same).collect())
    }

    async fn roll_back(&mut self, name: &TransactionName) -> Result<(), ConnectorError> {
        self.sink.line.way().await;
        self.sink.database.roll_back(name);
        Ok(())
    }
}
