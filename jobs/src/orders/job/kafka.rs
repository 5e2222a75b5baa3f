//! Orders from a topic, and orders as they are into a topic.
//!
//! Owns: how a record becomes an order and an order a record. Does not own: where in the graph they stand ([`super`]).
//! Runs on: the main thread while the graph is recorded; the closures on the slots' threads.

use tidegate::Mode;
use tidegate::connectors::kafka::{BadRecord, KafkaSink, KafkaSource, StoppingOffsets};
use tidegate::prelude::*;

use crate::address::servers::KafkaAddress;
use crate::order::{Order, Place};
use crate::run::{BrokenLines, RunArgs};

/// The topic from its first record to its end as it is at the start, or without end.
pub(super) fn source(address: &KafkaAddress, args: &RunArgs) -> KafkaSource<Order> {
    let source = KafkaSource::new(&address.bootstrap, &address.topic, |record| {
        // A deleted key orders nothing.
        let Some(value) = record.value else { return Ok(None) };
        let mut order: Order = serde_json::from_slice(value)?;
        order.place = Place { partition: record.partition, offset: record.offset };
        Ok(Some(order))
    });
    let source = match args.broken_lines {
        BrokenLines::Fail => source.on_bad_record(BadRecord::Fail),
        BrokenLines::Skip => source.on_bad_record(BadRecord::Skip),
    };
    let source = if args.follow { source } else { source.bounded(StoppingOffsets::Latest) };
    match args.rate {
        Some(rate) => source.rate_per_second(rate),
        None => source,
    }
}

/// Each order into the topic, by its user.
pub(super) fn detail(address: &KafkaAddress, mode: Mode, orders: &DataStream<Order>) {
    let sink = KafkaSink::<Order>::json(&address.bootstrap, &address.topic)
        .key(|order: &Order| order.user_id.to_string());
    match mode {
        Mode::ExactlyOnce => orders.sink("order_detail_sink", sink),
        Mode::AtLeastOnce | Mode::None => orders.sink("order_detail_sink", sink.at_least_once()),
    };
}
