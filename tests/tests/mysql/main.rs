//! The MySQL sinks against real servers: MariaDB and Oracle's MySQL, started by `scripts/services` if they do not run.
//!
//! Owns: the scenarios. Does not own: the servers, which other tests share: every test has a database and a log id of its own, since
//! branches are known to the whole server. Runs on: the test's thread.
#![cfg(feature = "mysql")]
#![allow(clippy::unwrap_used, reason = "a test program: what fails here fails the test")]

mod bad_input;
mod chain;
mod constraints;
mod jobs;
mod late_commits;
mod ledger;
mod left_over;
mod network;
mod outages;
mod recovery;
mod rights;
mod room;
mod row_locks;
mod scene;
mod sessions;
mod set_up;
mod staging;
mod tied;
mod unfinished;
mod values;
mod xa_branches;
mod xa_command;
