//! The engine's own chain without a scheduler: batches are pushed into its first stage, as a subtask's head does.
//!
//! Owns: the chain and the stage at its end, which counts. Does not own: operators. Runs on: the main thread.

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::element::{Batch, CheckpointBarrier};
use tidegate_engine::operator::filter::Filter;
use tidegate_engine::operator::map::Map;
use tidegate_engine::operator::pipe::{Piped, map};
use tidegate_engine::operator::{
    AnyStage, Chained, Downstream, Flow, Operator, OperatorPart, Stage, StageContext, StageControl,
    StageElement, StageLimits, StageStatus,
};
use tidegate_engine::taskworker::mail::TaskFailure;

use super::by_hand::{BATCH, check};
use super::records::{ChainRecord, kept};
use crate::error::BenchError;
use crate::harness::Run;
use crate::stopwatch::Stopwatch;

/// The end of the chain: counts records and drops them.
struct Counter(Rc<Cell<u64>>);

impl AnyStage for Counter {
    fn resume(&mut self, _cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        Ok(Flow::Idle)
    }

    fn snapshot(
        &mut self,
        _barrier: &CheckpointBarrier,
        _parts: &mut Vec<OperatorPart>,
        _cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        Ok(())
    }

    fn control(&mut self, _control: StageControl, _cx: &mut StageContext) -> Result<(), TaskFailure> {
        Ok(())
    }

    fn poll(&mut self, _cx: &mut StageContext) -> Result<bool, TaskFailure> {
        Ok(false)
    }

    fn status(&self) -> StageStatus {
        StageStatus::SETTLED
    }
}

impl<T> Stage<T> for Counter {
    fn push(&mut self, element: StageElement<T>, _cx: &mut StageContext) -> Result<(), TaskFailure> {
        if let StageElement::Records(batch) = black_box(element) {
            self.0.set(self.0.get() + batch.len() as u64);
        }
        Ok(())
    }
}

/// map → filter → map as three operators.
pub(super) fn three_operators<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    drive::<R>("three operators", records, |end| {
        let second = before::<R, R, _>("map", Map(R::second), end);
        let filter = before::<R, R, _>("filter", Filter(R::keep), second);
        before("map", Map(R::first), filter)
    })
}

/// The same steps as one operator.
pub(super) fn one_pipe<R: ChainRecord>(records: u64) -> Result<Run, BenchError> {
    drive::<R>("one pipe", records, |end| {
        before("pipe", Piped(map(R::first).filter(R::keep).map(R::second)), end)
    })
}

fn before<In, Out, Op>(name: &str, op: Op, next: Box<dyn Stage<Out>>) -> Box<dyn Stage<In>>
where
    In: 'static,
    Out: Clone + 'static,
    Op: Operator<In, Out>,
{
    Box::new(Chained::new(Arc::from(name), op, Downstream::new(vec![next]), BATCH as usize, false))
}

fn drive<R: ChainRecord>(
    candidate: &'static str,
    records: u64,
    chain: impl FnOnce(Box<dyn Stage<R>>) -> Box<dyn Stage<R>>,
) -> Result<Run, BenchError> {
    let written = Rc::new(Cell::new(0));
    let mut chain = chain(Box::new(Counter(Rc::clone(&written))));
    let batch_age = Duration::from_millis(5);
    let mut cx = StageContext::new(StageLimits { batch_records: BATCH as usize, batch_age });
    let failed = |failure: TaskFailure| BenchError::Chain { candidate, source: Box::new(failure) };
    let watch = Stopwatch::start();
    for start in (0..records).step_by(BATCH as usize) {
        let batch: Batch<R> = (start..records.min(start + BATCH)).map(R::make).collect();
        chain.push(StageElement::Records(batch), &mut cx).map_err(failed)?;
        while chain.resume(&mut cx).map_err(failed)? != Flow::Idle {}
    }
    let run = watch.stop(records);
    check(candidate, written.get(), kept::<R>(records)).map(|()| run)
}
