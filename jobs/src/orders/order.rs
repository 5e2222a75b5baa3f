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
}

/// The status of all orders that this program writes.
pub(crate) const PAID: &str = "paid";
