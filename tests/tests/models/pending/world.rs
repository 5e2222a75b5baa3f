//! Source, channel, sink, server and coordinator.
//!
//! Owns: the state of the model. Does not own: how it changes. Runs on: plain data.

use std::collections::VecDeque;
use std::fmt;

use tidegate_engine::ids::CheckpointId;
use tidegate_engine::operator::commit_driver::CommitDriver;

use super::super::server::{Branch, Server};
use super::Pending;

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    /// The next record of the source.
    pub(super) position: u8,
    pub(super) channel: VecDeque<InChannel>,
    pub(super) driver: CommitDriver<Branch>,
    /// Records in the open transaction.
    pub(super) open: u16,
    pub(super) at_committer: VecDeque<Branch>,
    /// The newest completed checkpoint that the sink knows of.
    pub(super) notified: u8,
    pub(super) server: Server,
    pub(super) lost: Option<Branch>,
    /// From 1; each crash begins another.
    pub(super) attempt: u8,
    pub(super) next_id: u8,
    pub(super) in_flight: Option<InFlight>,
    pub(super) completed: Completed,
    pub(super) completions: u8,
    /// Counted failures in a row.
    pub(super) failures: u32,
    /// Barriers since the newest completed checkpoint.
    pub(super) barriers_out: u32,
    /// Failed for the reason that no place is left.
    pub(super) has_failed: bool,
}

/// What travels from source to sink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum InChannel {
    Record(u8),
    Barrier { id: u8, newest_completed: u8 },
}

/// The checkpoint that is being taken.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct InFlight {
    pub(super) id: u8,
    pub(super) is_savepoint: bool,
    /// Position of the source.
    pub(super) position: u8,
    /// What the sink listed.
    pub(super) acknowledged: Option<Vec<Branch>>,
}

/// The newest completed checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Completed {
    pub(super) id: u8,
    pub(super) position: u8,
    pub(super) listed: Vec<Branch>,
}

impl World {
    pub(super) fn first(places: usize) -> Self {
        Self {
            position: 0,
            channel: VecDeque::new(),
            driver: CommitDriver::new(CheckpointId(0), places),
            open: 0,
            at_committer: VecDeque::new(),
            notified: 0,
            server: Server::default(),
            lost: None,
            attempt: 1,
            next_id: 1,
            in_flight: None,
            completed: Completed::default(),
            completions: 0,
            failures: 0,
            barriers_out: 0,
            has_failed: false,
        }
    }

    pub(super) fn emit(&mut self, model: &Pending) {
        self.channel.push_back(InChannel::Record(self.position));
        if model.records.is_some() {
            self.position += 1;
        }
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "complete {} at {} · channel", self.completed.id, self.completed.position)?;
        for item in &self.channel {
            match item {
                InChannel::Record(_) => write!(f, " r")?,
                InChannel::Barrier { id, .. } => write!(f, " |{id}")?,
            }
        }
        write!(f, " · {} · server{}", if self.open == 0 { "closed" } else { "open" }, self.server)
    }
}
