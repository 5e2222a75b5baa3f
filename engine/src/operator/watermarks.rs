//! Assigns event times and makes watermarks.
//!
//! Owns: the highest event time seen. Does not own: the minimum over channels (see [`crate::exchange::watermark_valve`]).
//! Runs on: the slot's thread, right behind its source, so that each subtask's watermark speaks for what it reads.

use std::sync::Arc;
use std::time::Duration;

use super::{BatchCursor, Operator, Output, Progress};
use crate::element::EventTime;
use crate::error::JobError;

/// How watermarks are made: the highest event time seen, minus the bound, minus one millisecond.
pub struct WatermarkStrategy<T> {
    bound_ms: i64,
    event_time: Arc<dyn Fn(&T) -> EventTime + Send + Sync>,
}

impl<T> Clone for WatermarkStrategy<T> {
    fn clone(&self) -> Self {
        Self { bound_ms: self.bound_ms, event_time: Arc::clone(&self.event_time) }
    }
}

impl<T> std::fmt::Debug for WatermarkStrategy<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatermarkStrategy").field("bound_ms", &self.bound_ms).finish_non_exhaustive()
    }
}

/// Starts a watermark strategy.
#[derive(Clone, Copy, Debug)]
pub struct Watermarks {
    bound: Duration,
}

impl Watermarks {
    /// Records come at most `bound` out of order.
    pub fn bounded_out_of_orderness(bound: Duration) -> Self {
        Self { bound }
    }

    /// Event times never fall.
    pub fn ascending() -> Self {
        Self { bound: Duration::ZERO }
    }

    /// Reads the event time, in milliseconds since 1970, from a record.
    pub fn event_time<T>(self, millis: impl Fn(&T) -> i64 + Send + Sync + 'static) -> WatermarkStrategy<T> {
        WatermarkStrategy {
            bound_ms: i64::try_from(self.bound.as_millis()).unwrap_or(i64::MAX),
            event_time: Arc::new(move |record| EventTime(millis(record))),
        }
    }
}

/// The operator of [`WatermarkStrategy`].
#[derive(Debug)]
pub struct AssignWatermarks<T> {
    strategy: WatermarkStrategy<T>,
    highest: Option<i64>,
    sent: EventTime,
}

impl<T> AssignWatermarks<T> {
    /// Has seen nothing yet.
    pub fn new(strategy: WatermarkStrategy<T>) -> Self {
        Self { strategy, highest: None, sent: EventTime::MIN }
    }
}

impl<T: 'static> Operator<T, T> for AssignWatermarks<T> {
    fn process(&mut self, input: &mut BatchCursor<T>, out: &mut Output<T>) -> Result<Progress, JobError> {
        while let Some((value, _)) = input.next() {
            let time = (self.strategy.event_time)(&value);
            self.highest = Some(self.highest.map_or(time.0, |h| h.max(time.0)));
            out.batch.push(value, Some(time));
        }
        Ok(Progress::Done)
    }

    fn outgoing_watermark(&mut self, watermark: EventTime) -> Option<EventTime> {
        // Only the end of the input speaks through; watermarks from before this operator know other event times.
        (watermark == EventTime::MAX).then_some(watermark)
    }

    fn generated_watermark(&mut self) -> Option<EventTime> {
        let mark = EventTime(self.highest?.saturating_sub(self.strategy.bound_ms).saturating_sub(1));
        (mark > self.sent).then(|| {
            self.sent = mark;
            mark
        })
    }
}
