//! One start of the job, from its survey on.
//!
//! Owns: what it knows by itself; it learns of others only through log and server. Does not own: its steps. Runs on: plain data.

use std::collections::VecDeque;

use tidegate_engine::ids::CheckpointId;
use tidegate_engine::operator::commit_driver::CommitDriver;

use super::super::server::Branch;
use super::action::Wish;
use super::log::{Base, Snapshot};

/// How far a start has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Idle,
    Surveyed { claim_at: u8, base: Base },
    Claimed { base: Base },
    Recovering,
    Sweeping { left: Vec<Branch> },
    Running,
    Acknowledged { snapshot: Snapshot },
    Uncertain { snapshot: Snapshot, number: u8 },
    Stopped,
}

/// One start.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(super) start: usize,
    pub(super) phase: Phase,
    pub(super) wish: Wish,
    /// The number of its claim.
    pub(super) number: u8,
    /// Its number if attempts were counted within a lineage.
    pub(super) within_lineage: u8,
    /// The number of its last entry.
    pub(super) last: u8,
    /// See [`Snapshot::since`].
    pub(super) since: u8,
    pub(super) position: u8,
    /// Records in the open transaction.
    pub(super) open: u16,
    pub(super) next_id: u8,
    pub(super) completed: u8,
    pub(super) has_aborted: bool,
    pub(super) driver: CommitDriver<Branch>,
    /// Handed to the committer; goes on when the job manager has stopped.
    pub(super) at_committer: VecDeque<Branch>,
    /// What the restored checkpoint lists.
    pub(super) restored: Vec<Branch>,
    /// Entries that its next checkpoint may name as retained, lowest first; the last one is the newest that it completed or restored.
    pub(super) kept: Vec<u8>,
    /// Entries of every checkpoint it knows of and has not planned to delete.
    pub(super) known: Vec<u8>,
    /// Planned deletions; they cannot be fenced.
    pub(super) to_clean: VecDeque<u8>,
}

/// More than any schedule here needs: places are the matter of another model.
const PLACES: usize = 64;

impl Attempt {
    pub(super) fn idle(start: usize) -> Self {
        Self {
            start,
            phase: Phase::Idle,
            wish: Wish::Latest,
            number: 0,
            within_lineage: 0,
            last: 0,
            since: 0,
            position: 0,
            open: 0,
            next_id: 0,
            completed: 0,
            has_aborted: false,
            driver: Self::driver(0),
            at_committer: VecDeque::new(),
            restored: Vec::new(),
            kept: Vec::new(),
            known: Vec::new(),
            to_clean: VecDeque::new(),
        }
    }

    pub(super) fn driver(restored: u8) -> CommitDriver<Branch> {
        CommitDriver::new(CheckpointId(u64::from(restored)), PLACES)
    }

    /// The job manager of this attempt does nothing any more. What it has begun at the sink and in the store goes on; what can make no
    /// difference any more is forgotten, so that the checker sees fewer states.
    pub(super) fn stop(&mut self) {
        let number = self.number;
        let (driver, at_committer) = match self.at_committer.is_empty() {
            true => (Self::driver(0), VecDeque::new()),
            false => (self.driver.clone(), std::mem::take(&mut self.at_committer)),
        };
        let to_clean = std::mem::take(&mut self.to_clean);
        *self =
            Self { phase: Phase::Stopped, number, driver, at_committer, to_clean, ..Self::idle(self.start) };
    }
}
