//! The user functions of a simulated job: running totals with timers, a tally with a last word, planted failures.
//!
//! Owns: them. Does not own: the graph they stand in (see [`super::scenario`]). Runs on: the simulation's thread.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::coverage::{Area, SharedCoverage};
use super::database::Row;
use super::rng::Rng;
use super::source::Record;
use crate::error::JobError;
use crate::operator::Output;
use crate::operator::keyed_process::{KeyedContext, KeyedFunction};
use crate::operator::process_function::ProcessFunction;

/// Timers fire this long after their record.
pub(super) const TIMER_AFTER_MS: i64 = 10;

/// Failures of a user function.
#[derive(Clone, Debug)]
pub(super) struct Failures {
    /// Guards the stream of numbers; one thread uses it.
    pub(super) rng: Arc<Mutex<Rng>>,
    pub(super) one_in: u64,
    pub(super) left: Arc<AtomicU64>,
    pub(super) calm: Arc<AtomicBool>,
    pub(super) coverage: SharedCoverage,
}

impl Failures {
    fn strike(&self) -> Result<(), JobError> {
        let drawn = self.rng.lock().unwrap_or_else(PoisonError::into_inner).one_in(self.one_in);
        if !drawn || self.calm.load(Ordering::Relaxed) || self.left.load(Ordering::Relaxed) == 0 {
            return Ok(());
        }
        self.left.fetch_sub(1, Ordering::Relaxed);
        self.coverage.count(Area::Injected, "function failed");
        Err(JobError::msg("a planted failure of a user function"))
    }
}

/// Running totals with a timer per record time.
#[derive(Clone, Debug)]
pub(super) struct Totals {
    pub(super) failures: Failures,
}

#[derive(Clone, Debug, Default, tidegate_state::StateType)]
pub(super) struct Total {
    count: u64,
    sum: u64,
}

type TotalState = tidegate_state::ValueDeclaration<Total>;

impl KeyedFunction<u64, Record, TotalState, Row> for Totals {
    fn process(
        &mut self,
        record: Record,
        state: &mut tidegate_state::ValueState<'_, Total>,
        context: &mut KeyedContext<'_, u64>,
        out: &mut Output<Row>,
    ) -> Result<(), JobError> {
        self.failures.strike()?;
        let total = state.update(|t| {
            t.count += 1;
            t.sum += record.value;
        })?;
        out.emit(Row::Total { key: record.key, count: total.count, sum: total.sum });
        context.register_event_timer(record.time + TIMER_AFTER_MS);
        Ok(())
    }

    fn on_timer(
        &mut self,
        at_ms: i64,
        _state: &mut tidegate_state::ValueState<'_, Total>,
        context: &mut KeyedContext<'_, u64>,
        out: &mut Output<Row>,
    ) -> Result<(), JobError> {
        out.emit(Row::Timer { key: *context.key(), at: at_ms });
        Ok(())
    }
}

/// Counts the records of its subtask and says so at the end.
#[derive(Clone, Debug)]
pub(super) struct Tally {
    pub(super) records: u64,
}

impl ProcessFunction<Record, Row> for Tally {
    type State = u64;
    const HAS_ON_END: bool = true;

    fn process(
        &mut self,
        _record: Record,
        _time: Option<i64>,
        _out: &mut Output<Row>,
    ) -> Result<(), JobError> {
        self.records += 1;
        Ok(())
    }

    fn on_end(&mut self, out: &mut Output<Row>) -> Result<(), JobError> {
        out.emit(Row::Tally { records: self.records });
        Ok(())
    }

    fn snapshot(&self) -> Vec<u64> {
        vec![self.records]
    }

    fn restore(&mut self, state: Vec<u64>) {
        self.records = state.into_iter().sum();
    }
}
