//! The Kafka sink on a real broker, under kills of the job and of the broker.
//!
//! Owns: the scenarios. Does not own: the broker's start (`scripts/services`). Runs on: the test's threads.
#![cfg(feature = "rdkafka")]
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

mod broker_faults;
mod delays;
mod fake_broker;
mod forget;
mod jobs;
mod kills;
mod lag;
mod network;
mod proxy;
mod recreated;
mod refused_records;
mod retention;
mod run;
mod source_offsets;
mod submit;
mod subtask;
mod topic;
mod transactions;
mod txn;
