//! The record that goes to and comes from servers: an order of about a hundred bytes of JSON.
//!
//! Owns: its making. Does not own: its way. Runs on: plain data.

use serde::{Deserialize, Serialize};

/// An order.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Order {
    /// Its number, from 0.
    pub(crate) order_id: u64,
    /// Who ordered.
    pub(crate) user_id: u64,
    /// For how much.
    pub(crate) amount_cents: i64,
    /// A word.
    pub(crate) status: String,
    /// When it was made, in milliseconds since 1970; 0 where nobody asks.
    pub(crate) event_time_ms: i64,
}

impl Order {
    /// The order of this number.
    pub(crate) fn make(index: u64) -> Self {
        Self {
            order_id: index,
            user_id: index.wrapping_mul(0x9E37_79B9_7F4A_7C15) % 10_000,
            amount_cents: i64::try_from(index % 90_000).unwrap_or(0) + 100,
            status: "PAID".to_owned(),
            event_time_ms: 0,
        }
    }
}
