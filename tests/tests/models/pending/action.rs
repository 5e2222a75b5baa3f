//! What can happen, and when.
//!
//! Owns: the conditions. Does not own: the effects. Runs on: the checker.

use std::fmt;
use std::time::Duration;

use tidegate_engine::checkpoint::trigger_decider::{TriggerDecision, TriggerFacts, decide_trigger};

use super::world::{InChannel, World};
use super::{Pending, Weakening};

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Emit,
    Trigger { is_savepoint: bool },
    FailForPlaces,
    Write,
    Barrier,
    Abort { is_counted: bool },
    Complete,
    Notify,
    CommitNext,
    Crash,
}

/// Records that the channel holds at most.
const RECORDS_IN_CHANNEL: usize = 2;

impl Pending {
    pub(super) fn actions_in(&self, world: &World, actions: &mut Vec<Action>) {
        if world.has_failed || world.completions == self.completions && self.crashes == 0 {
            return;
        }
        if world.channel.len() < RECORDS_IN_CHANNEL
            && self.records.is_none_or(|records| world.position < records)
        {
            actions.push(Action::Emit);
        }
        self.triggers(world, actions);
        match world.channel.front() {
            Some(InChannel::Record(_)) if !self.is_blocked(world) => actions.push(Action::Write),
            Some(InChannel::Barrier { .. }) => actions.push(Action::Barrier),
            _ => {}
        }
        if let Some(in_flight) = &world.in_flight {
            if world.failures < self.config().tolerable_failures {
                actions.push(Action::Abort { is_counted: true });
            }
            if self.uncounted {
                actions.push(Action::Abort { is_counted: false });
            }
            if in_flight.acknowledged.is_some() {
                actions.push(Action::Complete);
            }
        }
        let is_deaf = self.weakening == Weakening::BlockedIsNotStepped && self.is_blocked(world);
        if world.notified < world.completed.id && !is_deaf {
            actions.push(Action::Notify);
        }
        if !world.at_committer.is_empty() {
            actions.push(Action::CommitNext);
        }
        if world.attempt <= self.crashes {
            actions.push(Action::Crash);
        }
    }

    fn triggers(&self, world: &World, actions: &mut Vec<Action>) {
        if world.next_id > self.ids
            || world.completions == self.completions
            || world.channel.len() > RECORDS_IN_CHANNEL
        {
            return;
        }
        let facts = TriggerFacts {
            now: Duration::from_secs(3600),
            recovered: true,
            since: Duration::ZERO,
            triggered_at: None,
            ended_at: None,
            in_flight: u32::from(world.in_flight.is_some()),
            barriers_out: world.barriers_out,
            transactional: true,
            requested: false,
            all_ended: false,
        };
        match decide_trigger(&self.config(), &facts) {
            TriggerDecision::TriggerNow(_) => {
                actions.push(Action::Trigger { is_savepoint: false });
                if self.savepoints {
                    actions.push(Action::Trigger { is_savepoint: true });
                }
            }
            TriggerDecision::NoPlaceLeft => actions.push(Action::FailForPlaces),
            TriggerDecision::WaitUntil(_) | TriggerDecision::WaitForEvent => {}
        }
    }

    /// Whether the record at the head of the channel has to wait: for a place, or for its row.
    fn is_blocked(&self, world: &World) -> bool {
        let Some(InChannel::Record(_)) = world.channel.front() else { return false };
        let has_no_place = world.open == 0 && world.driver.prepared() >= self.places();
        let is_locked = self.locks && world.server.prepared().next().is_some();
        has_no_place || is_locked
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Emit => "the source emits a record",
            Self::Trigger { is_savepoint: false } => "a checkpoint is triggered",
            Self::Trigger { is_savepoint: true } => "a savepoint is triggered",
            Self::FailForPlaces => "the job fails: no place is left",
            Self::Write => "the writer takes a record",
            Self::Barrier => "the barrier: prepares and acknowledges",
            Self::Abort { is_counted: true } => "it is given up, which counts",
            Self::Abort { is_counted: false } => "it is given up, which does not count",
            Self::Complete => "it is complete",
            Self::Notify => "the sink is notified",
            Self::CommitNext => "the committer commits the next transaction",
            Self::Crash => "crash; restore, commit what is listed, sweep",
        })
    }
}
