//! What a client may ask of the broker model, and what it is told.
//!
//! Owns: requests, replies, states of a transaction. Does not own: what becomes of them (see [`super::broker`]). Runs on: plain data.

use crate::broker::{BrokerCode, Producer, SlotState};

/// A request. `X` names transactions, `R` is a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request<X, R> {
    /// `InitProducerId`.
    Init {
        /// Transactional id.
        id: X,
        /// After so many microseconds an open transaction is aborted.
        timeout_us: u64,
    },
    /// `AddPartitionsToTxn`: the first one begins the transaction.
    AddPartition(X, Producer, String),
    /// `Produce` into a partition that is part of the transaction.
    Produce(X, Producer, String, Vec<R>),
    /// `AddOffsetsToTxn`.
    AddOffsets(X, Producer, String),
    /// `TxnOffsetCommit` to a group that is part of the transaction.
    CommitOffset(X, Producer, String, GroupOffset),
    /// `EndTxn`.
    End {
        /// Transactional id.
        id: X,
        /// Whose transaction.
        producer: Producer,
        /// Commit, or abort.
        commit: bool,
        /// Version of the request.
        version: i16,
    },
    /// `OffsetFetch`.
    FetchOffset {
        /// Consumer group.
        group: String,
        /// Refuse an offset that an open transaction may change.
        require_stable: bool,
    },
    /// `ListTransactions`.
    List,
}

/// What a group says of a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupOffset {
    /// The offset.
    pub offset: u64,
    /// The text beside it, a number here.
    pub note: u64,
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply<X> {
    /// Done (0), or refused.
    Code(BrokerCode),
    /// The id's producer from now on.
    Producer(Producer),
    /// A group's offset.
    Offset(Option<GroupOffset>),
    /// Every transactional id.
    Listed(Vec<(X, TransactionState)>),
}

impl TransactionState {
    /// As a sink sees it.
    pub const fn seen(self) -> SlotState {
        match self {
            Self::Empty => SlotState::Empty,
            Self::Ongoing => SlotState::Ongoing,
            Self::Ending { .. } => SlotState::Ending,
            Self::Ended { .. } => SlotState::Ended,
        }
    }
}

/// State of a transactional id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionState {
    /// Initialised; nothing was begun.
    Empty,
    /// Begun.
    Ongoing,
    /// Decided; markers are being written.
    Ending {
        /// Commit, or abort.
        commit: bool,
        /// When the markers are written.
        due: u64,
    },
    /// Over.
    Ended {
        /// Commit, or abort.
        commit: bool,
    },
}
