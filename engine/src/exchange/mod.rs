//! Channels between subtasks.
//!
//! One bounded inbox per receiving subtask carries (channel, element); bounds are credits, in batches per channel; channels held
//! by alignment wait in the gate. Inside a process elements are moved through a lock-free queue, never serialized.
//!
//! Owns: the way from an output of one chain to the head of another. Does not own: chains. Runs on: slot threads.

pub mod barrier_aligner;
pub mod channel_queues;
pub mod credits;
pub mod inbox;
pub mod input_gate;
pub mod partitioner;
pub mod result_partition;
pub mod watermark_valve;

pub use inbox::{ChannelSender, Inbox};
pub use input_gate::InputGate;
pub use partitioner::Partitioner;
pub use result_partition::ResultPartition;
