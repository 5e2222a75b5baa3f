//! Talking to a running job from another process: line JSON over a socket (RFC 0006).
//!
//! A job answers on a unix socket in its checkpoint folder, and where `--control` says. Who starts on a folder asks that socket first,
//! and is refused while somebody answers, unless it takes over. This spares people a mistake; it is not what keeps two processes
//! apart: that is the commit log, which fences the older one at its next put.
//!
//! Owns: addresses ([`address`]), the words ([`protocol`], [`report`]), answering ([`server`], [`host`]), asking ([`client`]), the socket of a
//! folder ([`folder_socket`]), and the list of jobs that run on this machine ([`registry`]).
//! Does not own: what the answers mean (the engine).
//! Runs on: threads of their own beside the job; the asking side on the command line's thread.

mod address;
pub(crate) mod client;
pub(crate) mod folder_socket;
mod host;
pub(crate) mod process;
pub(crate) mod protocol;
pub(crate) mod registry;
pub(crate) mod report;
mod server;
mod stream;

pub use self::address::{AddressError, ControlAddress};
pub use self::folder_socket::ControlError;
pub(crate) use self::host::{FsckHost, JobHost, stopped};
pub use self::report::{CheckpointReport, JobReport, JobState, SubtaskReport};
pub(crate) use self::server::ControlServer;
#[cfg(test)]
pub(crate) use self::server::Host;
