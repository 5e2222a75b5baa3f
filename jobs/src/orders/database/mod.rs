//! The MySQL database that the tables are in, as everybody but the job sees it: a client of its own.
//!
//! Owns: a connection that waits ([`Session`]), the tables and their making ([`tables`]), what an operator finds of
//! transactions left over ([`leftover`]).
//! Does not own: what the job writes there (the connector), nor the comparison ([`crate::verify`]).
//! Runs on: the main thread. Nothing here uses a type of the connectors: what is checked must not check itself.

pub(crate) mod leftover;
mod session;
pub(crate) mod tables;

pub(crate) use self::session::{DatabaseError, Session};
