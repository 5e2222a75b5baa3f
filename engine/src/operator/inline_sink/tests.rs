//! What a sink is handed is written when it is handed; one that waits all the same fails with its name.

use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::api::ClaimWatch;
use crate::clock::ManualClock;
use crate::element::{AlignmentMode, Batch, CheckpointKind};
use crate::ids::CheckpointId;
use crate::io::{BoxFuture, Io, NoWake, SpawnedIo};
use crate::operator::StageLimits;

/// Writes into a list; waits for ever where it is told to.
#[derive(Clone, Default)]
struct ListSink {
    written: Arc<Mutex<Vec<u64>>>,
    flushes: Arc<Mutex<u32>>,
    waits_in_write: bool,
}

impl Sink for ListSink {
    type Record = u64;
    type Writer = Self;

    const NEVER_WAITS: bool = true;

    fn open(
        &self,
        _context: ConnectorContext,
        _subtask: u32,
    ) -> impl Future<Output = Result<Self, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(self.clone()))
    }
}

impl Writer for ListSink {
    type Record = u64;

    async fn write(&mut self, batch: Batch<u64>) -> Result<(), ConnectorError> {
        if self.waits_in_write {
            std::future::pending::<()>().await;
        }
        self.written.lock().unwrap().extend(batch.values);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        *self.flushes.lock().unwrap() += 1;
        Ok(())
    }
}

/// Nothing may be spawned for such a sink.
struct NoIo;

impl Io for NoIo {
    fn spawn(&self, name: &'static str, _future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        unreachable!("{name} was spawned")
    }

    fn sleep(&self, _span: Duration) -> BoxFuture<()> {
        Box::pin(std::future::pending())
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        work();
        Box::pin(std::future::ready(()))
    }
}

fn stage(sink: &ListSink) -> (InlineSinkStage<ListSink>, StageContext) {
    let context = ConnectorContext {
        clock: ManualClock::shared(),
        io: Arc::new(NoIo),
        waker: Arc::new(NoWake),
        checkpoint_timeout: Duration::from_secs(60),
        claim: ClaimWatch::unclaimed(),
    };
    let limits = StageLimits { batch_records: 4, batch_age: Duration::from_millis(1) };
    let stage = InlineSinkStage::new(Arc::from("list"), OperatorUid::from("list"), sink.clone(), context, 0);
    (stage, StageContext::new(limits))
}

#[test]
fn what_it_is_handed_is_written_at_once_and_flushed_inside_the_snapshot() {
    let sink = ListSink::default();
    let (mut stage, mut cx) = stage(&sink);
    for batch in [vec![1, 2], vec![3]] {
        assert_eq!(stage.resume(&mut cx).unwrap(), Flow::Idle);
        stage.push(StageElement::Records(Batch::of(batch)), &mut cx).unwrap();
    }
    assert_eq!(*sink.written.lock().unwrap(), [1, 2, 3]);
    assert_eq!(cx.records_written, 3);
    let barrier = CheckpointBarrier {
        id: CheckpointId(1),
        kind: CheckpointKind::Checkpoint,
        alignment: AlignmentMode::Aligned,
        newest_completed: CheckpointId(0),
        triggered_at_us: 0,
    };
    let mut parts = Vec::new();
    stage.snapshot(&barrier, &mut parts, &mut cx).unwrap();
    assert_eq!((*sink.flushes.lock().unwrap(), parts.len(), parts[0].comes_later), (1, 1, false));
    stage.push(StageElement::EndOfData, &mut cx).unwrap();
    assert_eq!(*sink.flushes.lock().unwrap(), 2);
}

#[test]
fn a_sink_that_waits_all_the_same_fails_the_job_by_name() {
    let (mut stage, mut cx) = stage(&ListSink { waits_in_write: true, ..ListSink::default() });
    let failed = stage.push(StageElement::Records(Batch::of(vec![1])), &mut cx).unwrap_err();
    let TaskFailure::Operator { operator, message, restartable } = failed else {
        panic!("{failed:?} names no operator")
    };
    assert_eq!((operator.as_str(), restartable), ("list", false));
    assert!(message.contains("NEVER_WAITS") && message.contains("writing"), "{message}");
    assert_eq!(cx.records_written, 0);
}
