//! An [`Io`] whose futures end with their attempt.
//!
//! Owns: the list of futures that an attempt has started. Does not own: the futures. Runs on: any thread.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::io::{BoxFuture, Io, SharedIo, SpawnedIo};

/// Wraps a seam and remembers what was started.
pub struct IoScope {
    inner: SharedIo,
    /// Guards the list only, never held over an await: futures are started from the slot and from other futures.
    spawned: Mutex<Vec<Box<dyn SpawnedIo>>>,
    /// Blocking calls that are under way: they cannot be aborted, only waited for.
    blocking: Arc<AtomicUsize>,
}

impl IoScope {
    /// A scope over `inner`.
    pub fn new(inner: SharedIo) -> Arc<Self> {
        Arc::new(Self { inner, spawned: Mutex::new(Vec::new()), blocking: Arc::default() })
    }

    /// Blocking calls that are under way.
    pub fn blocking_calls(&self) -> usize {
        self.blocking.load(Ordering::Acquire)
    }

    /// Drops every future at its next await. What it has handed to a server may still be carried out there.
    pub fn abort_all(&self) {
        let mut spawned = self.spawned.lock().unwrap_or_else(PoisonError::into_inner);
        spawned.drain(..).for_each(|s| s.abort());
    }
}

/// Counts a blocking call down also if it never runs, or panics.
struct DoneOnDrop(Arc<AtomicUsize>);

impl Drop for DoneOnDrop {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

struct InScope;

impl SpawnedIo for InScope {
    fn abort(&self) {}

    fn is_finished(&self) -> bool {
        false
    }
}

impl Io for IoScope {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        let started = self.inner.spawn(name, future);
        let mut spawned = self.spawned.lock().unwrap_or_else(PoisonError::into_inner);
        spawned.retain(|s| !s.is_finished());
        spawned.push(started);
        Box::new(InScope)
    }

    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        self.inner.sleep(span)
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        let under_way = Arc::clone(&self.blocking);
        under_way.fetch_add(1, Ordering::AcqRel);
        let done = DoneOnDrop(under_way);
        self.inner.run_blocking(Box::new(move || {
            let _done = done;
            work();
        }))
    }
}
