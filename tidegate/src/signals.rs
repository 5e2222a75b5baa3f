//! Ctrl-C and SIGTERM: the first cancels in order, a second Ctrl-C stops at once, and an end that does not come is enforced.
//!
//! The signals have a thread of their own from the first moment of a run: neither the author's function, nor a connector that blocks
//! the I/O side, nor a terminal that takes up no output can keep a process from being stopped.
//!
//! Owns: which signal does what, and the time limit of an end that was asked for. Does not own: the cancel.
//! Runs on: a thread of its own.

use std::io;
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{OnceLock, mpsc};
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::oneshot;

use crate::engine::execution::CancelHandle;
use crate::engine::io::{SharedIo, TokioIo};
use crate::error::STUCK;

/// Exit status of a process that ended because of Ctrl-C, as shells have it.
const STOPPED_AT_ONCE: i32 = 130;
/// An orderly cancel is given up after 8 s, and its I/O side half a second later: whoever is still there now does not step at all.
const END_WITHIN: Duration = Duration::from_millis(9_800);

/// The signals of one run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Signals {
    shared: Arc<Shared>,
    _over: oneshot::Sender<()>,
}

#[derive(Debug, Default)]
struct Shared {
    wanted: AtomicBool,
    cancel: OnceLock<CancelHandle>,
}

impl Shared {
    fn cancel(&self) {
        self.wanted.store(true, Ordering::SeqCst);
        if let Some(cancel) = self.cancel.get() {
            cancel.cancel();
        }
    }
}

impl Signals {
    /// Listens from now on. What comes before there is anything to cancel is kept.
    ///
    /// # Errors
    /// The signals cannot be listened for.
    pub(crate) fn listen(job: &str) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (over_tx, over) = oneshot::channel();
        let (ready_tx, ready) = mpsc::sync_channel(1);
        let (for_thread, job) = (Arc::clone(&shared), job.to_owned());
        let thread = std::thread::Builder::new().name("tidegate-signals".to_owned());
        thread.spawn(move || {
            let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready_tx.send(Err(error))),
            };
            let io = TokioIo::shared(runtime.handle().clone());
            runtime.block_on(async move {
                let listened = signal(SignalKind::interrupt())
                    .and_then(|interrupt| Ok((interrupt, signal(SignalKind::terminate())?)));
                match listened {
                    Ok((interrupt, terminate)) => {
                        let _ = ready_tx.send(Ok(()));
                        obey(&for_thread, &job, &io, (interrupt, terminate), over).await;
                    }
                    Err(error) => drop(ready_tx.send(Err(error))),
                }
            });
        })?;
        ready.recv().map_err(|_| io::Error::other("the thread of the signals ended at once"))??;
        Ok(Self { shared, _over: over_tx })
    }

    /// There is something to cancel now.
    pub(crate) fn cancels(&self, cancel: CancelHandle) {
        let cancel = self.shared.cancel.get_or_init(|| cancel);
        if self.shared.wanted.load(Ordering::SeqCst) {
            cancel.cancel();
        }
    }
}

async fn obey(
    shared: &Shared,
    job: &str,
    io: &SharedIo,
    (mut interrupt, mut terminate): (Signal, Signal),
    mut over: oneshot::Receiver<()>,
) {
    let (mut interrupted, mut asked) = (false, false);
    let mut too_late = io.sleep(END_WITHIN);
    loop {
        tokio::select! {
            Some(()) = interrupt.recv() => {
                if interrupted {
                    exit(STOPPED_AT_ONCE);
                }
                interrupted = true;
                eprintln!("canceling in order; press Ctrl-C again to stop at once");
            }
            Some(()) = terminate.recv() => {}
            () = &mut too_late, if asked => {
                let within = END_WITHIN.as_secs_f64();
                eprintln!(
                    "error: job \"{job}\" did not end within {within} s of the signal: it does not step; the process ends\n  \
                     help: nothing is lost: the next start commits or rolls back what is prepared"
                );
                exit(i32::from(STUCK));
            }
            _ = &mut over => return,
        }
        shared.cancel();
        if !asked {
            asked = true;
            too_late = io.sleep(END_WITHIN);
        }
    }
}
