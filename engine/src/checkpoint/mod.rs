//! Checkpoints: when one is taken, what is in flight, what is durable, what may be deleted.
//!
//! Owns: the coordinator's decisions and the commit log. The cut of the work is one question per file: may I trigger now?
//! ([`trigger_decider`]) · whom do I ask? ([`plan`]) · what is in flight? ([`pending`], consumed into [`completed`]) · what is
//! durable? ([`commit_log`]) · how many failures do I bear? ([`failure_manager`]) · what may be deleted? ([`cleaner`]) ·
//! what do people see? ([`stats`]) · does a checkpoint fit this job? ([`restore_check`]) ·
//! is a folder as it should be? ([`fsck`]).
//!
//! **The commit point** (law 4): checkpoint *n* is complete when its log entry exists; nothing else makes it so.
//!
//! Does not own: the messages that carry these decisions (see [`crate::jobmanager::job_master`]), nor a subtask's part of a
//! checkpoint. Runs on: the job manager. Pure but for [`commit_log::LogClient`]: facts in, decisions out.

pub mod cleaner;
pub mod commit_log;
pub mod completed;
pub mod config;
pub mod coordinator;
pub mod failure_manager;
pub mod fsck;
pub mod manifest;
pub mod pending;
pub mod plan;
pub mod restore_check;
pub mod stats;
pub mod trigger_decider;

pub use completed::CompletedCheckpoint;
pub use config::{CheckpointConfig, CheckpointMode};
