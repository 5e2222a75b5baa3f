//! One entry of the commit log.
//!
//! Owns: the kinds of entries, and the nonce by which a writer knows its own. Does not own: their bytes (see [`super::bytes`]) and
//! their numbers (see [`super::client`]). Runs on: plain data.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::bytes::EnvelopeError;
use crate::checkpoint::manifest::Manifest;
use crate::ids::{AttemptId, CheckpointId, EntryNumber, OperatorUid};
use crate::operator::TransactionName;

/// One entry. Never changed after it was created.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogEntry {
    /// The attempt that wrote it.
    pub attempt: AttemptId,
    /// Tells this put from every other one.
    pub nonce: Nonce,
    /// What it says.
    pub body: EntryBody,
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryBody {
    /// An attempt begins; every lower one is over.
    Claim {
        /// What it restores.
        base: ClaimBase,
        /// The stores that hold this log, by URL.
        stores: Vec<String>,
    },
    /// A checkpoint is complete.
    Checkpoint {
        /// What it consists of.
        manifest: Manifest,
        /// Entries of the older checkpoints that are kept with it. Its cleaner may delete every other checkpoint entry below.
        retained: Vec<EntryNumber>,
        /// For each two-phase sink: everything up to this checkpoint was known to be committed; it is not asked for again.
        committed: Vec<(OperatorUid, CheckpointId)>,
    },
    /// After an orderly stop with savepoint: everything up to this checkpoint is committed.
    Settled {
        /// The savepoint's checkpoint.
        checkpoint: CheckpointId,
    },
    /// Somebody decided to go on without this transaction.
    Forgotten {
        /// The transaction.
        transaction: TransactionName,
    },
    /// The job has come to its end; everything is committed.
    Finished,
}

/// What a claim restores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimBase {
    /// The newest checkpoint on the line.
    Latest,
    /// Nothing: begin anew. What lies below can never be restored again.
    None,
    /// This checkpoint entry (a rewind). What lies between can never be restored again.
    Entry(EntryNumber),
}

/// A number that no other put has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Nonce(pub u128);

impl fmt::Display for Nonce {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl Nonce {
    /// The nonce of the entry `number` of the attempt whose claim had this nonce. An attempt puts one entry per number,
    /// so it is as unique as the claim's.
    #[must_use]
    pub fn of_entry(self, number: EntryNumber) -> Self {
        Self(derive(self.0, number.0))
    }
}

/// Nonces from a random seed: the one piece of chance that the log needs is given by the caller.
#[derive(Clone, Debug)]
pub struct NonceSource {
    seed: u128,
    drawn: u64,
}

impl NonceSource {
    /// `seed` must be random in production: two processes with one seed could take each other's entries for their own.
    pub fn new(seed: u128) -> Self {
        Self { seed, drawn: 0 }
    }

    /// The next one.
    pub fn draw(&mut self) -> Nonce {
        self.drawn += 1;
        // Odd words keep these apart from `Nonce::of_entry`, should a seed ever be a nonce.
        Nonce(derive(!self.seed, self.drawn))
    }
}

fn derive(from: u128, number: u64) -> u128 {
    let mut bytes = [0; 24];
    bytes[..16].copy_from_slice(&from.to_le_bytes());
    bytes[16..].copy_from_slice(&number.to_le_bytes());
    xxhash_rust::xxh3::xxh3_128(&bytes)
}

impl LogEntry {
    /// Whether it is a claim.
    pub fn is_claim(&self) -> bool {
        matches!(self.body, EntryBody::Claim { .. })
    }

    /// Its manifest, if it is a checkpoint.
    pub fn manifest(&self) -> Option<&Manifest> {
        match &self.body {
            EntryBody::Checkpoint { manifest, .. } => Some(manifest),
            _ => None,
        }
    }

    /// The highest checkpoint id it mentions.
    pub fn checkpoint_id(&self) -> Option<CheckpointId> {
        match &self.body {
            EntryBody::Checkpoint { manifest, .. } => Some(manifest.checkpoint),
            EntryBody::Settled { checkpoint } => Some(*checkpoint),
            _ => None,
        }
    }
}

/// Path of an entry below the checkpoint folder.
pub(crate) fn path_of(number: EntryNumber) -> String {
    format!("{FOLDER}/{:020}", number.0)
}

/// The number in an entry's path; `None` for other objects.
pub(crate) fn number_in(path: &str) -> Option<EntryNumber> {
    let digits = path.strip_prefix(FOLDER)?.strip_prefix('/')?;
    let is_entry = digits.len() == 20 && digits.bytes().all(|b| b.is_ascii_digit());
    is_entry.then(|| digits.parse().ok().map(EntryNumber)).flatten()
}

/// Reads the entry at `path`; `None` for other objects and for damaged ones.
pub fn entry_in(path: &str, bytes: &[u8]) -> Option<(EntryNumber, Arc<LogEntry>)> {
    Some((number_in(path)?, Arc::new(read_entry(bytes).ok()?)))
}

/// Reads an entry.
///
/// # Errors
/// What is wrong with its bytes.
pub fn read_entry(bytes: &[u8]) -> Result<LogEntry, EnvelopeError> {
    super::bytes::open(super::bytes::ENTRY_MAGIC, bytes)
}

/// An entry's bytes, for tests that lay a log out by hand.
#[cfg(test)]
pub(crate) fn sealed(entry: &LogEntry) -> Vec<u8> {
    super::bytes::seal(super::bytes::ENTRY_MAGIC, entry)
}

/// Folder of the log below the checkpoint folder.
pub(crate) const FOLDER: &str = "log";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_gives_its_number_back_and_other_objects_give_none() {
        assert_eq!(path_of(EntryNumber(42)), "log/00000000000000000042");
        assert_eq!(number_in(&path_of(EntryNumber(42))), Some(EntryNumber(42)));
        for other in ["log/id", "log/42", "log/0000000000000000004x", "7-3/00000000000000000042"] {
            assert_eq!(number_in(other), None, "{other}");
        }
    }

    #[test]
    fn nonces_differ_between_entries_and_between_draws() {
        let mut source = NonceSource::new(7);
        let (a, b) = (source.draw(), source.draw());
        assert_ne!(a, b);
        assert_ne!(a.of_entry(EntryNumber(1)), a.of_entry(EntryNumber(2)));
        assert_ne!(a.of_entry(EntryNumber(1)), b.of_entry(EntryNumber(1)));
    }
}
