//! One order, as it stands in a line of a partition file.
//!
//! Owns: the fields and their units.
//! Does not own: how an order is made ([`crate::generate`], [`crate::import`]). `verify` reads the lines by a struct
//! of its own, so that a mistake here cannot hide itself.
//! Runs on: anywhere.

use serde::{Deserialize, Serialize};
use tidegate::state::StateType;

/// One order of one user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, StateType)]
pub(crate) struct Order {
    /// Unique in a data set; counted from 1.
    pub(crate) order_id: u64,
    /// Who ordered.
    pub(crate) user_id: u64,
    /// The price in cents; 0 is allowed.
    pub(crate) amount_cents: i64,
    /// Always `paid` in the data sets made here.
    pub(crate) status: String,
    /// When it was ordered, in milliseconds since 1970-01-01 UTC.
    pub(crate) event_time_ms: i64,
    /// Where it was read; no part of its line.
    #[serde(skip)]
    pub(crate) place: Place,
}

/// A place in a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, StateType)]
pub(crate) struct Place {
    /// The partition.
    pub(crate) partition: i32,
    /// The offset in it.
    pub(crate) offset: i64,
}

/// Of an order that was read from no topic.
impl Default for Place {
    fn default() -> Self {
        Self { partition: -1, offset: -1 }
    }
}

/// The status of all orders that this program writes.
pub(crate) const PAID: &str = "paid";
