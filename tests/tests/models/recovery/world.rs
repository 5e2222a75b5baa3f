//! The server, and the subtasks of two attempts.
//!
//! Owns: the state of the model, and how it begins. Does not own: how it changes. Runs on: plain data.

use std::collections::{BTreeSet, VecDeque};
use std::fmt;

use super::super::server::{Branch, Server};
use super::{Recovery, Weakening};

/// One state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(super) server: Server,
    pub(super) attempts: Vec<Attempt>,
    /// The newest claim.
    pub(super) newest: u8,
    /// The attempt whose checkpoint is the newest complete one.
    pub(super) complete: u8,
    /// What any complete checkpoint has listed.
    pub(super) listed_ever: BTreeSet<Branch>,
    pub(super) lost: Option<Branch>,
    pub(super) zombie_has_struck: bool,
    /// Only with [`Weakening::SplitListState`]: to which subtask of attempt 2 each listed branch is handed.
    pub(super) split: Vec<u8>,
}

/// One attempt that recovers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Attempt {
    pub(super) number: u8,
    /// What the restored checkpoint lists: the union over its subtasks.
    pub(super) restored: Vec<Branch>,
    pub(super) subtasks: Vec<Subtask>,
}

/// One subtask of its sink.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Subtask {
    pub(super) phase: Phase,
    /// What it commits, in this order.
    pub(super) to_commit: VecDeque<Branch>,
    pub(super) has_prepared: bool,
    /// Only with [`Weakening::StableIdsChecked`].
    pub(super) has_checked: bool,
}

/// How far a subtask has come.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Phase {
    Committing,
    Sweeping {
        left: Vec<Branch>,
        /// With stable ids: subtask numbers whose id is opened, which throws away what is open or prepared under it.
        ids: Vec<u8>,
    },
    Recovered,
    Done,
}

/// The branch that the newest complete checkpoint of attempt 1 lists for this subtask.
pub(super) fn listed(subtask: u8) -> Branch {
    Branch { attempt: 1, subtask, closed_by: 1 }
}

/// A branch of attempt 1 that no complete checkpoint lists.
pub(super) fn unlisted(subtask: u8) -> Branch {
    Branch { attempt: 1, subtask, closed_by: 2 }
}

/// What the checkpoint of this attempt lists.
pub(super) fn own_branches(model: &Recovery, attempt: u8) -> impl Iterator<Item = Branch> {
    let parallelism = model.parallelism[usize::from(attempt) - 1];
    (0..parallelism).map(move |subtask| Branch { attempt, subtask, closed_by: 2 })
}

impl World {
    /// What attempt 1 left behind; with split list state, every way of handing its branches out.
    pub(super) fn first(model: &Recovery) -> Vec<Self> {
        let before = model.parallelism[0];
        let mut server = Server::default();
        (0..before).for_each(|subtask| server.prepare(listed(subtask), 0));
        (0..before).filter(|subtask| *subtask != 1).for_each(|subtask| server.prepare(unlisted(subtask), 0));
        let one = Self {
            server,
            attempts: Vec::new(),
            newest: 1,
            complete: 1,
            listed_ever: (0..before).map(listed).collect(),
            lost: None,
            zombie_has_struck: false,
            split: Vec::new(),
        };
        if model.weakening != Weakening::SplitListState {
            return vec![one];
        }
        let after = u32::from(model.parallelism[1]);
        let ways = 0..after.pow(u32::from(before));
        let split = |way: u32| (0..u32::from(before)).map(|b| (way / after.pow(b) % after) as u8).collect();
        ways.map(|way| Self { split: split(way), ..one.clone() }).collect()
    }

    pub(super) fn subtasks_of(&self, number: u8) -> impl Iterator<Item = &Subtask> {
        self.attempts.iter().filter(move |a| a.number == number).flat_map(|a| &a.subtasks)
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "newest {}, complete {} · server{}", self.newest, self.complete, self.server)
    }
}
