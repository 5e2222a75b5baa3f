//! A database with two-phase transactions, in memory; it outlives the simulated processes.
//!
//! A transaction is open (its rows are staged on the server and outlive the client), prepared, committed or rolled back. A ledger
//! remembers what was committed. Committing a name that is neither prepared nor in the ledger is *lost*.
//!
//! Owns: tables, transactions, ledger. Does not own: when anything is committed. Runs on: the simulation's thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::ids::CheckpointId;
use crate::operator::{CommitOutcome, TransactionName};

/// One row of output.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Row {
    /// A record passed a log-like sink.
    Event {
        /// Its id.
        id: u64,
    },
    /// A key's running total.
    Total {
        /// The key.
        key: u64,
        /// Records of the key so far.
        count: u64,
        /// Sum of their values.
        sum: u64,
    },
    /// What one subtask of the tally counted, at the end.
    Tally {
        /// Records.
        records: u64,
    },
    /// A timer fired.
    Timer {
        /// The key.
        key: u64,
        /// When, in event time.
        at: i64,
    },
    /// A record is added to the row of its key, in place.
    Add {
        /// The key.
        key: u64,
        /// What is added.
        value: u64,
    },
}

/// A committed transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedRows<R = Row> {
    /// Its name.
    pub name: TransactionName,
    /// The checkpoint whose barrier closed it.
    pub closed_by: CheckpointId,
    /// What it wrote.
    pub rows: Vec<R>,
}

struct Transaction<R> {
    rows: Vec<R>,
    prepared: bool,
}

struct Tables<R> {
    committed: Vec<CommittedRows<R>>,
    transactions: BTreeMap<TransactionName, Transaction<R>>,
    ledger: BTreeMap<TransactionName, ()>,
}

/// Shared handle to the database, whose rows are of type `R`.
pub struct Database<R = Row> {
    /// Guards the tables; one thread uses it.
    tables: Arc<Mutex<Tables<R>>>,
}

impl<R> Clone for Database<R> {
    fn clone(&self) -> Self {
        Self { tables: Arc::clone(&self.tables) }
    }
}

impl<R> Default for Database<R> {
    fn default() -> Self {
        let (committed, transactions, ledger) = (Vec::new(), BTreeMap::new(), BTreeMap::new());
        Self { tables: Arc::new(Mutex::new(Tables { committed, transactions, ledger })) }
    }
}

impl<R> std::fmt::Debug for Database<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database").field("left_overs", &self.left_overs()).finish_non_exhaustive()
    }
}

impl<R> Database<R> {
    fn lock(&self) -> MutexGuard<'_, Tables<R>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes rows into an open transaction, which begins with them. `false`: the name is taken by a prepared or committed one.
    pub fn write(&self, name: &TransactionName, rows: Vec<R>) -> bool {
        let mut tables = self.lock();
        if tables.ledger.contains_key(name) {
            return false;
        }
        let transaction = tables
            .transactions
            .entry(name.clone())
            .or_insert(Transaction { rows: Vec::new(), prepared: false });
        if !transaction.prepared {
            transaction.rows.extend(rows);
        }
        !transaction.prepared
    }

    /// A statement of a dead client is executed: it adds rows to a staging table, if that is still there. `false`: it is not.
    pub fn write_late(&self, name: &TransactionName, rows: Vec<R>) -> bool {
        match self.lock().transactions.get_mut(name) {
            Some(open) if !open.prepared => {
                open.rows.extend(rows);
                true
            }
            _ => false,
        }
    }

    /// Prepares an open transaction. `false`: it is gone.
    pub fn prepare(&self, name: &TransactionName) -> bool {
        match self.lock().transactions.get_mut(name) {
            Some(transaction) => {
                transaction.prepared = true;
                true
            }
            None => false,
        }
    }

    /// Commits a prepared transaction that the barrier of `closed_by` closed.
    pub fn commit(&self, name: &TransactionName, closed_by: CheckpointId) -> CommitOutcome {
        let mut tables = self.lock();
        if tables.ledger.contains_key(name) {
            return CommitOutcome::AlreadyCommitted;
        }
        match tables.transactions.remove(name) {
            Some(transaction) if transaction.prepared => {
                let (name, rows) = (name.clone(), transaction.rows);
                tables.ledger.insert(name.clone(), ());
                tables.committed.push(CommittedRows { name, closed_by, rows });
                CommitOutcome::Committed
            }
            Some(_) => CommitOutcome::Lost { reason: "it was never prepared".to_owned() },
            None => CommitOutcome::Lost { reason: "it is neither prepared nor in the ledger".to_owned() },
        }
    }

    /// Rolls a transaction back.
    pub fn roll_back(&self, name: &TransactionName) {
        self.lock().transactions.remove(name);
    }

    /// Names of everything prepared.
    pub fn prepared(&self) -> Vec<TransactionName> {
        let tables = self.lock();
        tables.transactions.iter().filter(|(_, t)| t.prepared).map(|(name, _)| name.clone()).collect()
    }

    /// Names of everything open or prepared.
    pub fn left_overs(&self) -> Vec<TransactionName> {
        self.lock().transactions.keys().cloned().collect()
    }

    /// How many rows each committed transaction has, and what closed it.
    pub fn committed_sizes(&self) -> Vec<(CheckpointId, usize)> {
        self.lock().committed.iter().map(|c| (c.closed_by, c.rows.len())).collect()
    }
}

impl<R: Clone> Database<R> {
    /// Everything committed, in order.
    pub fn committed(&self) -> Vec<CommittedRows<R>> {
        self.lock().committed.clone()
    }
}
