//! What can go wrong between a request and its answer.
//!
//! Owns: the error. Does not own: whether to ask again (the decisions of [`tidegate_engine::broker`] say). Runs on: plain data.

use std::io;

use tidegate_engine::broker::BrokerCode;

/// A request that came to nothing, or was refused.
#[derive(Debug, thiserror::Error)]
pub enum WireError {
    /// No answer: the connection could not be made, broke, or the time limit passed. The request may or may not have been executed.
    #[error("{request} got no answer from the broker at {address}")]
    NoAnswer {
        /// Which request.
        request: &'static str,
        /// `host:port`.
        address: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The broker answered with an error code.
    #[error("{request} was refused by the broker at {address}: {code}")]
    Refused {
        /// Which request.
        request: &'static str,
        /// `host:port`.
        address: String,
        /// The code.
        code: BrokerCode,
    },
    /// The broker does not offer a version of the request that is known here.
    #[error(
        "the broker at {address} does not offer {request} in a version from {oldest} to {newest}\n  \
         help: Kafka brokers of version 3.0 or later are needed"
    )]
    NotOffered {
        /// Which request.
        request: &'static str,
        /// `host:port`.
        address: String,
        /// The oldest version known here.
        oldest: i16,
        /// The newest version known here.
        newest: i16,
    },
    /// An answer that cannot be read, or a request that cannot be written.
    #[error("{request} and the broker at {address} do not understand each other: {reason}")]
    Malformed {
        /// Which request.
        request: &'static str,
        /// `host:port`.
        address: String,
        /// What is wrong.
        reason: String,
    },
}

impl WireError {
    /// The broker's code, if it gave one.
    pub const fn code(&self) -> Option<BrokerCode> {
        match self {
            Self::Refused { code, .. } => Some(*code),
            Self::NoAnswer { .. } | Self::NotOffered { .. } | Self::Malformed { .. } => None,
        }
    }

    /// Whether nothing is known about the request: it may have been executed, and asking again may help.
    pub const fn is_no_answer(&self) -> bool {
        matches!(self, Self::NoAnswer { .. })
    }

    /// Whether asking again later may help.
    pub fn is_transient(&self) -> bool {
        self.is_no_answer() || self.code().is_some_and(BrokerCode::is_transient)
    }
}
