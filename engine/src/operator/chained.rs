//! [`Chained`]: an [`Operator`] as a [`Stage`], with its element in hand and its downstream.
//!
//! Owns: the element in hand, the order output → watermark → end, `ended`. Does not own: what the operator computes.
//! Runs on: the slot's thread.
//!
//! **End of data** (law 7, the part inside a chain). `EndOfData` counts as the maximum watermark, fires event-time timers and calls
//! `on_end` once; `ended` is set with the forwarding of `EndOfData`, never before.

use std::sync::Arc;

use super::{
    AnyStage, BatchCursor, Flow, Operator, OperatorPart, Output, Progress, SplitHearing, Stage, StageContext,
    StageControl, StageElement, StageStatus,
};
use crate::element::{Batch, CheckpointBarrier, EventTime, SplitNotes, StreamStatus};
use crate::error::JobError;
use crate::mutation::{self, Mutation};
use crate::taskworker::mail::TaskFailure;

/// The stages an operator's output goes to.
pub struct Downstream<T> {
    stages: Vec<Box<dyn Stage<T>>>,
}

impl<T> std::fmt::Debug for Downstream<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Downstream").field("stages", &self.stages.len()).finish()
    }
}

impl<T: Clone> Downstream<T> {
    /// Sends a copy to each stage; with none, output is dropped.
    pub fn new(stages: Vec<Box<dyn Stage<T>>>) -> Self {
        Self { stages }
    }

    fn push(&mut self, element: StageElement<T>, cx: &mut StageContext) -> Result<(), TaskFailure> {
        let Some((last, others)) = self.stages.split_last_mut() else { return Ok(()) };
        for stage in others {
            stage.push(element.clone(), cx)?;
        }
        last.push(element, cx)
    }

    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        let mut flow = Flow::Idle;
        for stage in &mut self.stages {
            flow = worse(flow, stage.resume(cx)?);
        }
        Ok(flow)
    }
}

/// `More` wins over `Blocked`: somebody can go on, and all must be idle before the next element.
fn worse(a: Flow, b: Flow) -> Flow {
    match (a, b) {
        (Flow::More, _) | (_, Flow::More) => Flow::More,
        (Flow::Blocked, _) | (_, Flow::Blocked) => Flow::Blocked,
        _ => Flow::Idle,
    }
}

enum InHand<In> {
    Nothing,
    Records(BatchCursor<In>),
    Watermark(EventTime),
    End(EndPhase),
}

#[derive(Clone, Copy)]
enum EndPhase {
    Timers,
    OnEnd,
    Forward,
}

/// An operator in a chain.
pub struct Chained<In, Out, Op> {
    name: Arc<str>,
    op: Op,
    in_hand: InHand<In>,
    out: Output<Out>,
    /// Watermark, status or end to hand on once the output before it is out.
    forward: Option<StageElement<Out>>,
    /// A status to hand on before everything else.
    status: Option<StreamStatus>,
    next: Downstream<Out>,
    /// A restored subtask that had ended does not call `on_end` again.
    skip_on_end: bool,
    /// `EndOfData` was forwarded; set with the forwarding, never before.
    ended: bool,
}

impl<In, Out, Op> std::fmt::Debug for Chained<In, Out, Op> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Chained").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<In: 'static, Out: Clone + 'static, Op: Operator<In, Out>> Chained<In, Out, Op> {
    /// Puts `op` in front of `next`. `ended`: this subtask had forwarded `EndOfData` when it was snapshotted.
    pub fn new(name: Arc<str>, op: Op, next: Downstream<Out>, batch_records: usize, ended: bool) -> Self {
        let out = Output::new(batch_records);
        Self {
            name,
            op,
            in_hand: InHand::Nothing,
            out,
            forward: None,
            status: None,
            next,
            skip_on_end: ended && !mutation::on(Mutation::OnEndAgain),
            ended: false,
        }
    }

    /// Runs the operator on what is in hand, once.
    fn advance(&mut self, cx: &mut StageContext) -> Result<(), TaskFailure> {
        cx.operator = Arc::clone(&self.name);
        let result = match &mut self.in_hand {
            InHand::Nothing => return Ok(()),
            InHand::Records(cursor) => self.op.process(cursor, &mut self.out),
            InHand::Watermark(at) => self.op.on_watermark(*at, &mut self.out),
            InHand::End(EndPhase::Timers) => self.op.on_watermark(EventTime::MAX, &mut self.out),
            InHand::End(EndPhase::OnEnd) => self.op.on_end(&mut self.out),
            InHand::End(EndPhase::Forward) => Ok(Progress::Done),
        };
        let progress = result.map_err(|e| self.failure(&e))?;
        if progress == Progress::Done {
            self.finish_in_hand();
        }
        Ok(())
    }

    fn finish_in_hand(&mut self) {
        self.in_hand = match std::mem::replace(&mut self.in_hand, InHand::Nothing) {
            InHand::Records(cursor) if !cursor.is_empty() => InHand::Records(cursor),
            InHand::Records(_) => {
                self.forward = self.op.generated_watermark().map(StageElement::Watermark);
                InHand::Nothing
            }
            InHand::Watermark(at) => {
                self.forward = self.op.outgoing_watermark(at).map(StageElement::Watermark);
                InHand::Nothing
            }
            InHand::End(EndPhase::Timers) if self.skip_on_end => InHand::End(EndPhase::Forward),
            InHand::End(EndPhase::Timers) => InHand::End(EndPhase::OnEnd),
            InHand::End(EndPhase::OnEnd) => InHand::End(EndPhase::Forward),
            InHand::End(EndPhase::Forward) => {
                self.forward = Some(StageElement::EndOfData);
                InHand::Nothing
            }
            InHand::Nothing => InHand::Nothing,
        };
    }

    fn failure(&self, error: &JobError) -> TaskFailure {
        TaskFailure::Operator {
            operator: self.name.to_string(),
            message: error.full_text(),
            restartable: error.is_restartable(),
        }
    }

    /// Hands one batch of output down. One call of a user function may have emitted more than a batch.
    fn push_output(&mut self, cx: &mut StageContext) -> Result<(), TaskFailure> {
        let mut batch: Batch<Out> = std::mem::take(&mut self.out.batch);
        if batch.len() > self.out.capacity {
            self.out.batch = batch.split_off(self.out.capacity);
        }
        self.next.push(StageElement::Records(batch), cx)
    }
}

