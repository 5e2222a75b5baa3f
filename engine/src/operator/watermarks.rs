//! Assigns event times and makes watermarks.
//!
//! Right behind its source the strategy is applied to each split (a partition of a topic): the watermark is the minimum over the splits
//! that are neither idle nor ended, so that a split that is read later than the others does not make its records late. A split without a
//! record yet holds the watermark back. Elsewhere, or behind a source that tells nothing about splits, the input counts as one split.
//! (Flink: `WatermarkOutputMultiplexer`, FLIP-27, FLIP-182.)
//!
//! Owns: the strategy, when the watermark rises. Does not own: how far each split is ([`super::split_clock`]), the minimum over
//! channels (see [`crate::exchange::watermark_valve`]). Runs on: the slot's thread, right behind its source, so that each subtask's
//! watermark speaks for what it reads.

use std::sync::Arc;
use std::time::Duration;

use super::split_clock::SplitClocks;
use super::{BatchCursor, Operator, Output, Progress, SplitHearing};
use crate::clock::Moment;
use crate::element::{EventTime, SplitNotes, SplitRun, StreamStatus, WHOLE_INPUT};
use crate::error::JobError;

/// Reads a record's event time; `None`: the one that the source gave it.
type ReadTime<T> = Option<Arc<dyn Fn(&T) -> EventTime + Send + Sync>>;

/// How watermarks are made: the highest event time seen, minus the bound, minus one millisecond.
pub struct WatermarkStrategy<T> {
    bound_ms: i64,
    event_time: ReadTime<T>,
    idleness: Option<Duration>,
}

impl<T> WatermarkStrategy<T> {
    /// A split (a partition of a topic) that has had no record for so long, although everything it has was read, holds the watermark
    /// back no longer, until its next record. When all splits of a subtask are so, the subtask holds nobody back. A split that is
    /// paused, or held up by a slow job, is not idle. Without this, a silent split holds event time still.
    #[must_use]
    pub fn with_idleness(mut self, after: Duration) -> Self {
        self.idleness = Some(after);
        self
    }
}

impl<T> Clone for WatermarkStrategy<T> {
    fn clone(&self) -> Self {
        let (bound_ms, idleness) = (self.bound_ms, self.idleness);
        Self { bound_ms, event_time: self.event_time.clone(), idleness }
    }
}

impl<T> std::fmt::Debug for WatermarkStrategy<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatermarkStrategy")
            .field("bound_ms", &self.bound_ms)
            .field("idleness", &self.idleness)
            .finish_non_exhaustive()
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
        self.strategy(Some(Arc::new(move |record| EventTime(millis(record)))))
    }

    /// Keeps the event time that the source gave each record, as Kafka's timestamps. A record without one counts as older than all.
    pub fn carried_time<T>(self) -> WatermarkStrategy<T> {
        self.strategy(None)
    }

    fn strategy<T>(self, event_time: ReadTime<T>) -> WatermarkStrategy<T> {
        let bound_ms = i64::try_from(self.bound.as_millis()).unwrap_or(i64::MAX);
        WatermarkStrategy { bound_ms, event_time, idleness: None }
    }
}

/// The operator of [`WatermarkStrategy`].
#[derive(Debug)]
pub struct AssignWatermarks<T> {
    strategy: WatermarkStrategy<T>,
    clocks: SplitClocks,
    /// Of the next batch.
    runs: Vec<SplitRun>,
    sent: EventTime,
    status: StreamStatus,
}

impl<T> AssignWatermarks<T> {
    /// Has seen nothing yet.
    pub fn new(strategy: WatermarkStrategy<T>) -> Self {
        let clocks = SplitClocks::new(strategy.idleness);
        Self { strategy, clocks, runs: Vec::new(), sent: EventTime::MIN, status: StreamStatus::Active }
    }
}

impl<T: 'static> Operator<T, T> for AssignWatermarks<T> {
    fn process(&mut self, input: &mut BatchCursor<T>, out: &mut Output<T>) -> Result<Progress, JobError> {
        let whole = SplitRun { split: WHOLE_INPUT, records: usize::MAX };
        for run in std::mem::take(&mut self.runs).into_iter().chain([whole]) {
            let mut highest = None;
            for _ in 0..run.records {
                let Some((value, carried)) = input.next() else { break };
                let time = match &self.strategy.event_time {
                    Some(read) => read(&value),
                    None => carried.unwrap_or(EventTime::MIN),
                };
                highest = highest.max(Some(time.0));
                out.batch.push(value, Some(time));
            }
            if let Some(highest) = highest {
                self.clocks.advance(run.split, highest);
            }
        }
        Ok(Progress::Done)
    }

    fn outgoing_watermark(&mut self, watermark: EventTime) -> Option<EventTime> {
        // Only the end of the input speaks through; watermarks from before this operator know other event times.
        (watermark == EventTime::MAX).then_some(watermark)
    }

    fn generated_watermark(&mut self) -> Option<EventTime> {
        let lowest = self.clocks.lowest()?;
        let mark = EventTime(lowest.saturating_sub(self.strategy.bound_ms).saturating_sub(1));
        (mark > self.sent).then(|| {
            self.sent = mark;
            mark
        })
    }

    fn split_hearing(&self) -> SplitHearing {
        SplitHearing::Hears
    }

    fn on_splits(&mut self, notes: &SplitNotes) {
        self.clocks.note(notes);
        self.runs.clone_from(&notes.runs);
    }

    fn generated_status(&mut self) -> Option<StreamStatus> {
        let now = if self.clocks.is_idle() { StreamStatus::Idle } else { StreamStatus::Active };
        (now != self.status).then(|| {
            self.status = now;
            now
        })
    }

    fn next_split_deadline(&self) -> Option<Moment> {
        self.clocks.next_deadline()
    }
}
