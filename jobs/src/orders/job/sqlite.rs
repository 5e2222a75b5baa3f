//! The four tables in a SQLite file.
//!
//! Owns: their columns and what is done with a row. Does not own: which stream they take ([`super`]).
//! Runs on: the main thread while the graph is recorded; the closures on the slots' threads.

use tidegate::prelude::*;

use super::UserTotal;
use crate::order::Order;

/// Every order as it is, written over what is there.
pub(super) fn order_event(file: &Path) -> SqliteSink<Order> {
    SqliteSink::table(file, "t_order_event")
        .column("order_id", |order: &Order| order.order_id)
        .column("user_id", |order| order.user_id)
        .column("amount_cents", |order| order.amount_cents)
        .text("status", |order| &order.status)
        .column("event_time_ms", |order| order.event_time_ms)
        .overwrite_by("order_id")
}

/// Each order added to what is there: deliberately not idempotent.
pub(super) fn order_stat(file: &Path) -> SqliteSink<Order> {
    SqliteSink::table(file, "t_order_stat")
        .column("user_id", |order: &Order| order.user_id)
        .column("order_count", |_| 1_i64)
        .column("total_amount_cents", |order| order.amount_cents)
        .add_by("user_id")
}

/// The total from keyed state, written over what is there.
pub(super) fn user_total(file: &Path) -> SqliteSink<UserTotal> {
    SqliteSink::table(file, "t_user_total")
        .column("user_id", |row: &UserTotal| row.user_id)
        .column("order_count", |row| row.totals.order_count)
        .column("total_amount_cents", |row| row.totals.amount_cents)
        .overwrite_by("user_id")
}

/// A row per applied order, without any key: the table that cannot hide a duplicate.
pub(super) fn order_log(file: &Path) -> SqliteSink<Order> {
    SqliteSink::table(file, "t_order_log")
        .column("order_id", |order: &Order| order.order_id)
        .column("user_id", |order| order.user_id)
        .column("amount_cents", |order| order.amount_cents)
        .append()
}
