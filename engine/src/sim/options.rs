//! What a run is allowed to do: everything, or less for a shrunk schedule.
//!
//! Each switch takes one kind of fault away without changing any other draw of the seed.
//!
//! Owns: the switches. Does not own: the draws. Runs on: plain data.

use std::collections::BTreeSet;

/// What a scenario writes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerKind {
    /// A database with staged transactions.
    Staged,
    /// A database with XA transactions.
    Xa,
    /// A log broker with transactional producers.
    Broker,
    /// A folder of part files.
    Files,
}

/// See the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimOptions {
    /// Blows of the schedule that do not fall, by position.
    pub spared: BTreeSet<usize>,
    /// The store refuses, lies and is late.
    pub store_faults: bool,
    /// Mail and reports are late, lost, doubled, misdirected.
    pub message_faults: bool,
    /// The database stalls, drops connections, answers "retry".
    pub database_faults: bool,
    /// User functions fail.
    pub function_faults: bool,
    /// The wall clock jumps.
    pub clock_jumps: bool,
    /// Records in all, at most.
    pub records_max: u64,
    /// Only this kind of server, instead of the drawn one.
    pub server: Option<ServerKind>,
}

impl Default for SimOptions {
    fn default() -> Self {
        Self {
            spared: BTreeSet::new(),
            store_faults: true,
            message_faults: true,
            database_faults: true,
            function_faults: true,
            clock_jumps: true,
            records_max: u64::MAX,
            server: None,
        }
    }
}
