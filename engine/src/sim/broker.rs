//! A model of Kafka's transactions, as measured on Apache Kafka 4.4 (`transaction.version=2`) with old and new clients.
//!
//! A transaction lives at its coordinator by transactional id and survives its client. It is ended by anybody who names producer id and
//! epoch. Ending it is decided first (`Ending`), and markers are written a while later (`Ended`); meanwhile its records and offsets are
//! neither visible nor gone. Initialising an id aborts what is open and fences its owner. Version 5 of `EndTxn` raises the epoch,
//! earlier ones do not; so what a retry is told depends on both versions, and no code but 0 tells commit from abort.
//! `tests/histories/kafka_transactions.json` is the scripted history that this model and the real broker have to answer alike.
//!
//! Owns: transactions, partitions, offsets of groups. Does not own: latency, lost answers, names. Runs on: the simulation's thread;
//! pure: requests in, replies out; time is given.

use std::collections::{BTreeMap, BTreeSet};

use super::broker_log::PartitionLog;
pub use super::broker_request::{GroupOffset, Reply, Request, TransactionState};
use crate::broker::{BrokerCode, Producer};

#[derive(Clone, Debug)]
struct Transaction {
    producer: Producer,
    state: TransactionState,
    timeout_us: u64,
    since: u64,
    partitions: BTreeSet<String>,
    groups: BTreeSet<String>,
}

#[derive(Clone, Debug, Default)]
struct Group {
    offset: Option<GroupOffset>,
    /// Offsets of open transactions, by producer id.
    pending: BTreeMap<i64, GroupOffset>,
}

/// How a broker is set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BrokerSettings {
    /// Markers take so many microseconds; 0: they are written at once.
    pub marker_us: u64,
    /// `transaction.max.timeout.ms`, in microseconds.
    pub timeout_us_max: u64,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Broker<X, R> {
    settings: BrokerSettings,
    transactions: BTreeMap<X, Transaction>,
    partitions: BTreeMap<String, PartitionLog<R>>,
    groups: BTreeMap<String, Group>,
    producer_ids: i64,
    away_until: u64,
}

impl<X: Ord + Clone, R> Broker<X, R> {
    /// An empty broker.
    pub fn new(settings: BrokerSettings) -> Self {
        Self {
            settings,
            transactions: BTreeMap::new(),
            partitions: BTreeMap::new(),
            groups: BTreeMap::new(),
            producer_ids: 0,
            away_until: 0,
        }
    }

    /// The coordinators move: until this moment they answer 16, and no marker is written.
    pub fn fail_over(&mut self, until: u64) {
        self.away_until = self.away_until.max(until);
    }

    /// The broker forgets a transactional id that was not used for long; what its groups hold stays.
    pub fn expire(&mut self, id: &X) {
        self.transactions.remove(id);
    }