impl<In: 'static, Out: Clone + 'static, Op: Operator<In, Out>> AnyStage for Chained<In, Out, Op> {
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        let mut ran = false;
        loop {
            match self.next.resume(cx)? {
                Flow::Idle => {}
                busy => return Ok(busy),
            }
            if let Some(status) = self.status.take() {
                self.next.push(StageElement::Status(status), cx)?;
            } else if !self.out.batch.is_empty() {
                self.push_output(cx)?;
            } else if let Some(element) = self.forward.take() {
                self.ended |= matches!(element, StageElement::EndOfData);
                self.next.push(element, cx)?;
            } else if matches!(self.in_hand, InHand::Nothing) {
                return Ok(Flow::Idle);
            } else if ran && !matches!(self.in_hand, InHand::End(_)) {
                // One call of the operator a step: an exploding flat_map shares the slot with the others.
                return Ok(Flow::More);
            } else {
                ran = true;
                self.advance(cx)?;
            }
        }
    }

    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        parts: &mut Vec<OperatorPart>,
        cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        debug_assert!(
            matches!(self.in_hand, InHand::Nothing)
                && self.out.batch.is_empty()
                && self.forward.is_none()
                && self.status.is_none()
                || mutation::on(Mutation::EndedSetEarly),
            "snapshot law: a barrier passed an element in hand"
        );
        cx.operator = Arc::clone(&self.name);
        let ended = self.skip_on_end || self.ended;
        parts.extend(self.op.freeze().map(|part| OperatorPart { ended, ..part }));
        for stage in &mut self.next.stages {
            stage.snapshot(barrier, parts, cx)?;
        }
        Ok(())
    }

    fn control(&mut self, control: StageControl, cx: &mut StageContext) -> Result<(), TaskFailure> {
        for stage in &mut self.next.stages {
            stage.control(control, cx)?;
        }
        Ok(())
    }

    fn poll(&mut self, cx: &mut StageContext) -> Result<bool, TaskFailure> {
        let mut any = false;
        for stage in &mut self.next.stages {
            any |= stage.poll(cx)?;
        }
        Ok(any)
    }

    fn status(&self) -> StageStatus {
        self.next.stages.iter().fold(StageStatus::SETTLED, |s, stage| s.and(stage.status()))
    }

    fn hears_splits(&self) -> bool {
        match self.op.split_hearing() {
            SplitHearing::Deaf => false,
            SplitHearing::HandsOn => self.next.stages.iter().any(|stage| stage.hears_splits()),
            SplitHearing::Hears => true,
        }
    }

    fn takes_position(&self) -> bool {
        self.next.stages.iter().any(|stage| stage.takes_position())
    }

    fn note_splits(&mut self, notes: &SplitNotes, cx: &mut StageContext) -> bool {
        debug_assert!(matches!(self.in_hand, InHand::Nothing), "notes came before the last element was done");
        match self.op.split_hearing() {
            SplitHearing::Deaf => false,
            SplitHearing::HandsOn => {
                self.next.stages.iter_mut().fold(false, |any, stage| stage.note_splits(notes, cx) | any)
            }
            SplitHearing::Hears => {
                self.op.on_splits(notes);
                self.status = self.op.generated_status();
                self.forward = self.op.generated_watermark().map(StageElement::Watermark);
                if let Some(deadline) = self.op.next_split_deadline() {
                    cx.wake_at(deadline);
                }
                self.status.is_some() || self.forward.is_some()
            }
        }
    }
}

impl<In: 'static, Out: Clone + 'static, Op: Operator<In, Out>> Stage<In> for Chained<In, Out, Op> {
    fn push(&mut self, element: StageElement<In>, _cx: &mut StageContext) -> Result<(), TaskFailure> {
        debug_assert!(
            matches!(self.in_hand, InHand::Nothing),
            "an element was pushed before the last was done"
        );
        match element {
            StageElement::Records(batch) => self.in_hand = InHand::Records(BatchCursor::new(batch)),
            StageElement::Watermark(at) => self.in_hand = InHand::Watermark(at),
            StageElement::Status(status) => self.forward = Some(StageElement::Status(status)),
            StageElement::EndOfData => {
                self.ended |= mutation::on(Mutation::EndedSetEarly);
                self.in_hand = InHand::End(EndPhase::Timers);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
