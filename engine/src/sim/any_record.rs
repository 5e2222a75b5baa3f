//! Records of an author's job on their way into a simulated sink, with their type erased: the models are compiled once, not per type.
//!
//! Owns: the box, the stage that fills it. Does not own: the sinks. Runs on: the simulation's thread.

use std::any::Any;

use crate::element::{Batch, CheckpointBarrier};
use crate::error::EngineError;
use crate::graph::edge::Erased;
use crate::graph::node::{BuildContext, BuildStage, NodeInfo};
use crate::operator::{
    AnyStage, Flow, OperatorPart, Stage, StageContext, StageControl, StageElement, StageStatus,
};
use crate::taskworker::mail::TaskFailure;

use super::simulated_ends::SimulatedSink;

/// One record of any type.
pub struct AnyRecord(Box<dyn Record>);

trait Record: Send {
    fn clone_box(&self) -> Box<dyn Record>;
    fn as_any(&self) -> &dyn Any;
}

impl<T: Clone + Send + 'static> Record for T {
    fn clone_box(&self) -> Box<dyn Record> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl Clone for AnyRecord {
    fn clone(&self) -> Self {
        Self((*self.0).clone_box())
    }
}

impl std::fmt::Debug for AnyRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnyRecord")
    }
}

impl AnyRecord {
    /// Erases its type.
    pub fn of<T: Clone + Send + 'static>(record: T) -> Self {
        Self(Box::new(record))
    }

    /// It, if it is of this type.
    pub fn get<T: Clone + 'static>(&self) -> Option<T> {
        (*self.0).as_any().downcast_ref::<T>().cloned()
    }
}

/// Makes the stage of a simulated sink for records of one type.
#[derive(Clone, Debug)]
pub struct Erasing(pub SimulatedSink);

impl<T: Clone + Send + 'static> BuildStage<T> for Erasing {
    fn build(
        &self,
        info: &NodeInfo,
        cx: &BuildContext<'_>,
        downstream: Vec<Erased>,
    ) -> Result<Box<dyn Stage<T>>, EngineError> {
        Ok(Box::new(ErasingStage(self.0.build(info, cx, downstream)?)))
    }
}

/// Erases the type of what it hands on.
struct ErasingStage(Box<dyn Stage<AnyRecord>>);

impl AnyStage for ErasingStage {
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        self.0.resume(cx)
    }

    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        parts: &mut Vec<OperatorPart>,
        cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        self.0.snapshot(barrier, parts, cx)
    }

    fn control(&mut self, control: StageControl, cx: &mut StageContext) -> Result<(), TaskFailure> {
        self.0.control(control, cx)
    }

    fn poll(&mut self, cx: &mut StageContext) -> Result<bool, TaskFailure> {
        self.0.poll(cx)
    }

    fn status(&self) -> StageStatus {
        self.0.status()
    }
}

impl<T: Clone + Send + 'static> Stage<T> for ErasingStage {
    fn push(&mut self, element: StageElement<T>, cx: &mut StageContext) -> Result<(), TaskFailure> {
        let element = match element {
            StageElement::Records(batch) => {
                let values = batch.values.into_iter().map(AnyRecord::of).collect();
                StageElement::Records(Batch { values, timestamps: batch.timestamps })
            }
            StageElement::Watermark(at) => StageElement::Watermark(at),
            StageElement::Status(status) => StageElement::Status(status),
            StageElement::EndOfData => StageElement::EndOfData,
        };
        self.0.push(element, cx)
    }
}
