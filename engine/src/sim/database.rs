//! A database with two-phase transactions, in memory; it outlives the simulated processes.
//!
//! A transaction is open (its rows are staged on the server and outlive the client), prepared, committed or rolled back. A ledger
//! remembers what was committed. Committing a name that is neither prepared nor in the ledger is *lost*.
//!
//! Owns: tables, transactions, ledger. Does not own: when anything is committed. Runs on: the simulation's thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
}

#[derive(Debug)]
struct Transaction {
    rows: Vec<Row>,
    prepared: bool,
}

#[derive(Debug, Default)]
struct Tables {
    committed: BTreeMap<String, Vec<Row>>,
    transactions: BTreeMap<TransactionName, Transaction>,
    ledger: BTreeMap<TransactionName, ()>,
}

/// Shared handle to the database.
#[derive(Clone, Debug, Default)]
pub struct Database {
    /// Guards the tables; one thread uses it.
    tables: Arc<Mutex<Tables>>,
}

impl Database {
    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes rows into an open transaction, which begins with them. `false`: the name is taken by a prepared or committed one.
    pub fn write(&self, name: &TransactionName, rows: Vec<Row>) -> bool {
        let mut tables = self.lock();
        if tables.ledger.contains_key(name) {
            return false;
        }
        let transaction = tables
            .transactions
            .entry(name.clone())
            .or_insert(Transaction { rows: Vec::new(), prepared: false });
        transaction.rows.extend(rows);
        !transaction.prepared
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

    /// Commits a prepared transaction.
    pub fn commit(&self, name: &TransactionName) -> CommitOutcome {
        let mut tables = self.lock();
        if tables.ledger.contains_key(name) {
            return CommitOutcome::AlreadyCommitted;
        }
        match tables.transactions.remove(name) {
            Some(transaction) if transaction.prepared => {
                tables.committed.entry(name.scope.uid.0.clone()).or_default().extend(transaction.rows);
                tables.ledger.insert(name.clone(), ());
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

    /// Names of everything open or prepared.
    pub fn left_overs(&self) -> Vec<TransactionName> {
        self.lock().transactions.keys().cloned().collect()
    }

    /// Committed rows of a sink.
    pub fn rows(&self, uid: &str) -> Vec<Row> {
        self.lock().committed.get(uid).cloned().unwrap_or_default()
    }
}
