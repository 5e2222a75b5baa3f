//! A simulated client's connection to the broker model.
//!
//! A request or its answer can be lost, and a request whose client is gone may still be executed. A coordinator can refuse without
//! reason, move to another broker, or do what was asked and answer with an error.
//!
//! Owns: latency, lost and false answers, what the oracle needs to know. Does not own: the broker (see [`super::broker`]).
//! Runs on: the simulation's thread.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::broker::{Broker, BrokerSettings, Reply, Request, TransactionState};
use super::coverage::Area;
use super::database::{CommittedRows, Row};
use super::line::{LATE_STATEMENT_US_MAX, Line};
use super::rng::Rng;
use crate::broker::{BrokerCode, Producer, ProducerSlot, TransactionTimeout};
use crate::checkpoint::CheckpointConfig;
use crate::ids::{CheckpointId, OperatorUid};
use crate::mutation::{self, Mutation};
use crate::operator::TransactionName;

/// Stalls, store faults and successors that take their time: no job of a simulation is away for longer.
const OUTAGE_MS_MAX: u64 = 20_000;
/// Coordinators are away for so long at most.
const AWAY_US_MAX: u64 = 20_000;
/// A request that gets no answer may arrive so late.
const LATE_US_MAX: u64 = 150_000;
/// Microseconds of a transaction timeout that is shorter than an outage.
const SHORT_TIMEOUT_US: u64 = 30_000;

/// A record with what its header says.
type Written = (TransactionName, Row);
/// The broker of a simulation.
pub type SimBroker = Broker<ProducerSlot, Written>;

/// The broker, as all clients of a simulation share it.
#[derive(Clone, Debug)]
pub struct SharedBroker {
    /// Guards the broker; one thread uses it.
    inner: Arc<Mutex<Inner>>,
    /// Version of `EndTxn` that it offers.
    pub end_txn_version: i16,
    /// Partitions of each sink's topic.
    pub partitions: u64,
    timeout_us: u64,
}

#[derive(Debug)]
struct Inner {
    broker: SimBroker,
    /// Where each prepared transaction is, and by which checkpoint's barrier it was closed: the broker knows no such names.
    prepared: BTreeMap<TransactionName, (ProducerSlot, Producer, CheckpointId)>,
    now: u64,
    /// So many initialisations get no answer, beside those whose connection drops.
    silent_inits_left: u64,
    /// And so many ends.
    silent_ends_left: u64,
}

impl SharedBroker {
    /// Draws a broker.
    pub fn draw(rng: &mut Rng) -> Self {
        let pick = |rng: &mut Rng, of: [i16; 3]| of[usize::try_from(rng.below(3)).unwrap_or(0)];
        let marker_us = [0, 500, 8_000][usize::try_from(rng.below(3)).unwrap_or(0)];
        let settings = BrokerSettings { marker_us, timeout_us_max: 900_000_000 };
        let inner = Inner {
            broker: Broker::new(settings),
            prepared: BTreeMap::new(),
            now: 0,
            silent_inits_left: rng.below(12),
            silent_ends_left: rng.below(24),
        };
        Self {
            inner: Arc::new(Mutex::new(inner)),
            end_txn_version: pick(rng, [1, 4, 5]),
            partitions: rng.between(1, 3),
            timeout_us: 0,
        }
    }

    /// With a transaction timeout that fits the job's settings.
    #[must_use]
    pub fn for_job(mut self, checkpoints: &CheckpointConfig) -> Self {
        self.timeout_us = 1_000 * TransactionTimeout::needed_ms(checkpoints, OUTAGE_MS_MAX) + 1;
        self
    }