    /// Time has passed: markers that are due are written, transactions that are open for too long are aborted.
    pub fn settle(&mut self, now: u64) {
        if now < self.away_until {
            return;
        }
        let late = |t: &Transaction| t.state == TransactionState::Ongoing && now > t.since + t.timeout_us;
        let ids: Vec<X> =
            self.transactions.iter().filter(|(_, t)| late(t)).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.fence(id, now));
        let due = |t: &Transaction| matches!(t.state, TransactionState::Ending { due, .. } if now >= due);
        let ids: Vec<X> =
            self.transactions.iter().filter(|(_, t)| due(t)).map(|(id, _)| id.clone()).collect();
        ids.iter().for_each(|id| self.write_markers(id));
    }

    /// When something happens by itself.
    pub fn next_due(&self) -> Option<u64> {
        let moments = self.transactions.values().filter_map(|t| match t.state {
            TransactionState::Ongoing => Some(t.since + t.timeout_us + 1),
            TransactionState::Ending { due, .. } => Some(due),
            TransactionState::Empty | TransactionState::Ended { .. } => None,
        });
        moments.min().map(|at| at.max(self.away_until))
    }

    /// Executes one request.
    pub fn execute(&mut self, request: Request<X, R>, now: u64) -> Reply<X> {
        self.settle(now);
        let produces = matches!(request, Request::Produce(..));
        if now < self.away_until && !produces {
            return Reply::Code(BrokerCode::NOT_COORDINATOR);
        }
        let code = match request {
            Request::Init { id, timeout_us } => return self.init(id, timeout_us, now),
            Request::AddPartition(id, producer, partition) => self.add(&id, producer, now, |t| {
                t.partitions.insert(partition);
            }),
            Request::AddOffsets(id, producer, group) => self.add(&id, producer, now, |t| {
                t.groups.insert(group);
            }),
            Request::Produce(id, producer, partition, records) => {
                self.produce(&id, producer, partition, records)
            }
            Request::CommitOffset(id, producer, group, offset) => {
                self.commit_offset(&id, producer, group, offset)
            }
            Request::End { id, producer, commit, version } => self.end(&id, producer, commit, version, now),
            Request::FetchOffset { group, require_stable } => {
                return self.fetch_offset(&group, require_stable);
            }
            Request::List => {
                let listed = self.transactions.iter().map(|(id, t)| (id.clone(), t.state));
                return Reply::Listed(listed.collect());
            }
        };
        Reply::Code(code)
    }

    fn init(&mut self, id: X, timeout_us: u64, now: u64) -> Reply<X> {
        if timeout_us > self.settings.timeout_us_max {
            return Reply::Code(BrokerCode::INVALID_TRANSACTION_TIMEOUT);
        }
        match self.transactions.get_mut(&id) {
            None => {
                self.producer_ids += 1;
                let producer = Producer { id: self.producer_ids, epoch: 0 };
                let (partitions, groups) = (BTreeSet::new(), BTreeSet::new());
                let state = TransactionState::Empty;
                let begun = Transaction { producer, state, timeout_us, since: now, partitions, groups };
                self.transactions.insert(id, begun);
                return Reply::Producer(producer);
            }
            Some(t) => match t.state {
                TransactionState::Empty | TransactionState::Ended { .. } => {
                    t.producer.epoch += 1;
                    (t.state, t.timeout_us) = (TransactionState::Empty, timeout_us);
                    return Reply::Producer(t.producer);
                }
                TransactionState::Ending { .. } => {}
                TransactionState::Ongoing => self.fence(&id, now),
            },
        }
        Reply::Code(BrokerCode::CONCURRENT_TRANSACTIONS)
    }

    /// The broker itself aborts: the epoch rises, so that the owner is fenced.
    fn fence(&mut self, id: &X, now: u64) {
        if let Some(t) = self.transactions.get_mut(id) {
            t.producer.epoch += 1;
        }
        self.decide(id, false, now);
    }

    fn decide(&mut self, id: &X, commit: bool, now: u64) {
        let due = now + self.settings.marker_us;
        if let Some(t) = self.transactions.get_mut(id) {
            t.state = TransactionState::Ending { commit, due };
        }
        if self.settings.marker_us == 0 {
            self.write_markers(id);
        }
    }

    fn write_markers(&mut self, id: &X) {
        let Some(t) = self.transactions.get_mut(id) else { return };
        let TransactionState::Ending { commit, .. } = t.state else { return };
        t.state = TransactionState::Ended { commit };
        for partition in std::mem::take(&mut t.partitions) {
            self.partitions.entry(partition).or_default().mark(t.producer.id, commit);
        }
        for group in std::mem::take(&mut t.groups) {
            let group = self.groups.entry(group).or_default();
            let pending = group.pending.remove(&t.producer.id);
            if commit && pending.is_some() {
                group.offset = pending;
            }
        }
    }

    /// The id's transaction, if the producer is its newest.
    fn owned(&mut self, id: &X, producer: Producer) -> Result<&mut Transaction, BrokerCode> {
        let t = self.transactions.get_mut(id).filter(|t| t.producer.id == producer.id);
        let t = t.ok_or(BrokerCode::INVALID_PRODUCER_ID_MAPPING)?;
        if t.producer.epoch == producer.epoch { Ok(t) } else { Err(BrokerCode::PRODUCER_FENCED) }
    }

    fn add(
        &mut self,
        id: &X,
        producer: Producer,
        now: u64,
        add: impl FnOnce(&mut Transaction),
    ) -> BrokerCode {
        let t = match self.owned(id, producer) {
            Ok(t) => t,
            Err(code) => return code,
        };
        match t.state {
            TransactionState::Ending { .. } => return BrokerCode::CONCURRENT_TRANSACTIONS,
            TransactionState::Empty | TransactionState::Ended { .. } => {
                (t.state, t.since) = (TransactionState::Ongoing, now);
            }
            TransactionState::Ongoing => {}
        }
        add(t);
        BrokerCode::NONE
    }

    fn produce(&mut self, id: &X, producer: Producer, partition: String, records: Vec<R>) -> BrokerCode {
        match self.owned(id, producer) {
            Ok(t) if t.state == TransactionState::Ongoing && t.partitions.contains(&partition) => {}
            Ok(_) => return BrokerCode::INVALID_TXN_STATE,
            Err(_) => return BrokerCode::INVALID_PRODUCER_EPOCH,
        }
        self.partitions.entry(partition).or_default().append(producer.id, records);
        BrokerCode::NONE
    }

    fn commit_offset(
        &mut self,
        id: &X,
        producer: Producer,
        group: String,
        offset: GroupOffset,
    ) -> BrokerCode {
        match self.owned(id, producer) {
            Ok(t) if t.state == TransactionState::Ongoing && t.groups.contains(&group) => {}
            Ok(_) => return BrokerCode::INVALID_TXN_STATE,
            Err(code) => return code,
        }
        self.groups.entry(group).or_default().pending.insert(producer.id, offset);
        BrokerCode::NONE
    }

    fn fetch_offset(&self, group: &str, require_stable: bool) -> Reply<X> {
        let Some(group) = self.groups.get(group) else { return Reply::Offset(None) };
        match require_stable && !group.pending.is_empty() {
            true => Reply::Code(BrokerCode::UNSTABLE_OFFSET_COMMIT),
            false => Reply::Offset(group.offset),
        }
    }

    /// The measured table: state, epoch and version decide.
    fn end(&mut self, id: &X, producer: Producer, commit: bool, version: i16, now: u64) -> BrokerCode {
        let Some(t) = self.transactions.get_mut(id).filter(|t| t.producer.id == producer.id) else {
            return BrokerCode::INVALID_PRODUCER_ID_MAPPING;
        };
        let raises = version >= 5;
        // The epoch that was raised by the end itself: of this very transaction, by version 5, or by the broker.
        let is_over = matches!(t.state, TransactionState::Ending { .. } | TransactionState::Ended { .. });
        if raises && is_over && t.producer.epoch == producer.epoch + 1 {
            return match t.state {
                TransactionState::Ending { commit: decided, .. } if decided == commit => {
                    BrokerCode::CONCURRENT_TRANSACTIONS
                }
                TransactionState::Ended { commit: decided } if decided == commit => BrokerCode::NONE,
                _ => BrokerCode::INVALID_TXN_STATE,
            };
        }
        if t.producer.epoch != producer.epoch {
            return if version < 2 {
                BrokerCode::INVALID_PRODUCER_EPOCH
            } else {
                BrokerCode::PRODUCER_FENCED
            };
        }
        match t.state {
            TransactionState::Ongoing => {
                t.producer.epoch += i16::from(raises);
                self.decide(id, commit, now);
                BrokerCode::NONE
            }
            TransactionState::Ending { commit: decided, .. } if decided == commit => {
                BrokerCode::CONCURRENT_TRANSACTIONS
            }
            TransactionState::Ended { commit: decided } if decided == commit && !raises => BrokerCode::NONE,
            // A version 5 abort says 0 to whatever is over and was ended by an older version: it proves nothing.
            TransactionState::Empty | TransactionState::Ended { .. } if raises && !commit => BrokerCode::NONE,
            TransactionState::Empty | TransactionState::Ending { .. } | TransactionState::Ended { .. } => {
                BrokerCode::INVALID_TXN_STATE
            }
        }
    }

    /// An operator aborts an open transaction, whose coordinator does it as soon as it can.
    pub fn abort_by_hand(&mut self, id: &X, now: u64) {
        if self.transactions.get(id).is_some_and(|t| t.state == TransactionState::Ongoing) {
            self.fence(id, now);
        }
    }

    /// State of a transactional id, and whose it is.
    pub fn state_of(&self, id: &X) -> Option<(Producer, TransactionState)> {
        self.transactions.get(id).map(|t| (t.producer, t.state))
    }

    /// Ids whose transaction is open.
    pub fn open(&self) -> Vec<X> {
        let open = self.transactions.iter().filter(|(_, t)| t.state == TransactionState::Ongoing);
        open.map(|(id, _)| id.clone()).collect()
    }

    /// Records of committed transactions by partition, in order; the flag tells whether a read_committed consumer sees one.
    pub fn committed(&self) -> impl Iterator<Item = (&R, bool)> {
        self.partitions.values().flat_map(PartitionLog::committed)
    }

    /// What a read_committed consumer sees of one partition.
    pub fn read_committed(&self, partition: &str) -> Vec<&R> {
        let log = self.partitions.get(partition).map(PartitionLog::committed).unwrap_or_default();
        log.into_iter().filter(|(_, visible)| *visible).map(|(record, _)| record).collect()
    }
}

#[cfg(test)]
mod tests;
