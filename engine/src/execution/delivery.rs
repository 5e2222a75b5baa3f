//! How mail and reports go between a job manager and its subtasks.
//!
//! Owns: the seam. In production messages go [`Straight`] through channels inside the process; a simulation loses, doubles and
//! delays them. Does not own: repeating what was lost (the job master does), nor refusing what is old (both ends do).
//! Runs on: the thread that steps the attempt.

use std::sync::Arc;

use crate::clock::Moment;
use crate::ids::SubtaskId;
use crate::taskworker::mail::{Mail, TaskReport};

/// A message between a job manager and a subtask.
#[derive(Clone, Debug)]
pub enum Packet {
    /// To a subtask.
    Mail(SubtaskId, Mail),
    /// To the job manager.
    Report(TaskReport),
}

/// Carries messages.
pub trait Delivery: Send + Sync + 'static {
    /// Takes a message on its way, and hands over what arrives at once.
    fn carry(&self, packet: Packet, arrive: &mut dyn FnMut(Packet));

    /// Hands over what has been on its way and arrives by `now`.
    fn arrivals(&self, now: Moment, arrive: &mut dyn FnMut(Packet));
}

/// A shared way of delivery.
pub type SharedDelivery = Arc<dyn Delivery>;

/// Every message arrives at once, and once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Straight;

impl Delivery for Straight {
    fn carry(&self, packet: Packet, arrive: &mut dyn FnMut(Packet)) {
        arrive(packet);
    }

    fn arrivals(&self, _now: Moment, _arrive: &mut dyn FnMut(Packet)) {}
}
