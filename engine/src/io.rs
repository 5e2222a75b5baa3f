//! The seam where async ends: everything that waits for network, disk or a connector's client is a future behind [`Io`].
//!
//! Owns: the trait, its tokio implementation, and the [`Waker`] with which a future tells a slot that something has arrived.
//! Does not own: the simulation's implementation (`sim::io`). Runs on: the slot calls `spawn`; the futures run on tokio, or
//! in the simulation on its one thread. The two sides meet only in bounded channels.

mod presence;

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

pub use self::presence::{NamedIo, Presence};

/// A boxed future that may move between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// Runs futures for the slots. On tokio in production, on the simulation's own executor in a simulation.
pub trait Io: Send + Sync + 'static {
    /// Starts `future`; it ends on its own, or is dropped with the attempt's [`IoScope`].
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Box<dyn SpawnedIo>;

    /// Waits for a span of this seam's time.
    fn sleep(&self, span: Duration) -> BoxFuture<()>;

    /// Runs work that blocks its thread (a file system call, an embedded database) away from the slots.
    fn run_blocking(&self, work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()>;
}

/// A future that was started; dropping the handle does *not* stop it.
pub trait SpawnedIo: Send {
    /// Drops the future at its next await.
    fn abort(&self);
    /// Whether it has ended.
    fn is_finished(&self) -> bool;
}

/// A shared seam.
pub type SharedIo = Arc<dyn Io>;

/// Tells a parked slot that a mail, an event or an element has arrived for it.
pub trait Wake: Send + Sync + 'static {
    /// Idempotent and cheap; may be called from any thread.
    fn wake(&self);
}

/// A shared waker.
pub type Waker = Arc<dyn Wake>;

/// A waker for schedulers that poll every subtask anyway.
#[derive(Debug, Default)]
pub struct NoWake;

impl Wake for NoWake {
    fn wake(&self) {}
}

/// Wakes one thread that parks with [`std::thread::park_timeout`].
#[derive(Debug)]
pub struct ThreadWake(std::thread::Thread);

impl ThreadWake {
    /// A waker for the calling thread.
    pub fn current() -> Waker {
        Arc::new(Self(std::thread::current()))
    }
}

impl Wake for ThreadWake {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Runs a closure that blocks and hands its result back.
///
/// # Errors
/// [`IoGone`] if the seam was shut down before the work could run.
pub async fn blocking<T: Send + 'static>(
    io: &SharedIo,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, IoGone> {
    let (tx, rx) = tokio::sync::oneshot::channel();
    io.run_blocking(Box::new(move || {
        let _ = tx.send(work());
    }))
    .await;
    rx.await.map_err(|_| IoGone)
}

/// Ends with an answer also when `future` panics: a function of a job's author runs inside of some, and whoever waits for their
/// events would wait for ever. A simulated crash goes on.
///
/// # Errors
/// The panic, in words.
pub async fn unpanicked<T>(future: impl Future<Output = T>) -> Result<T, String> {
    let mut future = std::pin::pin!(future);
    std::future::poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) if panic.is::<crate::fault::SimulatedCrash>() => resume_unwind(panic),
        Err(panic) => Poll::Ready(Err(crate::fault::panic_text(panic.as_ref()))),
    })
    .await
}

/// The seam was shut down while work was still outstanding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the I/O runtime was shut down before the work could run")]
pub struct IoGone;

/// [`Io`] on a tokio runtime.
#[derive(Clone, Debug)]
pub struct TokioIo {
    handle: tokio::runtime::Handle,
}

impl TokioIo {
    /// Runs futures on `handle`'s runtime.
    pub fn shared(handle: tokio::runtime::Handle) -> SharedIo {
        Arc::new(Self { handle })
    }
}

struct TokioSpawned(tokio::task::JoinHandle<()>);

impl SpawnedIo for TokioSpawned {
    fn abort(&self) {
        self.0.abort();
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl Io for TokioIo {
    fn spawn(&self, _name: &'static str, future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        Box::new(TokioSpawned(self.handle.spawn(future)))
    }

    #[allow(clippy::disallowed_methods, reason = "this is the seam that others are sent to")]
    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        Box::pin(tokio::time::sleep(span))
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        let handle = self.handle.clone();
        Box::pin(async move {
            let _ = handle.spawn_blocking(work).await;
        })
    }
}
