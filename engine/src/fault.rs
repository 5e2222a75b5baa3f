//! Fault points, as the engine sees them.
//!
//! Owns: the payload with which a simulation unwinds out of a fault point; what other panics say. Does not own: the points and their arming
//! ([`tidegate_state::fault`]). Runs on: everywhere.

pub use tidegate_state::fault::{arm_from_env, set_handler};

/// Panic payload of a simulated crash: whoever catches panics of user code lets this one through.
#[derive(Clone, Copy, Debug)]
pub struct SimulatedCrash {
    /// The fault point it struck.
    pub point: &'static str,
}

/// What a caught panic says, for people.
pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|s| (*s).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("panicked: {}", text.unwrap_or_else(|| "without a message".to_owned()))
}
