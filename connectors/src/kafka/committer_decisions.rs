//! Which version of `EndTxn` commits a transaction.
//!
//! The answer to a retry depends on the version of the first request and of the retry: a commit by version 4 reads as "aborted"
//! (48) to version 5. So the version is chosen when a transaction is prepared, is stored with it, and every process that commits it
//! uses that one.
//!
//! Owns: the choice. Does not own: the request. Runs on: plain data.

use std::fmt;
use std::ops::RangeInclusive;

/// The newest version whose answers are known. It also raises the producer's epoch, so that its old owner is fenced.
const NEWEST: i16 = 5;

/// A version of `EndTxn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EndTxnVersion(pub i16);

impl fmt::Display for EndTxnVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EndTxn version {}", self.0)
    }
}

/// A broker that cannot end a transaction in a way whose answers are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VersionRefusal {
    /// No version is known here.
    #[error(
        "the broker offers EndTxn from version {oldest}, and this sink knows it up to version {NEWEST}\n  help: use a newer Tidegate, or an older broker"
    )]
    TooNew {
        /// The oldest version that is offered.
        oldest: i16,
    },
    /// A transaction was prepared for a version that is not offered any more.
    #[error(
        "a transaction was prepared for {stored}, and the broker offers versions {oldest} to {newest}\n  \
         help: another version would be told \"aborted\" about a committed transaction; let the job finish it on the broker it was \
         written to, before the broker is changed"
    )]
    NotOffered {
        /// What the checkpoint says.
        stored: EndTxnVersion,
        /// The oldest version that is offered.
        oldest: i16,
        /// The newest version that is offered.
        newest: i16,
    },
}

impl EndTxnVersion {
    /// For a transaction that is prepared now: the newest that is offered and known.
    ///
    /// # Errors
    /// [`VersionRefusal::TooNew`].
    pub fn choose(offered: &RangeInclusive<i16>) -> Result<Self, VersionRefusal> {
        let (oldest, newest) = (*offered.start(), *offered.end());
        match newest.min(NEWEST) {
            version if version >= oldest && version >= 0 => Ok(Self(version)),
            _ => Err(VersionRefusal::TooNew { oldest }),
        }
    }

    /// For a transaction that a checkpoint lists: the stored one and no other.
    ///
    /// # Errors
    /// [`VersionRefusal::NotOffered`].
    pub fn keep(stored: i16, offered: &RangeInclusive<i16>) -> Result<Self, VersionRefusal> {
        let (stored, oldest, newest) = (Self(stored), *offered.start(), *offered.end());
        if offered.contains(&stored.0) {
            Ok(stored)
        } else {
            Err(VersionRefusal::NotOffered { stored, oldest, newest })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_transaction_gets_the_newest_version_that_is_known() {
        assert_eq!(EndTxnVersion::choose(&(0..=5)), Ok(EndTxnVersion(5)));
        assert_eq!(EndTxnVersion::choose(&(0..=3)), Ok(EndTxnVersion(3)));
        assert_eq!(EndTxnVersion::choose(&(0..=9)), Ok(EndTxnVersion(5)));
        assert_eq!(EndTxnVersion::choose(&(6..=9)), Err(VersionRefusal::TooNew { oldest: 6 }));
    }

    #[test]
    fn a_listed_transaction_keeps_its_version_or_is_refused_with_the_reason() {
        assert_eq!(EndTxnVersion::keep(4, &(0..=5)), Ok(EndTxnVersion(4)));
        let refusal = EndTxnVersion::keep(5, &(0..=4)).unwrap_err();
        assert!(refusal.to_string().contains("EndTxn version 5"), "{refusal}");
    }
}
