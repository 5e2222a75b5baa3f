//! What the tests of this crate share: an I/O seam that is quick and always takes the same steps.
//!
//! Owns: [`Bench`]. Does not own: any test. Runs on: a current-thread runtime; blocking work runs inline and a sleep is one yield.

#![cfg_attr(
    not(all(feature = "datagen", feature = "file")),
    allow(dead_code, reason = "helpers for sources")
)]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use tidegate_engine::api::{ClaimWatch, ConnectorContext, ReadStatus, SourceOutput, SplitReader};
use tidegate_engine::clock::ManualClock;
use tidegate_engine::io::{BoxFuture, Io, NoWake, SharedIo, SpawnedIo};

/// Runs a test's future to its end.
pub(crate) fn run<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(test)
}

/// A clock moved by hand and an I/O seam without waiting.
pub(crate) struct Bench {
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) io: SharedIo,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self { clock: ManualClock::shared(), io: Arc::new(InlineIo) }
    }

    pub(crate) fn context(&self) -> ConnectorContext {
        ConnectorContext {
            clock: Arc::clone(&self.clock) as _,
            io: Arc::clone(&self.io),
            waker: Arc::new(NoWake),
            checkpoint_timeout: Duration::from_secs(60),
            claim: ClaimWatch::unclaimed(),
        }
    }
}

/// How often a test polls before it gives up.
const POLLS_MAX: usize = 20_000;

/// Polls until the reader is idle, at most `room` records at a time; hands the records out.
pub(crate) async fn read_to_end<R: SplitReader>(reader: &mut R, room: usize) -> Vec<R::Record> {
    let mut records = Vec::new();
    for _ in 0..POLLS_MAX {
        let mut output = SourceOutput::with_room(room);
        let status = reader.poll(&mut output).unwrap();
        records.extend(output.take().values);
        match status {
            ReadStatus::Idle => return records,
            ReadStatus::More => {}
            ReadStatus::Pending(_) => tokio::task::yield_now().await,
        }
    }
    panic!("the reader did not come to its end: {} records", records.len());
}

/// Polls until `count` records are there (or an error).
pub(crate) async fn read_some<R: SplitReader>(
    reader: &mut R,
    count: usize,
    room: usize,
) -> Result<Vec<R::Record>, tidegate_engine::api::ConnectorError> {
    let mut records = Vec::new();
    for _ in 0..POLLS_MAX {
        if records.len() >= count {
            return Ok(records);
        }
        let mut output = SourceOutput::with_room(room.min(count - records.len()));
        reader.poll(&mut output)?;
        records.extend(output.take().values);
        tokio::task::yield_now().await;
    }
    panic!("the reader gave {} of {count} records", records.len());
}

/// Polls until the reader fails.
pub(crate) async fn read_to_error<R: SplitReader>(reader: &mut R) -> (Vec<R::Record>, String) {
    let mut records = Vec::new();
    for _ in 0..POLLS_MAX {
        let mut output = SourceOutput::with_room(1_024);
        match reader.poll(&mut output) {
            Ok(_) => records.extend(output.take().values),
            Err(error) => return (records, error.full_text()),
        }
        tokio::task::yield_now().await;
    }
    panic!("the reader did not fail: {} records", records.len());
}

struct InlineIo;

struct Spawned(tokio::task::JoinHandle<()>);

impl SpawnedIo for Spawned {
    fn abort(&self) {
        self.0.abort();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Io for InlineIo {
    fn spawn(&self, _name: &'static str, future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        Box::new(Spawned(tokio::spawn(future)))
    }

    fn sleep(&self, _span: Duration) -> BoxFuture<()> {
        Box::pin(tokio::task::yield_now())
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        Box::pin(async move { work() })
    }
}
