//! Ctrl-C and SIGTERM: the first cancels in order, a second Ctrl-C stops at once.
//!
//! Owns: which signal does what. Does not own: the cancel.
//! Runs on: the job's I/O runtime.

use std::io;

use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

use crate::engine::execution::CancelHandle;

/// Exit status of a process that ended because of Ctrl-C, as shells have it.
const STOPPED_AT_ONCE: i32 = 130;

/// Cancels the job on signals, from now on.
///
/// # Errors
/// The signals cannot be listened for.
pub(crate) fn cancel_on_signals(runtime: &Handle, cancel: CancelHandle) -> io::Result<()> {
    let _runtime = runtime.enter();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    runtime.spawn(async move {
        let mut interrupted = false;
        loop {
            tokio::select! {
                Some(()) = interrupt.recv() => {
                    if interrupted {
                        std::process::exit(STOPPED_AT_ONCE);
                    }
                    interrupted = true;
                    eprintln!("canceling in order; press Ctrl-C again to stop at once");
                    cancel.cancel();
                }
                Some(()) = terminate.recv() => cancel.cancel(),
                else => return,
            }
        }
    });
    Ok(())
}
