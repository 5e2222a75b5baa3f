//! The server behind a two-phase sink: branches that are prepared, committed or rolled back.
//!
//! Names are the engine's [`TransactionName`]s with empty job, log and operator (there is one of each); a branch stands for its name and
//! for what a connector would need.
//!
//! Owns: what a server answers. Does not own: who asks when (the laws do). Runs on: plain data, part of a model's state.

use std::collections::BTreeMap;
use std::fmt;

use tidegate_engine::api::Prepared;
use tidegate_engine::ids::{AttemptId, CheckpointId};
use tidegate_engine::operator::{CommitOutcome, TransactionName, TransactionScope};

/// One transaction: who wrote it, and which barrier closed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Branch {
    pub(crate) attempt: u8,
    pub(crate) subtask: u8,
    pub(crate) closed_by: u8,
}

impl Branch {
    /// Its name. Every barrier closes a branch here, so the barrier before is one less.
    pub(crate) fn name(self) -> TransactionName {
        TransactionName {
            scope: scope(),
            subtask: u32::from(self.subtask),
            opened_after: CheckpointId(u64::from(self.closed_by.saturating_sub(1))),
            attempt: AttemptId(u64::from(self.attempt)),
        }
    }

    /// It, as a sink's state lists it.
    pub(crate) fn prepared(self) -> Prepared<Self> {
        Prepared { name: self.name(), closed_by: CheckpointId(u64::from(self.closed_by)), committable: self }
    }
}

impl fmt::Display for Branch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "T({}.{}, {})", self.attempt, self.subtask, self.closed_by)
    }
}

fn scope() -> TransactionScope {
    let (job, log_id, lineage, uid) = Default::default();
    TransactionScope { job, log_id, lineage, uid }
}

/// What has become of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fate {
    Prepared,
    Committed,
    RolledBack,
}

/// Every branch that was ever prepared, with the records in it as a bit mask.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Server {
    branches: BTreeMap<Branch, (u16, Fate)>,
}

impl Server {
    pub(crate) fn prepare(&mut self, branch: Branch, records: u16) {
        self.branches.insert(branch, (records, Fate::Prepared));
    }

    pub(crate) fn fate(&self, branch: Branch) -> Option<Fate> {
        self.branches.get(&branch).map(|(_, fate)| *fate)
    }

    pub(crate) fn commit(&mut self, branch: Branch) -> CommitOutcome {
        match self.branches.get_mut(&branch) {
            Some((_, fate @ Fate::Prepared)) => {
                *fate = Fate::Committed;
                CommitOutcome::Committed
            }
            Some((_, Fate::Committed)) => CommitOutcome::AlreadyCommitted,
            Some((_, Fate::RolledBack)) | None => CommitOutcome::Lost { reason: String::new() },
        }
    }

    pub(crate) fn roll_back(&mut self, branch: Branch) {
        if let Some((_, fate @ Fate::Prepared)) = self.branches.get_mut(&branch) {
            *fate = Fate::RolledBack;
        }
    }

    /// Takes a branch that makes no difference any more out of the state.
    pub(crate) fn forget(&mut self, branch: Branch) {
        self.branches.remove(&branch);
    }

    /// Everything prepared.
    pub(crate) fn prepared(&self) -> impl Iterator<Item = Branch> + '_ {
        self.branches.iter().filter(|(_, (_, fate))| *fate == Fate::Prepared).map(|(branch, _)| *branch)
    }

    /// Everything committed.
    pub(crate) fn committed(&self) -> impl Iterator<Item = Branch> + '_ {
        self.branches.iter().filter(|(_, (_, fate))| *fate == Fate::Committed).map(|(branch, _)| *branch)
    }

    /// The prepared branches among `names`.
    pub(crate) fn among(&self, names: &[TransactionName]) -> Vec<Branch> {
        self.prepared().filter(|branch| names.contains(&branch.name())).collect()
    }

    /// How often each record is in the output once every branch in `listed` is committed, as far as `counts` says that a branch counts.
    pub(crate) fn output(&self, listed: &[Branch], counts: impl Fn(Branch) -> bool) -> [u8; 16] {
        let mut times = [0; 16];
        for (branch, (records, fate)) in &self.branches {
            let is_out = match fate {
                Fate::Committed => true,
                Fate::Prepared => listed.contains(branch),
                Fate::RolledBack => false,
            };
            if is_out && counts(*branch) {
                times
                    .iter_mut()
                    .enumerate()
                    .filter(|(r, _)| records >> r & 1 == 1)
                    .for_each(|(_, n)| *n += 1);
            }
        }
        times
    }

    /// What is wrong with the output of a job that restarts at `position` and commits `listed`.
    pub(crate) fn wrong_output(
        &self,
        position: u8,
        listed: &[Branch],
        doubles_count: bool,
        counts: impl Fn(Branch) -> bool,
    ) -> Option<String> {
        let output = self.output(listed, counts);
        let before = usize::from(position);
        if let Some(record) = output[..before].iter().position(|times| *times == 0) {
            return Some(format!(
                "LOST: a restart begins at {position}, and record {record} is neither committed nor listed"
            ));
        }
        let doubled = |(record, times): (usize, &u8)| *times > 1 || record >= before && *times > 0;
        let record = output.iter().enumerate().position(doubled)?;
        doubles_count
            .then(|| format!("DOUBLED: a restart begins at {position}, and record {record} is out too often"))
    }
}

impl fmt::Display for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (branch, (_, fate)) in &self.branches {
            let mark = match fate {
                Fate::Prepared => "?",
                Fate::Committed => "!",
                Fate::RolledBack => "x",
            };
            write!(f, " {branch}{mark}")?;
        }
        Ok(())
    }
}
