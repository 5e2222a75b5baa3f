//! A writer that holds rows back is called when it is due, whether or not batches come.

use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use super::*;
use crate::api::ClaimWatch;
use crate::clock::{Clock, ManualClock, Moment};
use crate::io::{BoxFuture, Io, NoWake, SpawnedIo};

const HELD: Duration = Duration::from_millis(100);

/// Holds what it is handed until [`HELD`] has passed; keeps when it let go of how much.
struct Holding {
    clock: Arc<ManualClock>,
    let_go: Arc<Mutex<Vec<(Moment, usize)>>>,
    held: usize,
    due: Option<Moment>,
}

impl Holding {
    fn let_go(&mut self) {
        let (now, held) = (self.clock.now(), std::mem::take(&mut self.held));
        self.due = None;
        self.let_go.lock().unwrap().push((now, held));
    }
}

impl Writer for Holding {
    type Record = u64;

    async fn write(&mut self, batch: Batch<u64>) -> Result<(), ConnectorError> {
        self.held += batch.len();
        // Time passes while a server is at work.
        self.clock.advance(Duration::from_millis(30));
        self.due.get_or_insert(self.clock.now() + HELD);
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), ConnectorError> {
        self.let_go();
        Ok(())
    }

    fn due(&self) -> Option<Moment> {
        self.due
    }

    async fn on_due(&mut self) -> Result<(), ConnectorError> {
        self.let_go();
        Ok(())
    }
}

/// A sleep moves the clock, and is over.
struct QuickIo(Arc<ManualClock>);

impl Io for QuickIo {
    fn spawn(&self, name: &'static str, _future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        unreachable!("{name} was spawned")
    }

    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        let clock = Arc::clone(&self.0);
        Box::pin(async move { clock.advance(span) })
    }

    fn run_blocking(&self, _work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        unreachable!("nothing blocks here")
    }
}

/// Runs the writer over `commands`; the slot goes away when `until` holds.
fn run_over(batches: usize, until: impl Fn(&[(Moment, usize)]) -> bool) -> Vec<(Moment, usize)> {
    let clock = ManualClock::shared();
    let let_go = Arc::new(Mutex::new(Vec::new()));
    let writer = Holding { clock: Arc::clone(&clock), let_go: Arc::clone(&let_go), held: 0, due: None };
    let context = ConnectorContext {
        clock: Arc::clone(&clock) as _,
        io: Arc::new(QuickIo(clock)),
        waker: Arc::new(NoWake),
        checkpoint_timeout: Duration::from_secs(60),
        claim: ClaimWatch::unclaimed(),
    };
    let (commands, commands_rx) = mpsc::channel(batches.max(1));
    let (events, _events_rx) = mpsc::channel(EVENTS_MAX);
    for _ in 0..batches {
        commands.try_send(Command::Write(Batch::of(vec![1, 2]))).unwrap();
    }
    let mut writing = pin!(write_loop(writer, &context, commands_rx, &events));
    let mut commands = Some(commands);
    for _ in 0..100 {
        let polled = futures::FutureExt::now_or_never(writing.as_mut());
        if until(&let_go.lock().unwrap()) {
            commands = None;
        }
        if polled.is_some() {
            break;
        }
    }
    assert!(commands.is_none(), "it never held");
    let_go.lock().unwrap().clone()
}

#[test]
fn rows_held_back_go_out_although_no_batch_follows() {
    let let_go = run_over(1, |let_go| !let_go.is_empty());
    assert_eq!(let_go, [(Duration::from_millis(130), 2)]);
}

#[test]
fn a_slot_that_is_never_silent_does_not_keep_them() {
    let let_go = run_over(8, |let_go| let_go.iter().map(|(_, rows)| rows).sum::<usize>() == 16);
    // The fifth batch ends at 150 ms, the moment of 130 ms has passed.
    assert_eq!(let_go[0], (Duration::from_millis(150), 10));
    assert_eq!(let_go.len(), 2);
}
