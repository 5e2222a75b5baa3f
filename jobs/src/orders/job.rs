//! The orders job: orders in, four tables out, each of which would show another kind of mistake.
//!
//! Owns: the graph. The columns of the tables stand beside it, a file for each kind of database.
//! Does not own: the flags ([`crate::run`]); the tables are audited by [`crate::verify`], which shares nothing with this file.
//! Runs on: the main thread while the graph is recorded; the closures on the slots' threads.

#[cfg(feature = "rdkafka")]
mod kafka;
#[cfg(feature = "mysql")]
mod mysql;
mod sqlite;

use tidegate::Mode;
use tidegate::connectors::file::FileCounters;
use tidegate::prelude::*;

use crate::address::{SinkAddress, SourceAddress};
use crate::generate::order_of;
use crate::order::Order;
use crate::run::RunArgs;

/// What one user has ordered, in keyed state.
#[derive(Debug, Clone, Default, StateType)]
struct Totals {
    order_count: u64,
    amount_cents: i64,
}

/// A row of `t_user_total`.
#[derive(Debug, Clone, StateType)]
struct UserTotal {
    user_id: u64,
    totals: Totals,
}

/// Records the job, and answers with the counters of its input.
pub(crate) fn build(env: &StreamEnvironment, args: &RunArgs) -> Result<FileCounters> {
    let mut counters = FileCounters::default();
    let orders = match &args.source {
        SourceAddress::Datagen => {
            let (seed, users) = (args.seed, args.users);
            let mut source = Datagen::new(move |index| order_of(seed, index + 1, users));
            if let Some(orders) = args.orders {
                source = source.bounded(orders);
            }
            if let Some(rate) = args.rate {
                source = source.rate_per_second(rate);
            }
            env.source("orders", source)
        }
        SourceAddress::Files(folder) => {
            let mut source = FileSource::json_lines::<Order>(folder).on_broken_line(args.broken_lines.into());
            if args.follow {
                source = source.unbounded();
            }
            if let Some(rate) = args.rate {
                source = source.rate_per_second(rate);
            }
            counters = source.counters();
            env.source("orders", source)
        }
        #[cfg(feature = "rdkafka")]
        SourceAddress::Kafka(address) => env.source("orders", kafka::source(address, args)),
    };
    let by_event_time = Watermarks::bounded_out_of_orderness(seconds(5));
    let orders = orders.watermarks(by_event_time.event_time(|order: &Order| order.event_time_ms));
    #[cfg(feature = "rdkafka")]
    if let Some(SinkAddress::Kafka(address)) = &args.detail {
        kafka::detail(address, args.settings.mode, &orders);
    }
    tables(&orders, args);
    Ok(counters)
}

/// Tables that are added to or overwritten have their key in front of them, so that one subtask sees all rows of a key.
fn tables(orders: &DataStream<Order>, args: &RunArgs) {
    let by_order = orders.key_by(|order| order.order_id);
    let by_user = orders.key_by(|order| order.user_id);
    let totals = by_user.process(
        "user_total",
        value::<Totals>("totals"),
        |order: Order, totals, ctx, out: &mut Output<UserTotal>| {
            let before = totals.get()?.map_or(0, |totals| totals.amount_cents);
            let amount_cents = before.checked_add(order.amount_cents).ok_or_else(|| too_large(&order))?;
            let totals = totals.update(|totals| {
                totals.order_count += 1;
                totals.amount_cents = amount_cents;
            })?;
            out.emit(UserTotal { user_id: *ctx.key(), totals: totals.clone() });
            Ok(())
        },
    );
    match &args.sink {
        SinkAddress::Blackhole => {
            by_order.sink("order_event_sink", BlackholeSink::new());
            by_user.sink("order_stat_sink", BlackholeSink::new());
            totals.sink("user_total_sink", BlackholeSink::new());
            orders.sink("order_log_sink", BlackholeSink::new());
        }
        SinkAddress::Sqlite(file) if args.settings.mode == Mode::None => {
            by_order.sink("order_event_sink", sqlite::order_event(file).plain());
            by_user.sink("order_stat_sink", sqlite::order_stat(file).plain());
            totals.sink("user_total_sink", sqlite::user_total(file).plain());
            orders.sink("order_log_sink", sqlite::order_log(file).plain());
        }
        SinkAddress::Sqlite(file) => {
            by_order.sink("order_event_sink", sqlite::order_event(file));
            by_user.sink("order_stat_sink", sqlite::order_stat(file));
            totals.sink("user_total_sink", sqlite::user_total(file));
            orders.sink("order_log_sink", sqlite::order_log(file));
        }
        #[cfg(feature = "mysql")]
        SinkAddress::Mysql(address) => mysql::sinks(address, orders, &by_order, &by_user, &totals),
        #[cfg(feature = "rdkafka")]
        SinkAddress::Kafka(address) => kafka::detail(address, args.settings.mode, orders),
    }
}

/// The same order would fail again: no restart can mend it.
fn too_large(order: &Order) -> JobError {
    let Order { order_id, user_id, .. } = order;
    JobError::msg(format!("with order {order_id} the total of user {user_id} is too large for 64 bits"))
        .final_()
}
