//! The driver of sinks without transactions: what is written stays written (at-least-once under restarts).
//!
//! Owns: the command queue to the connector's writer; the flush inside the snapshot, *before* the acknowledgement; the call of a writer
//! that is due.
//! Does not own: the connector. Runs on: the slot's thread; the writer runs on [`crate::io::Io`].

use std::collections::VecDeque;
use std::sync::Arc;

use tidegate_state::fault_point;
use tokio::sync::mpsc;

use super::next_command::{Next, next};
use super::sink_io::{COMMANDS_MAX, EVENTS_MAX};
use super::{AnyStage, Flow, OperatorPart, Stage, StageContext, StageControl, StageElement, StageStatus};
use crate::api::{ConnectorContext, ConnectorError, Sink, Writer};
use crate::element::{Batch, CheckpointBarrier};
use crate::ids::{CheckpointId, OperatorUid};
use crate::io::unpanicked;
use crate::taskworker::mail::TaskFailure;

enum Command<T> {
    Write(Batch<T>),
    /// For a barrier, or (`None`) for the end of data.
    Flush(Option<CheckpointId>),
}

enum Event {
    Flushed(Option<CheckpointId>),
    Failed(ConnectorError),
}

/// The stage of a plain sink.
pub struct PlainSinkStage<S: Sink> {
    name: Arc<str>,
    uid: OperatorUid,
    in_hand: Option<Batch<S::Record>>,
    commands: VecDeque<Command<S::Record>>,
    writer: mpsc::Sender<Command<S::Record>>,
    events: mpsc::Receiver<Event>,
    flushes_in_flight: usize,
}

impl<S: Sink> std::fmt::Debug for PlainSinkStage<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PlainSinkStage").field("name", &self.name).finish_non_exhaustive()
    }
}

impl<S: Sink> PlainSinkStage<S> {
    /// Opens the writer on the I/O side.
    pub fn start(name: Arc<str>, uid: OperatorUid, sink: S, context: ConnectorContext, subtask: u32) -> Self {
        let (writer, commands_rx) = mpsc::channel(COMMANDS_MAX);
        let (events_tx, events) = mpsc::channel(EVENTS_MAX);
        let io = Arc::clone(&context.io);
        io.spawn("plain sink", Box::pin(run(sink, context, subtask, commands_rx, events_tx)));
        Self { name, uid, in_hand: None, commands: VecDeque::new(), writer, events, flushes_in_flight: 0 }
    }

    fn send(&mut self, cx: &mut StageContext) {
        while let Some(command) = self.commands.pop_front() {
            if let Err(mpsc::error::TrySendError::Full(command)) = self.writer.try_send(command) {
                self.commands.push_front(command);
                return;
            }
        }
        let Some(batch) = self.in_hand.take() else { return };
        let records = batch.len() as u64;
        match self.writer.try_send(Command::Write(batch)) {
            Ok(()) => cx.records_written += records,
            Err(mpsc::error::TrySendError::Full(Command::Write(batch))) => self.in_hand = Some(batch),
            Err(_) => {}
        }
    }

    fn flush(&mut self, id: Option<CheckpointId>, cx: &mut StageContext) {
        self.flushes_in_flight += 1;
        self.commands.push_back(Command::Flush(id));
        self.send(cx);
    }

    fn part(&self, comes_later: bool) -> OperatorPart {
        OperatorPart { uid: self.uid.clone(), keyed: None, lists: Vec::new(), ended: false, comes_later }
    }
}

async fn run<S: Sink>(
    sink: S,
    context: ConnectorContext,
    subtask: u32,
    commands: mpsc::Receiver<Command<S::Record>>,
    events: mpsc::Sender<Event>,
) {
    let work = async {
        let opening = sink.open(context.clone(), subtask);
        drop(sink);
        write_loop(opening.await?, &context, commands, &events).await
    };
    let ended = unpanicked(work).await.unwrap_or_else(|panic| Err(ConnectorError::transient(panic)));
    if let Err(error) = ended {
        let _ = events.send(Event::Failed(error)).await;
        context.waker.wake();
    }
}

/// Until the slot goes away or the writer fails.
async fn write_loop<W: Writer>(
    mut writer: W,
    context: &ConnectorContext,
    mut commands: mpsc::Receiver<Command<W::Record>>,
    events: &mpsc::Sender<Event>,
) -> Result<(), ConnectorError> {
    loop {
        let command = match next(&mut commands, writer.due(), context).await {
            Next::Command(command) => command,
            Next::Due => {
                writer.on_due().await?;
                continue;
            }
            Next::Gone => return Ok(()),
        };
        context.waker.wake();
        match command {
            Command::Write(batch) => {
                fault_point!("sink.write.before");
                writer.write(batch).await?;
                fault_point!("sink.write.after");
            }
            Command::Flush(id) => {
                writer.flush().await?;
                if events.send(Event::Flushed(id)).await.is_err() {
                    return Ok(());
                }
                context.waker.wake();
            }
        }
    }
}

impl<S: Sink> AnyStage for PlainSinkStage<S> {
    fn resume(&mut self, cx: &mut StageContext) -> Result<Flow, TaskFailure> {
        cx.operator = Arc::clone(&self.name);
        self.send(cx);
        Ok(if self.in_hand.is_some() { Flow::Blocked } else { Flow::Idle })
    }

    fn snapshot(
        &mut self,
        barrier: &CheckpointBarrier,
        parts: &mut Vec<OperatorPart>,
        cx: &mut StageContext,
    ) -> Result<(), TaskFailure> {
        self.flush(Some(barrier.id), cx);
        parts.push(self.part(true));
        Ok(())
    }

    fn control(&mut self, control: StageControl, cx: &mut StageContext) -> Result<(), TaskFailure> {
        if let StageControl::Cancel(_) = control {
            self.in_hand = None;
            self.flush(None, cx);
        }
        Ok(())
    }

    fn poll(&mut self, cx: &mut StageContext) -> Result<bool, TaskFailure> {
        let mut any = false;
        while let Ok(event) = self.events.try_recv() {
            any = true;
            match event {
                Event::Flushed(id) => {
                    self.flushes_in_flight -= 1;
                    if let Some(id) = id {
                        cx.late_parts.push((id, self.part(false)));
                    }
                }
                Event::Failed(error) => {
                    return Err(TaskFailure::of_connector(&self.name, &error));
                }
            }
        }
        self.send(cx);
        Ok(any)
    }

    fn status(&self) -> StageStatus {
        let settled = self.flushes_in_flight == 0 && self.in_hand.is_none() && self.commands.is_empty();
        StageStatus { recovered: true, canceled: settled, finished: settled }
    }
}

impl<S: Sink> Stage<S::Record> for PlainSinkStage<S> {
    fn push(&mut self, element: StageElement<S::Record>, cx: &mut StageContext) -> Result<(), TaskFailure> {
        match element {
            StageElement::Records(batch) => {
                self.in_hand = Some(batch);
                self.send(cx);
            }
            StageElement::EndOfData => self.flush(None, cx),
            StageElement::Watermark(_) | StageElement::Status(_) => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
