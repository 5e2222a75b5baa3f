//! The Kafka topic of orders, as everybody but the job sees it: a client of its own.
//!
//! Owns: making and removing a topic ([`admin`]), writing orders into it ([`produce`]), reading all of it ([`read`]).
//! Does not own: how the job reads and writes topics (the connector).
//! Runs on: the main thread. Nothing here uses a type of the connectors: what is checked must not check itself.

pub(crate) mod admin;
mod error;
pub(crate) mod produce;
pub(crate) mod read;

pub(crate) use self::error::TopicError;