    /// The transaction timeout, in microseconds.
    pub fn timeout_us(&self) -> u64 {
        if mutation::on(Mutation::ShortTransactionTimeout) { SHORT_TIMEOUT_US } else { self.timeout_us }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time has passed.
    pub fn settle(&self, now: u64) {
        let mut inner = self.lock();
        inner.now = now;
        inner.broker.settle(now);
    }

    /// When the broker does something by itself.
    pub fn next_due(&self) -> Option<u64> {
        self.lock().broker.next_due()
    }

    /// Open transactions, by slot.
    pub fn left_overs(&self) -> Vec<TransactionName> {
        let open = self.lock().broker.open();
        // Without attempts in the ids nobody can say whose a left-over is.
        let nobodys =
            |id: &&ProducerSlot| mutation::on(Mutation::SlotNameWithoutAttempt) && id.attempt.0 == 0;
        open.iter().filter(|id| !nobodys(id)).map(ProducerSlot::as_left_over).collect()
    }

    /// Remembers what a writer has prepared.
    pub fn note_prepared(
        &self,
        name: &TransactionName,
        slot: ProducerSlot,
        producer: Producer,
        closed_by: CheckpointId,
    ) {
        self.lock().prepared.insert(name.clone(), (slot, producer, closed_by));
    }

    /// Names of prepared transactions: open under the producer that prepared them. (A producer that is kept for several, as one
    /// softened law does, has others that were committed before.)
    pub fn prepared(&self) -> Vec<TransactionName> {
        let inner = self.lock();
        let committed: BTreeSet<&TransactionName> =
            inner.broker.committed().map(|((name, _), _)| name).collect();
        let open = |slot: &ProducerSlot, producer: &Producer| {
            inner.broker.state_of(slot) == Some((*producer, TransactionState::Ongoing))
        };
        let prepared = inner.prepared.iter().filter(|(_, (slot, producer, _))| open(slot, producer));
        prepared.map(|(name, _)| name).filter(|name| !committed.contains(name)).cloned().collect()
    }

    /// Somebody aborts a prepared transaction by hand.
    pub fn roll_back_by_hand(&self, name: &TransactionName) {
        let mut inner = self.lock();
        let now = inner.now;
        if let Some((slot, ..)) = inner.prepared.get(name).cloned() {
            inner.broker.abort_by_hand(&slot, now);
        }
    }

    /// Everything committed, in the order of each topic; also what an open transaction of somebody else hides.
    pub fn committed(&self) -> Vec<CommittedRows> {
        let inner = self.lock();
        let mut rows: BTreeMap<&TransactionName, Vec<Row>> = BTreeMap::new();
        for ((name, row), _) in inner.broker.committed() {
            rows.entry(name).or_default().push(row.clone());
        }
        let closed_by = |name| inner.prepared.get(name).map(|(.., closed_by)| *closed_by).unwrap_or_default();
        let committed = rows.into_iter().map(|(name, rows)| CommittedRows {
            name: name.clone(),
            closed_by: closed_by(name),
            rows,
        });
        committed.collect()
    }

    /// Committed records that a read_committed consumer does not see yet.
    pub fn hidden(&self) -> usize {
        self.lock().broker.committed().filter(|(_, visible)| !visible).count()
    }

    /// Name of a partition of a sink's topic.
    pub fn partition(&self, uid: &OperatorUid, number: u64) -> String {
        format!("{uid}-{}", number % self.partitions)
    }
}

/// No answer came; the request may have been executed, or may still be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the broker did not answer")]
pub struct NoAnswer;

/// See the module.
#[derive(Debug)]
pub struct BrokerClient {
    broker: SharedBroker,
    line: Line,
    on_the_way: Option<Request<ProducerSlot, Written>>,
}

/// What a coordinator does with a request.
enum Mood {
    Executes,
    Refuses(BrokerCode),
    ExecutesAndDenies,
}

impl BrokerClient {
    /// Connects.
    pub fn connect(broker: &SharedBroker, line: &Line) -> Self {
        Self { broker: broker.clone(), line: line.clone(), on_the_way: None }
    }

    /// One request there and its reply back.
    ///
    /// # Errors
    /// [`NoAnswer`].
    pub async fn call(
        &mut self,
        request: Request<ProducerSlot, Written>,
    ) -> Result<Reply<ProducerSlot>, NoAnswer> {
        let coordinated = !matches!(request, Request::Produce(..));
        self.on_the_way = Some(request);
        if self.line.way_or_drop().await.is_err() || self.is_silent() {
            self.outlive();
            return Err(NoAnswer);
        }
        let Some(request) = self.on_the_way.take() else { return Err(NoAnswer) };
        let mood = if coordinated { self.mood() } else { Mood::Executes };
        let reply = match mood {
            Mood::Executes => self.execute(request),
            Mood::Refuses(code) => Reply::Code(code),
            Mood::ExecutesAndDenies => {
                self.execute(request);
                self.count("a coordinator executed and answered with an error");
                Reply::Code(BrokerCode::COORDINATOR_NOT_AVAILABLE)
            }
        };
        if self.line.way_or_drop().await.is_err() {
            self.count("an answer of the broker was lost");
            return Err(NoAnswer);
        }
        Ok(reply)
    }

    fn execute(&self, request: Request<ProducerSlot, Written>) -> Reply<ProducerSlot> {
        self.broker.lock().broker.execute(request, self.line.now())
    }

    /// Whether an initialisation, or an end, gets no answer now; it may still be executed.
    fn is_silent(&self) -> bool {
        let mut inner = self.broker.lock();
        let (left, tries) = match self.on_the_way {
            Some(Request::Init { .. }) => (&mut inner.silent_inits_left, 1),
            Some(Request::End { .. }) => (&mut inner.silent_ends_left, 3),
            _ => return false,
        };
        if *left == 0 || !(0..tries).any(|_| self.line.is_busy()) {
            return false;
        }
        *left -= 1;
        drop(inner);
        self.count("a request was late and had no answer");
        true
    }

    fn count(&self, what: &'static str) {
        self.line.coverage().count(Area::Injected, what);
    }

    fn mood(&self) -> Mood {
        if !self.line.is_busy() {
            return Mood::Executes;
        }
        match self.line.draw(6) {
            0 => {
                let until = self.line.now() + self.line.draw(AWAY_US_MAX);
                self.broker.lock().broker.fail_over(until);
                self.count("coordinators moved");
                Mood::Refuses(BrokerCode::NOT_COORDINATOR)
            }
            1 => Mood::ExecutesAndDenies,
            2 => Mood::Refuses(BrokerCode::COORDINATOR_LOADING),
            _ => Mood::Refuses(BrokerCode::CONCURRENT_TRANSACTIONS),
        }
    }

    /// What was on the way when the client went may still be executed.
    fn outlive(&mut self) {
        let Some(request) = self.on_the_way.take() else { return };
        let (broker, line) = (self.broker.clone(), self.line.clone());
        let late_us_max = if self.line.draw(3) == 0 { LATE_US_MAX } else { LATE_STATEMENT_US_MAX };
        let due = self.line.now() + self.line.draw(late_us_max);
        self.line.at(due, move || {
            let reply = broker.lock().broker.execute(request, line.now());
            if matches!(reply, Reply::Producer(_) | Reply::Code(BrokerCode::NONE)) {
                line.coverage().count(Area::Injected, "a request of the broker was executed late");
            }
        });
    }
}

impl Drop for BrokerClient {
    fn drop(&mut self) {
        self.outlive();
    }
}
