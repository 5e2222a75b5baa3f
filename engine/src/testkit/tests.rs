//! Jobs under the harness.
//!
//! Owns: the cases. Does not own: the operators. Runs on: the test's thread.

use tidegate_state::{ValueState, value};

use super::*;
use crate::api::StreamEnvironment;
use crate::error::{JobError, Result};
use crate::operator::Output;
use crate::operator::keyed_process::{KeyedContext, KeyedFunction};
use crate::operator::watermarks::Watermarks;
use std::time::Duration;

/// The sum of each key; a second of event time after each record, the sum once more, negative.
#[derive(Clone)]
struct Sums;

impl KeyedFunction<u64, (u64, i64), tidegate_state::ValueDeclaration<i64>, (u64, i64)> for Sums {
    fn process(
        &mut self,
        (_, amount): (u64, i64),
        sum: &mut ValueState<'_, i64>,
        ctx: &mut KeyedContext<'_, u64>,
        out: &mut Output<(u64, i64)>,
    ) -> Result<()> {
        if amount < 0 {
            return Err(JobError::msg("an amount below zero"));
        }
        let sum = *sum.update(|sum| *sum += amount)?;
        ctx.register_event_timer(amount + 1_000);
        out.emit((*ctx.key(), sum));
        Ok(())
    }

    fn on_timer(
        &mut self,
        _at_ms: i64,
        sum: &mut ValueState<'_, i64>,
        ctx: &mut KeyedContext<'_, u64>,
        out: &mut Output<(u64, i64)>,
    ) -> Result<()> {
        let sum = *sum.update(|_| ())?;
        out.emit((*ctx.key(), -sum));
        Ok(())
    }
}

fn build(env: &StreamEnvironment, parallelism: &u32) -> Result<()> {
    let watermarks = Watermarks::bounded_out_of_orderness(Duration::ZERO);
    let _ = env
        .source("amounts", ScriptedSource::<(u64, i64)>::default())
        .watermarks(watermarks.event_time(|(_, amount): &(u64, i64)| *amount))
        .key_by(|(key, _)| *key)
        .process_with("sums", value::<i64>("sum"), Sums)
        .parallelism(*parallelism)
        .sink("out", CollectedSink::default());
    Ok(())
}

#[test]
fn two_records_of_one_key_are_added_up_and_state_lasts_from_run_to_run() {
    let mut job = JobHarness::of(build, &3).unwrap();
    let (source, sink) = (job.source::<(u64, i64)>("amounts"), job.sink::<(u64, i64)>("out"));
    source.push((7, 250));
    source.push((7, 100));
    job.run_until_idle().unwrap();
    assert_eq!(sink.last(), Some((7, 350)));
    assert_eq!(sink.take().len(), 2);
    source.push((7, 5));
    job.run_until_idle().unwrap();
    assert_eq!(sink.records(), [(7, 355)]);
}

#[test]
fn event_time_fires_timers_and_so_does_the_end() {
    let mut job = JobHarness::of(build, &1).unwrap();
    let sink = job.sink::<(u64, i64)>("out");
    job.source::<(u64, i64)>("amounts").push_all([(1, 10), (2, 2_000)]);
    job.run_until_idle().unwrap();
    assert_eq!(sink.take(), [(1, 10), (2, 2_000), (1, -10)]);
    job.finish().unwrap();
    assert_eq!(sink.records(), [(2, -2_000)]);
}

#[test]
fn a_failing_function_is_named() {
    let mut job = JobHarness::of(build, &1).unwrap();
    job.source("amounts").push((1_u64, -1_i64));
    let error = job.run_until_idle().unwrap_err().to_string();
    assert!(error.contains("sums") && error.contains("an amount below zero"), "{error}");
}

#[test]
#[should_panic(expected = "it has amounts")]
fn a_source_that_is_not_there_is_named_with_those_that_are() {
    let _ = JobHarness::of(build, &1).unwrap().source::<u64>("amount");
}

#[test]
#[should_panic(expected = "are of type (u64, i64)")]
fn a_record_of_another_type_is_named() {
    let _ = JobHarness::of(build, &1).unwrap().sink::<String>("out");
}
