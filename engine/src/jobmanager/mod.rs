//! The job manager: what a job is, one attempt of it, and what follows an attempt that failed.
//!
//! Owns: [`plan`] (vertices and operators without types), [`job_master`] (one attempt from "claimed and restored" to its end) and
//! [`restart_strategy`]. Does not own: claims (see [`crate::checkpoint::commit_log`]), slots, processes.
//! Runs on: the job manager's loop; every decision is pure.

pub mod attempt_end;
pub mod job_master;
pub mod plan;
pub mod restart_strategy;

pub use attempt_end::{AttemptEnd, AttemptFailure};
pub use job_master::{Control, JobMaster, MasterAction, MasterEvent, MasterNotice, MasterSetup};
pub use restart_strategy::{RestartDecision, RestartStrategy, Restarts};
