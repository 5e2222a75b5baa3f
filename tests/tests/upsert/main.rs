//! The upsert sink on real servers: what is written again does no harm, and the table is what the changes say.
//!
//! Owns: the scenarios. Does not own: the servers (`scripts/services`). Runs on: the test's thread and the job's.
#![cfg(feature = "mysql")]
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

mod changelog;
mod network;
mod refusals;
mod scene;
mod take_over;
mod values;
mod writers;
