//! Fault points: named places on both sides of every durable step, at which a process can be made to die.
//!
//! They are in every binary, so that a user's torture run can strike them. Idle, a point is one relaxed load.
//! Armed by `TIDEGATE_FAULT=name[:nth]`, the nth pass through the named point ends the process with SIGKILL: no
//! destructor runs, no buffer is flushed. A simulation arms its own thread by [`set_handler`] instead.
//!
//! Owns: arming, counting, striking.
//! Does not own: the names (see [`points`]) and the places.
//! Runs on: any thread.

pub mod points;
#[cfg(test)]
mod tests;

use std::cell::RefCell;
use std::num::NonZeroU64;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

pub use self::points::{CONNECTOR_FAULT_POINTS, FAULT_POINTS};

/// The variable that [`arm_from_env`] reads.
pub const FAULT_VARIABLE: &str = "TIDEGATE_FAULT";

/// A named place at which the process can be made to die; the name must be in
/// [`FAULT_POINTS`] or [`CONNECTOR_FAULT_POINTS`].
#[macro_export]
macro_rules! fault_point {
    ($name:literal) => {{
        const { assert!($crate::fault::points::is_listed($name), "not listed in fault/points.rs") };
        $crate::fault::hit($name);
    }};
}

/// A handler that is called at each point its thread passes, with the point's name. It may panic.
pub type FaultHandler = Box<dyn FnMut(&'static str)>;

/// How many armings there are: the process's one, and one for each thread with a handler.
static ARMINGS: AtomicUsize = AtomicUsize::new(0);

/// The point at which the process dies.
static TARGET: OnceLock<Target> = OnceLock::new();

struct Target {
    name: &'static str,
    nth: u64,
    passes: AtomicU64,
}

thread_local! {
    static HANDLER: RefCell<Option<FaultHandler>> = const { RefCell::new(None) };
}

/// Why a fault could not be armed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultError {
    /// No point has this name.
    #[error("{FAULT_VARIABLE}={given}: there is no fault point {name}; there are: {}", points::all().collect::<Vec<_>>().join(", "))]
    UnknownPoint {
        /// The value of the variable.
        given: String,
        /// The name in it.
        name: String,
    },
    /// What follows the colon is not a number from 1.
    #[error("{FAULT_VARIABLE}={given}: after the colon stands which pass strikes, a number from 1")]
    BadPass {
        /// The value of the variable.
        given: String,
    },
    /// The process is armed already.
    #[error("{FAULT_VARIABLE} was armed before in this process")]
    ArmedBefore,
}

/// Arms the process from `TIDEGATE_FAULT=name[:nth]`; without the variable, nothing happens.
///
/// # Errors
/// When the name is not listed, the number is not one, or the process is armed already.
pub fn arm_from_env() -> Result<(), FaultError> {
    match std::env::var(FAULT_VARIABLE) {
        Ok(given) if !given.is_empty() => arm(&given),
        _ => Ok(()),
    }
}

fn arm(given: &str) -> Result<(), FaultError> {
    let (name, nth) = parse(given)?;
    let target = Target { name, nth: nth.get(), passes: AtomicU64::new(0) };
    TARGET.set(target).map_err(|_| FaultError::ArmedBefore)?;
    ARMINGS.fetch_add(1, Ordering::Release);
    Ok(())
}

fn parse(given: &str) -> Result<(&'static str, NonZeroU64), FaultError> {
    let (name, nth) = given.split_once(':').unwrap_or((given, "1"));
    let name = points::all()
        .find(|point| *point == name)
        .ok_or_else(|| FaultError::UnknownPoint { given: given.to_owned(), name: name.to_owned() })?;
    let nth = nth.parse().map_err(|_| FaultError::BadPass { given: given.to_owned() })?;
    Ok((name, nth))
}

/// Sets, or with `None` removes, the handler of this thread.
pub fn set_handler(handler: Option<FaultHandler>) {
    let adds = handler.is_some();
    let before = HANDLER.replace(handler);
    match (before.is_some(), adds) {
        (false, true) => ARMINGS.fetch_add(1, Ordering::Relaxed),
        (true, false) => ARMINGS.fetch_sub(1, Ordering::Relaxed),
        _ => 0,
    };
}

/// Passes a point; called by [`fault_point!`](crate::fault_point).
#[doc(hidden)]
#[inline]
pub fn hit(name: &'static str) {
    if ARMINGS.load(Ordering::Relaxed) != 0 {
        strike(name);
    }
}

#[cold]
fn strike(name: &'static str) {
    if let Some(target) = TARGET.get()
        && target.name == name
        && target.passes.fetch_add(1, Ordering::Relaxed) + 1 == target.nth
    {
        die();
    }
    call_handler(name);
}

/// Calls the thread's handler outside the cell, so that a point passed inside the handler is not a second borrow,
/// and puts it back also when it panics.
fn call_handler(name: &'static str) {
    struct PutBack(Option<FaultHandler>);
    impl Drop for PutBack {
        fn drop(&mut self) {
            HANDLER.with_borrow_mut(|place| {
                if place.is_none() {
                    *place = self.0.take();
                }
            });
        }
    }
    let mut handler = PutBack(HANDLER.with_borrow_mut(Option::take));
    if let Some(handler) = handler.0.as_mut() {
        handler(name);
    }
}

/// Ends the process as `kill -9` would.
fn die() -> ! {
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort()
}
