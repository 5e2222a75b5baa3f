//! A broker's error codes, and which of three things each one says: not now, ask the ledger, refused.
//!
//! Owns: the classes. Does not own: what follows from them (see [`super::settlement`]). Runs on: plain data.

/// An error code of the broker; 0 is success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("broker error {0} ({name})", name = self.name())]
pub struct BrokerCode(pub i16);

impl BrokerCode {
    /// Done.
    pub const NONE: Self = Self(0);
    /// A partition has no leader now.
    pub const LEADER_NOT_AVAILABLE: Self = Self(5);
    /// Another broker is a partition's leader.
    pub const NOT_LEADER: Self = Self(6);
    /// The coordinator reads its log.
    pub const COORDINATOR_LOADING: Self = Self(14);
    /// There is no coordinator now.
    pub const COORDINATOR_NOT_AVAILABLE: Self = Self(15);
    /// Another broker is the coordinator.
    pub const NOT_COORDINATOR: Self = Self(16);
    /// The epoch is not the producer's newest, in the words of old versions.
    pub const INVALID_PRODUCER_EPOCH: Self = Self(47);
    /// The transaction is not in a state for this.
    pub const INVALID_TXN_STATE: Self = Self(48);
    /// The transactional id is unknown or belongs to another producer id.
    pub const INVALID_PRODUCER_ID_MAPPING: Self = Self(49);
    /// The transaction timeout is above the broker's maximum.
    pub const INVALID_TRANSACTION_TIMEOUT: Self = Self(50);
    /// The transaction before is still being ended.
    pub const CONCURRENT_TRANSACTIONS: Self = Self(51);
    /// The offset may change: a transaction that wrote it is open.
    pub const UNSTABLE_OFFSET_COMMIT: Self = Self(88);
    /// The epoch is not the producer's newest.
    pub const PRODUCER_FENCED: Self = Self(90);

    /// Whether the request was not done and may be asked again: leader or coordinator away or moved, markers being written.
    pub const fn is_transient(self) -> bool {
        matches!(
            self,
            Self::LEADER_NOT_AVAILABLE
                | Self::NOT_LEADER
                | Self::COORDINATOR_LOADING
                | Self::COORDINATOR_NOT_AVAILABLE
                | Self::NOT_COORDINATOR
                | Self::CONCURRENT_TRANSACTIONS
        )
    }

    /// Whether the identity is no longer the newest of its id: the transaction has ended, one way or the other.
    pub const fn is_doubt(self) -> bool {
        matches!(
            self,
            Self::INVALID_PRODUCER_EPOCH
                | Self::INVALID_TXN_STATE
                | Self::INVALID_PRODUCER_ID_MAPPING
                | Self::PRODUCER_FENCED
        )
    }

    const fn name(self) -> &'static str {
        match self {
            Self::NONE => "none",
            Self::LEADER_NOT_AVAILABLE => "leader not available",
            Self::NOT_LEADER => "not leader",
            Self::COORDINATOR_LOADING => "coordinator load in progress",
            Self::COORDINATOR_NOT_AVAILABLE => "coordinator not available",
            Self::NOT_COORDINATOR => "not coordinator",
            Self::INVALID_PRODUCER_EPOCH => "invalid producer epoch",
            Self::INVALID_TXN_STATE => "invalid transaction state",
            Self::INVALID_PRODUCER_ID_MAPPING => "invalid producer id mapping",
            Self::INVALID_TRANSACTION_TIMEOUT => "invalid transaction timeout",
            Self::CONCURRENT_TRANSACTIONS => "concurrent transactions",
            Self::UNSTABLE_OFFSET_COMMIT => "unstable offset commit",
            Self::PRODUCER_FENCED => "producer fenced",
            Self(_) => "see the protocol's list of error codes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_says_one_thing_only_and_its_name() {
        for code in (-1..130).map(BrokerCode) {
            assert!(!(code.is_transient() && code.is_doubt()), "{code}");
        }
        assert!(!BrokerCode::NONE.is_transient() && !BrokerCode::NONE.is_doubt());
        assert_eq!(BrokerCode(90).to_string(), "broker error 90 (producer fenced)");
    }
}
