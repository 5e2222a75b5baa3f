//! The Kafka source on a real broker.
//!
//! Owns: the scenarios. Does not own: the broker's start (`scripts/services`). Runs on: the test's threads and the job's.
#![cfg(feature = "rdkafka")]
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

mod bad_records;
mod broker;
mod ends;
mod live_job;
mod outages;
mod reading;
mod restore;
mod starts;
mod topics;
mod watermarks;
