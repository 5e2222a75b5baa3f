//! The driver of sinks that never wait: what they are handed is written right here, without a way over the I/O side.
//!
//! For such a sink ([`Sink::NEVER_WAITS`]) a queue, a task and two wake-ups a batch cost more than the writing. Its futures are polled
//! once each; one that is not ready then has broken its word, and the subtask fails with that reason.
//!
//! Owns: the writer. Does not own: sinks that may wait (see [`super::plain_sink`]). Runs on: the slot's thread.

use std::sync::Arc;

use futures::FutureExt;
use tidegate_state::fault_point;

use super::{AnyStage, Flow, OperatorPart, Stage, StageContext, StageControl, StageElement, StageStatus};
use crate::api::{ConnectorContext, ConnectorError, Sink, Writer};
use crate::element::CheckpointBarrier;
use crate::ids::OperatorUid;
use crate::taskworker::mail::TaskFailure;

/// The stage of a sink that never waits.
pub struct InlineSinkStage<S: Sink> {
    name: Arc<str>,
    uid: OperatorUid,
    writer: Opening<S>,
}

/// The writer is opened at the first step, so that an error of it fails this subtask as any later one does.
enum Opening<S: Sink> {
    Not(Box<(S, ConnectorContext, u32)>),
    Open(S::Writer),
}

impl<S: Sink> std::fmt::Debug for InlineSinkStage<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("InlineSinkStage").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S: Sink> InlineSinkStage<S> {
    /// Opens the writer of `subtask` at the first step.
    pub fn new(name: Arc<str>, uid: OperatorUid, sink: S, context: ConnectorContext, subtask: u32) -> Self {
        Self { name, uid, writer: Opening::Not(Box::new((sink, context, subtask))) }
    }

    fn writer(&mut self) -> Result<&mut S::Writer, TaskFailure> {
        if let Opening::Not(parts) = &self.writer {
            let (sink, context, subtask) = &**parts;
            let opened = at_once("opening", sink.open(context.clone(), *subtask));
            self.writer = Opening::Open(opened.map_err(|e| failure(&self.name, &e))?);
        }
        match &mut self.writer {
            Opening::Open(writer) => Ok(writer),
            Opening::Not(_) => unreachable!("the writer has just been opened"),
        }
    }

    fn flush(&mut self) -> Result<(), TaskFailure> {
        let flushed = at_once("flushing", self.writer()?.flush());
        flushed.map_err(|e| failure(&self.name, &e))
    }
}

/// The answer of a future that never waits.
fn at_once<T>(
    doing: &str,
    future: impl Future<Output = Result<T, ConnectorError>>,
) -> Result<T, ConnectorError> {
    future.now_or_never().unwrap_or_else(|| {
        let broken = "the sink declares NEVER_WAITS, but waited while";
        Err(ConnectorError::fatal(format!("{broken} {doing}; take the declaration away")))
    })
}

fn failure(name: &Arc<str>, error: &ConnectorError) -> TaskFailure {
    TaskFailure::of_connector(name, error)
}

impl<S: Sink> AnyStage for InlineSinkStage<S> {
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        if let Opening::Not(_) = self.writer {
            cx.operator = Arc::clone(&self.name);
            self.writer()?;
        }
        Ok(Flow::Idle)
    }

    fn snapshot(
        &mut self,
        _barrier: &CheckpointBarrier,
        parts: &mut Vec<OperatorPart>,
        cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        cx.operator = Arc::clone(&self.name);
        self.flush()?;
        let (uid, lists) = (self.uid.clone(), Vec::new());
        parts.push(OperatorPart { uid, keyed: None, lists, ended: false, comes_later: false });
        Ok(())
    }

    fn control(&mut self, control: StageControl, cx: &mut StageContext) -> Result<(), TaskFailure> {
        if let StageControl::Cancel(_) = control {
            cx.operator = Arc::clone(&self.name);
            self.flush()?;
        }
        Ok(())
    }

    fn poll(&mut self, _cx: &mut StageContext) -> Result<bool, TaskFailure> {
        Ok(false)
    }

    fn status(&self) -> StageStatus {
        StageStatus::SETTLED
    }
}

impl<S: Sink> Stage<S::Record> for InlineSinkStage<S> {
    fn push(&mut self, element: StageElement<S::Record>, cx: &mut StageContext) -> Result<(), TaskFailure> {
        cx.operator = Arc::clone(&self.name);
        match element {
            StageElement::Records(batch) => {
                let records = batch.len() as u64;
                fault_point!("sink.write.before");
                let written = at_once("writing", self.writer()?.write(batch));
                written.map_err(|e| failure(&self.name, &e))?;
                fault_point!("sink.write.after");
                cx.records_written += records;
            }
            StageElement::EndOfData => self.flush()?,
            StageElement::Watermark(_) | StageElement::Status(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
