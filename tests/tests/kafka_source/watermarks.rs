//! Event time over partitions that are read at different speeds.

use std::time::Duration;

use tidegate::connectors::kafka::{KafkaSource, StoppingOffsets};
use tidegate::engine::operator::watermarks::{WatermarkStrategy, Watermarks};
use tidegate::prelude::*;

use crate::broker::{Topic, Written};
use crate::live_job::{LiveJob, eventually};
use crate::reading::{Placed, numbers};
use tidegate_tests::checkpoints_every;

/// Event time of a record, and the watermark when it came.
type Seen = (i64, i64);

fn start(
    source: KafkaSource<Placed>,
    strategy: WatermarkStrategy<Placed>,
    parallelism: u32,
) -> (LiveJob, CollectSink<Seen>) {
    let sink = CollectSink::new();
    let out = sink.clone();
    let build = move |env: &StreamEnvironment| {
        let seen = env.source("topic", source).watermarks(strategy).key_by(|_: &Placed| 0u64).process(
            "seen",
            value::<u64>("count"),
            |_record: Placed, _count, ctx, out: &mut Output<Seen>| {
                out.emit((ctx.event_time_ms().unwrap_or(i64::MIN), ctx.watermark_ms()));
                Ok(())
            },
        );
        let _ = seen.sink("out", out);
    };
    (LiveJob::start(build, parallelism, checkpoints_every(50), None), sink)
}

fn record(partition: i32, time_ms: i64) -> Written {
    let value = Some(time_ms.to_string());
    Written { partition, value, time_ms: Some(time_ms), ..Written::default() }
}

#[test]
fn records_of_a_partition_that_is_read_later_are_not_late() {
    let topic = Topic::new(3);
    // Each partition spans the same time, and each is longer than a batch.
    topic.write((0..3).flat_map(|partition| (1..4_000).map(move |step| record(partition, step * 1_000))));
    for parallelism in [1, 2] {
        let strategy = Watermarks::ascending().carried_time();
        let (job, sink) = start(numbers(&topic).bounded(StoppingOffsets::Latest), strategy, parallelism);
        job.end().unwrap();
        let seen = sink.records();
        assert_eq!(seen.len(), 3 * 3_999);
        let late = seen.iter().filter(|(time, watermark)| time <= watermark).count();
        // How far the watermark rises meanwhile is the broker's choice: it may send one partition whole before the next.
        assert_eq!(late, 0, "parallelism {parallelism}");
    }
}

#[test]
fn a_silent_partition_holds_the_watermark_back_until_it_is_idle() {
    let topic = Topic::new(2);
    topic.write((1..100).map(|step| record(0, step * 1_000)));
    let ascending =
        || Watermarks::ascending().event_time(|record: &Placed| i64::try_from(record.2).unwrap_or(0));
    let (held, held_sink) = start(numbers(&topic), ascending(), 1);
    let (free, free_sink) = start(numbers(&topic), ascending().with_idleness(Duration::from_millis(300)), 1);
    eventually("the first records", || held_sink.records().len() >= 99 && free_sink.records().len() >= 99);
    let mut step = 100;
    eventually("a watermark that the silent partition does not hold back", || {
        topic.write([record(0, step * 1_000)]);
        step += 1;
        free_sink.records().iter().any(|(_, watermark)| *watermark >= 99_000)
    });
    // The silent one speaks, and holds event time where it is. Its own records are late: they waited for nobody.
    topic.write([record(1, 50_000)]);
    eventually("its record", || free_sink.records().iter().any(|seen| seen.0 == 50_000 && seen.1 > 50_000));
    let all = held_sink.records();
    assert!(all.iter().all(|(_, watermark)| *watermark <= 50_000), "without idleness event time waits");
    held.cancel();
    free.cancel();
}
