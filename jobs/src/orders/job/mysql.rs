//! The four tables in a MySQL database. They are made by `orders tables`; the job never makes them.
//!
//! Owns: their columns, and what is done with a row in each mode. Does not own: the streams ([`super`]).
//! Runs on: the main thread while the graph is recorded; the closures on the slots' threads.

use tidegate::connectors::mysql::{Columns, MysqlSink};
use tidegate::engine::api::KeyedStream;
use tidegate::prelude::DataStream;

use super::UserTotal;
use crate::address::servers::{MysqlAddress, MysqlMode};
use crate::order::Order;

/// Keys that an upsert sink writes together, where the address does not say.
const UPSERT_ROWS: usize = 1_000;

/// Puts the sinks behind the streams.
pub(super) fn sinks<ByOrder, ByUser>(
    address: &MysqlAddress,
    orders: &DataStream<Order>,
    by_order: &KeyedStream<Order, u64, ByOrder>,
    by_user: &KeyedStream<Order, u64, ByUser>,
    totals: &DataStream<UserTotal>,
) where
    ByOrder: Fn(&Order) -> u64 + Clone + Send + Sync + 'static,
    ByUser: Fn(&Order) -> u64 + Clone + Send + Sync + 'static,
{
    let event = table(address, "t_order_event", event_columns());
    let log = table(address, "t_order_log", log_columns());
    let total = table(address, "t_user_total", total_columns());
    let stat = table(address, "t_order_stat", added_columns());
    match address.mode {
        MysqlMode::Xa => {
            by_order.sink("order_event_sink", event.overwrite_by("order_id"));
            by_user.sink("order_stat_sink", stat.add_by("user_id"));
            totals.sink("user_total_sink", total.overwrite_by("user_id"));
            orders.sink("order_log_sink", log.append());
        }
        MysqlMode::Staging => {
            by_order.sink("order_event_sink", event.overwrite_by("order_id").staging());
            by_user.sink("order_stat_sink", stat.add_by("user_id").staging());
            totals.sink("user_total_sink", total.overwrite_by("user_id").staging());
            orders.sink("order_log_sink", log.append().staging());
        }
        MysqlMode::Plain => {
            by_order.sink("order_event_sink", event.overwrite_by("order_id").plain());
            by_user.sink("order_stat_sink", stat.add_by("user_id").plain());
            totals.sink("user_total_sink", total.overwrite_by("user_id").plain());
            orders.sink("order_log_sink", log.append().plain());
        }
        // What is added to cannot be written twice: the sums come from keyed state.
        MysqlMode::Upsert => {
            let stat = table(address, "t_order_stat", total_columns());
            let rows = address.batch_rows.unwrap_or(UPSERT_ROWS);
            by_order.sink("order_event_sink", event.upsert_by("order_id").batch_rows(rows));
            totals.sink("order_stat_sink", stat.upsert_by("user_id").batch_rows(rows));
            totals.sink("user_total_sink", total.upsert_by("user_id").batch_rows(rows));
            by_order.sink("order_log_sink", log.upsert_by("order_id").batch_rows(rows));
        }
    }
}

fn table<T>(address: &MysqlAddress, name: &str, columns: Columns<T>) -> MysqlSink<T> {
    let sink = MysqlSink::table(address.url.as_str(), name).columns(|_| columns);
    match address.batch_rows {
        Some(rows) => sink.batch_rows(rows),
        None => sink,
    }
}

/// Every order as it is, written over what is there.
fn event_columns() -> Columns<Order> {
    Columns::new()
        .column("order_id", |order: &Order| order.order_id)
        .column("user_id", |order| order.user_id)
        .column("amount_cents", |order| order.amount_cents)
        .text("status", |order| &order.status)
        .column("event_time_ms", |order| order.event_time_ms)
}

/// Each order added to what is there: deliberately not idempotent.
fn added_columns() -> Columns<Order> {
    Columns::new()
        .column("user_id", |order: &Order| order.user_id)
        .column("order_count", |_| 1_i64)
        .column("total_amount_cents", |order| order.amount_cents)
}

/// The total from keyed state, written over what is there.
fn total_columns() -> Columns<UserTotal> {
    Columns::new()
        .column("user_id", |row: &UserTotal| row.user_id)
        .column("order_count", |row| row.totals.order_count.cast_signed())
        .column("total_amount_cents", |row| row.totals.amount_cents)
}

/// A row per applied order with the place it was read at.
fn log_columns() -> Columns<Order> {
    Columns::new()
        .column("order_id", |order: &Order| order.order_id)
        .column("user_id", |order| order.user_id)
        .column("amount_cents", |order| order.amount_cents)
        .column("source_partition", |order| i64::from(order.place.partition))
        .column("source_offset", |order| order.place.offset)
}
