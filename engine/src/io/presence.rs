//! Who is on a thread of the I/O side right now: inside a poll that has not returned, or inside a blocking call.
//!
//! A future of a connector shares a few threads with all others, and may wait for nothing but an await. One that blocks its thread (a C
//! client, a synchronous driver, a dead network mount) cannot be aborted: this is how it is found out and named.
//!
//! Owns: the list, and the [`Io`] that keeps it. Does not own: what follows. Runs on: any thread; two atomic stores a poll.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};
use std::time::Duration;

use super::{BoxFuture, Io, SharedIo, SpawnedIo};

/// The list.
#[derive(Debug, Default)]
pub struct Presence {
    /// A mutex and no message: it is read when somebody does not answer. Held for the length of a push or of a walk.
    entries: Mutex<Vec<Weak<Entry>>>,
}

#[derive(Debug)]
struct Entry {
    who: Arc<str>,
    what: &'static str,
    blocking: bool,
    inside: AtomicBool,
}

impl Presence {
    /// Futures that are inside a poll: whoever stays there blocks a thread of all.
    pub fn polling(&self) -> Vec<String> {
        self.names(|entry| !entry.blocking)
    }

    /// Also those inside a call that may block, which has a thread of its own.
    pub fn all(&self) -> Vec<String> {
        self.names(|_| true)
    }

    fn names(&self, wanted: impl Fn(&Entry) -> bool) -> Vec<String> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let present = entries.iter().filter_map(Weak::upgrade);
        let present = present.filter(|entry| entry.inside.load(Ordering::Acquire) && wanted(entry));
        let mut names: Vec<_> = present.map(|entry| format!("{} ({})", entry.who, entry.what)).collect();
        names.sort();
        names.dedup();
        names
    }

    fn enter(&self, who: &Arc<str>, what: &'static str, blocking: bool) -> Arc<Entry> {
        let entry = Arc::new(Entry { who: Arc::clone(who), what, blocking, inside: AtomicBool::new(false) });
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        entries.retain(|entry| entry.strong_count() > 0);
        entries.push(Arc::downgrade(&entry));
        entry
    }
}

/// Inside until it is dropped, also by a panic.
struct Inside<'a>(&'a Entry);

impl<'a> Inside<'a> {
    fn of(entry: &'a Entry) -> Self {
        entry.inside.store(true, Ordering::Release);
        Self(entry)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        self.0.inside.store(false, Ordering::Release);
    }
}

struct Watched {
    future: BoxFuture<()>,
    entry: Arc<Entry>,
}

impl Future for Watched {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let this = self.get_mut();
        let _inside = Inside::of(&this.entry);
        this.future.as_mut().poll(cx)
    }
}

/// An [`Io`] that enters whatever it runs into the list, under one name.
pub struct NamedIo {
    inner: SharedIo,
    presence: Arc<Presence>,
    who: Arc<str>,
}

impl NamedIo {
    /// Runs on `inner` what `who` starts.
    pub fn shared(inner: SharedIo, presence: Arc<Presence>, who: impl Into<Arc<str>>) -> SharedIo {
        Arc::new(Self { inner, presence, who: who.into() })
    }
}

impl Io for NamedIo {
    fn spawn(&self, name: &'static str, future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        let entry = self.presence.enter(&self.who, name, false);
        self.inner.spawn(name, Box::pin(Watched { future, entry }))
    }

    fn sleep(&self, span: Duration) -> BoxFuture<()> {
        self.inner.sleep(span)
    }

    fn run_blocking(&self, work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        let entry = self.presence.enter(&self.who, "a blocking call", true);
        self.inner.run_blocking(Box::new(move || {
            let _inside = Inside::of(&entry);
            work();
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::TokioIo;

    #[test]
    fn whoever_is_inside_a_poll_is_named_until_it_comes_out() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let presence = Arc::new(Presence::default());
        let io =
            NamedIo::shared(TokioIo::shared(runtime.handle().clone()), Arc::clone(&presence), "log_sink[1]");
        let (seen_tx, seen) = std::sync::mpsc::sync_channel(1);
        let looks = Arc::clone(&presence);
        io.spawn(
            "sink writer",
            Box::pin(async move {
                let _ = seen_tx.send(looks.polling());
                std::future::pending::<()>().await;
            }),
        );
        runtime.block_on(async { tokio::task::yield_now().await });
        assert_eq!(seen.try_recv().unwrap(), ["log_sink[1] (sink writer)"]);
        assert!(presence.all().is_empty(), "it waits in an await, where it holds nobody up");
    }

    #[test]
    fn a_blocking_call_is_named_and_no_poll() {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let presence = Arc::new(Presence::default());
        let io =
            NamedIo::shared(TokioIo::shared(runtime.handle().clone()), Arc::clone(&presence), "log_sink[1]");
        let (seen_tx, seen) = std::sync::mpsc::sync_channel(1);
        let looks = Arc::clone(&presence);
        runtime.block_on(io.run_blocking(Box::new(move || {
            let _ = seen_tx.send((looks.polling(), looks.all()));
        })));
        assert_eq!(seen.try_recv().unwrap(), (Vec::new(), vec!["log_sink[1] (a blocking call)".to_owned()]));
        assert!(presence.all().is_empty());
    }
}
