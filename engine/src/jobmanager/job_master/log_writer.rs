//! At which number the next entry goes.
//!
//! Owns: the attempt's own last entry. Every later one goes at exactly that + 1, never at a number taken from a listing (law 4),
//! and only when the one before is settled. Does not own: the put. Runs on: the job manager. Pure.

use crate::checkpoint::commit_log::{EntryBody, LogEntry, Nonce};
use crate::ids::{AttemptId, EntryNumber};

#[derive(Debug)]
pub(super) struct LogWriter {
    attempt: AttemptId,
    claim: Nonce,
    last: EntryNumber,
    in_flight: bool,
}

impl LogWriter {
    pub(super) fn new(attempt: AttemptId, claim: Nonce, last: EntryNumber) -> Self {
        Self { attempt, claim, last, in_flight: false }
    }

    /// The number of the next entry, or `None` while one is not settled.
    pub(super) fn next(&self) -> Option<EntryNumber> {
        (!self.in_flight).then(|| self.last.next())
    }

    /// An entry at the next number.
    pub(super) fn begin(&mut self, body: EntryBody) -> (EntryNumber, LogEntry) {
        debug_assert!(!self.in_flight, "an entry is put only when the one before is settled");
        self.in_flight = true;
        let number = self.last.next();
        (number, LogEntry { attempt: self.attempt, nonce: self.claim.of_entry(number), body })
    }

    /// Whether this is the entry in flight.
    pub(super) fn awaits(&self, number: EntryNumber) -> bool {
        self.in_flight && number == self.last.next()
    }

    /// The entry in flight counts as failed, and its number as free: a softened law.
    #[cfg(feature = "mutations")]
    pub(super) fn failed(&mut self) {
        self.in_flight = false;
    }

    /// The entry in flight stands.
    pub(super) fn stands(&mut self) {
        self.last = self.last.next();
        self.in_flight = false;
    }
}
