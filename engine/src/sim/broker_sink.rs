//! A two-phase sink over the broker model, written as a connector for a real broker has to be: all decisions are those of
//! [`crate::broker`].
//!
//! Owns: one slot and one fresh producer per transaction, the ledger offset in it, the drive of the decisions. Does not own: the
//! decisions, the broker. Runs on: the simulation's thread.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::broker::{GroupOffset, Reply, Request};
use super::broker_client::{BrokerClient, NoAnswer, SharedBroker};
use super::broker_committer::BrokerCommitter;
use super::coverage::Area;
use super::database::Row;
use super::line::Line;
use crate::api::{ConnectorError, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter};
use crate::broker::initialisation::{InitialisationAnswer, InitialisationStep};
use crate::broker::{
    BrokerCode, BrokerCommittable, Initialisation, LedgerGroup, Producer, ProducerSlot, SlotTable,
};
use crate::element::Batch;
use crate::ids::{AttemptId, CheckpointId};
use crate::mutation::{self, Mutation};
use crate::operator::TransactionName;

/// A writer that has no free slot looks again after so long.
const LOOK_US: u64 = 300;
/// A request that a coordinator refuses for now is sent again so often.
pub(super) const TRIES_MAX: u32 = 200;
/// And after so long.
pub(super) const AGAIN_US: u64 = 1_500;

/// The slots of one subtask in one attempt, as its writer and its committer share them.
pub(super) type SharedSlots = Arc<Mutex<SlotTable>>;

pub(super) fn lock<T>(guarded: &Mutex<T>) -> MutexGuard<'_, T> {
    guarded.lock().unwrap_or_else(PoisonError::into_inner)
}

/// See the module.
#[derive(Clone, Debug)]
pub struct BrokerSink {
    pub(super) broker: SharedBroker,
    pub(super) line: Line,
    /// By name template. Guards which slots are taken; held for one look only.
    slots: Arc<Mutex<BTreeMap<TransactionName, SharedSlots>>>,
}

impl BrokerSink {
    /// A sink.
    pub fn new(broker: SharedBroker, line: Line) -> Self {
        Self { broker, line, slots: Arc::default() }
    }

    fn slots_of(&self, context: &TwoPhaseContext) -> SharedSlots {
        let mut all = lock(&self.slots);
        let made = || Arc::new(Mutex::new(SlotTable::new(context.places)));
        Arc::clone(all.entry(context.name.clone()).or_insert_with(made))
    }

    pub(super) fn refused(code: BrokerCode) -> ConnectorError {
        ConnectorError::transient("the broker refused a request").caused_by(code)
    }

    /// Drives an initialisation to its end.
    pub(super) async fn initialise(
        &self,
        client: &mut BrokerClient,
        id: &ProducerSlot,
        mut it: Initialisation,
    ) -> Result<Producer, ConnectorError> {
        loop {
            it.told(match it.step() {
                InitialisationStep::FindCoordinator => InitialisationAnswer::Ready,
                InitialisationStep::Wait { ms } => {
                    self.line.sleep(ms * 1_000).await;
                    InitialisationAnswer::Ready
                }
                InitialisationStep::Initialise => {
                    let request = Request::Init { id: id.clone(), timeout_us: self.broker.timeout_us() };
                    match client.call(request).await {
                        Ok(Reply::Producer(producer)) => InitialisationAnswer::Initialised(producer),
                        Ok(Reply::Code(code)) => InitialisationAnswer::Code(code),
                        Ok(Reply::Offset(_) | Reply::Listed(_)) | Err(_) => InitialisationAnswer::NoAnswer,
                    }
                }
                InitialisationStep::Done(producer) => return Ok(producer),
                InitialisationStep::GaveUp(code) => {
                    let error = ConnectorError::transient("a transactional id could not be initialised");
                    return Err(match code {
                        Some(code) => error.caused_by(code),
                        None => error.caused_by(NoAnswer),
                    });
                }
                InitialisationStep::Refused(code) => return Err(Self::refused(code)),
            });
        }
    }

    /// The slot's id, as the recovery law has it.
    pub(super) fn id(name: &TransactionName, slot: u32) -> ProducerSlot {
        let mut id = ProducerSlot::of(name, slot);
        if mutation::on(Mutation::SlotNameWithoutAttempt) {
            id.attempt = AttemptId(0);
        }
        id
    }

    /// The ledger as the broker spells it.
    pub(super) fn group(ledger: &LedgerGroup) -> String {
        let LedgerGroup { scope, subtask, slot } = ledger;
        format!("{}/{}.{}/{}/{subtask}/{slot}", scope.job, scope.log_id, scope.lineage, scope.uid)
    }
}

/// Writer of [`BrokerSink`].
#[derive(Debug)]
pub struct BrokerWriter {
    sink: BrokerSink,
    slots: SharedSlots,
    client: BrokerClient,
    open: Option<OpenTransaction>,
    closing: CheckpointId,
    /// Producers that are kept, under [`Mutation::ProducerKept`].
    kept: BTreeMap<ProducerSlot, Producer>,
}

