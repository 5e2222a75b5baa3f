//! What runs a job's subtasks.
//!
//! Owns: the subtask as a state machine with `step()`, its heads, its part in checkpoints, restore. Does not own: the decision
//! when a checkpoint is taken or complete (see [`crate::checkpoint`]). Runs on: slot threads.

pub mod gate_head;
pub mod head;
pub mod mail;
pub mod restore;
mod restore_error;
pub mod slot_pool;
pub mod slot_wake;
pub mod source_head;
pub mod subtask;
pub mod subtask_checkpointer;

pub use head::Head;
pub use subtask::{Step, Subtask, SubtaskSetup};