#[derive(Debug)]
struct OpenTransaction {
    name: TransactionName,
    id: ProducerSlot,
    producer: Producer,
    writes: u64,
}

impl TwoPhaseSink for BrokerSink {
    type Record = Row;
    type Committable = BrokerCommittable;
    type Writer = BrokerWriter;
    type Committer = BrokerCommitter;

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<BrokerCommitter, ConnectorError>> + Send + use<> {
        let (sink, slots) = (self.clone(), self.slots_of(&context));
        BrokerCommitter::open(sink, slots, context)
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<BrokerWriter, ConnectorError>> + Send + use<> {
        let client = BrokerClient::connect(&self.broker, &self.line);
        let (sink, slots) = (self.clone(), self.slots_of(&context));
        let (open, closing, kept) = (None, CheckpointId(0), BTreeMap::new());
        std::future::ready(Ok(BrokerWriter { sink, slots, client, open, closing, kept }))
    }
}

impl BrokerWriter {
    /// Takes a slot, as soon as one is free, and makes its id this transaction's.
    async fn begin(&mut self, name: &TransactionName) -> Result<OpenTransaction, ConnectorError> {
        let slot = loop {
            let taken = lock(&self.slots).take(name);
            if let Some(slot) = taken {
                break slot;
            }
            self.sink.line.coverage().count(Area::Event, "a writer waited for a slot");
            self.sink.line.sleep(LOOK_US).await;
        };
        let id = BrokerSink::id(name, slot);
        let kept = self.kept.get(&id).copied().filter(|_| mutation::on(Mutation::ProducerKept));
        let producer = match kept {
            Some(producer) => producer,
            None => self.sink.initialise(&mut self.client, &id, Initialisation::open()).await?,
        };
        if mutation::on(Mutation::ProducerKept) {
            self.kept.insert(id.clone(), producer);
        }
        Ok(OpenTransaction { name: name.clone(), id, producer, writes: 0 })
    }

    /// A request of the transaction. One that a coordinator has refused for now is sent again; one without an answer is not, since
    /// it may be executed later, in a transaction that it does not belong to.
    async fn send(
        &mut self,
        request: impl Fn() -> Request<ProducerSlot, (TransactionName, Row)>,
    ) -> Result<(), ConnectorError> {
        let mut tries_left = TRIES_MAX;
        loop {
            match self.client.call(request()).await {
                Ok(Reply::Code(BrokerCode::NONE)) => return Ok(()),
                Ok(Reply::Code(code)) if code.is_transient() && tries_left > 0 => {
                    tries_left -= 1;
                    self.sink.line.sleep(AGAIN_US).await;
                }
                Ok(Reply::Code(code)) => return Err(BrokerSink::refused(code)),
                Ok(_) => return Err(BrokerSink::refused(BrokerCode(-1))),
                Err(none) => {
                    return Err(ConnectorError::transient("a request came to nothing").caused_by(none));
                }
            }
        }
    }
}

impl TwoPhaseWriter for BrokerWriter {
    type Record = Row;
    type Committable = BrokerCommittable;

    async fn write(&mut self, name: &TransactionName, batch: Batch<Row>) -> Result<(), ConnectorError> {
        if self.open.is_none() {
            self.open = Some(self.begin(name).await?);
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let (id, producer, number) = (open.id.clone(), open.producer, open.writes);
        open.writes += 1;
        let partition = self.sink.broker.partition(&name.scope.uid, number);
        if number < self.sink.broker.partitions {
            self.send(|| Request::AddPartition(id.clone(), producer, partition.clone())).await?;
        }
        let rows: Vec<_> = batch.values.into_iter().map(|row| (name.clone(), row)).collect();
        self.send(|| Request::Produce(id.clone(), producer, partition.clone(), rows.clone())).await
    }

    fn closing(&mut self, barrier: CheckpointId) {
        self.closing = barrier;
    }

    async fn prepare(&mut self) -> Result<Option<BrokerCommittable>, ConnectorError> {
        let Some(OpenTransaction { name, id, producer, .. }) = self.open.take() else { return Ok(None) };
        let group = BrokerSink::group(&id.ledger());
        let offset = GroupOffset { offset: self.closing.0, note: name.attempt.0 };
        self.send(|| Request::AddOffsets(id.clone(), producer, group.clone())).await?;
        self.send(|| Request::CommitOffset(id.clone(), producer, group.clone(), offset)).await?;
        self.sink.broker.note_prepared(&name, id.clone(), producer, self.closing);
        Ok(Some(BrokerCommittable {
            slot: id.slot,
            producer_id: producer.id,
            producer_epoch: producer.epoch,
            end_txn_version: self.sink.broker.end_txn_version,
            topic_id: None,
        }))
    }

    async fn discard(&mut self) -> Result<(), ConnectorError> {
        let Some(OpenTransaction { name, id, .. }) = self.open.take() else { return Ok(()) };
        self.sink.initialise(&mut self.client, &id, Initialisation::fence()).await?;
        lock(&self.slots).settle(&name);
        Ok(())
    }
}
