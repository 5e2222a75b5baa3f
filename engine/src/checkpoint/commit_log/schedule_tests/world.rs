//! The sink's server, and the check that a restart neither loses nor doubles a record.

use std::collections::BTreeMap;

use super::super::{ClaimBase, EntryBody, Listing, RestorePoint};
use super::Coverage;
use super::store::ScheduledStore;
use crate::checkpoint::manifest::Manifest;

/// (attempt, checkpoint that closed it).
pub(super) type Branch = (u64, u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BranchState {
    Prepared,
    Committed,
    RolledBack,
}

#[derive(Debug, Default)]
pub(super) struct World {
    /// Records of each branch, and its state.
    pub(super) branches: BTreeMap<Branch, (Vec<u64>, BranchState)>,
    /// The newest attempt that has claimed.
    pub(super) newest: u64,
    pub(super) completed: u64,
    pub(super) fenced: u64,
    pub(super) void_claims: u64,
    pub(super) cleaned: u64,
    pub(super) lost: Option<Branch>,
    rewound: bool,
    anew: bool,
    finished: bool,
}

impl World {
    pub(super) fn commit(&mut self, by: u64, branch: Branch) {
        let newest = self.newest;
        match self.branches.get_mut(&branch) {
            Some((_, state @ BranchState::Prepared)) => *state = BranchState::Committed,
            Some((_, BranchState::Committed)) => {}
            // An older attempt may find that its branch was settled by others; it is about to be fenced.
            Some((_, BranchState::RolledBack)) | None if by < newest => {}
            Some((_, BranchState::RolledBack)) | None => self.lost = Some(branch),
        }
    }

    pub(super) fn roll_back(&mut self, branch: Branch) {
        if let Some((_, state @ BranchState::Prepared)) = self.branches.get_mut(&branch) {
            *state = BranchState::RolledBack;
        }
    }

    /// What a restart now would find.
    pub(super) fn check(&mut self, listing: &Listing, store: &ScheduledStore) -> Result<(), String> {
        if let Some(branch) = self.lost {
            return Err(format!("the newest attempt finds its listed branch {branch:?} rolled back"));
        }
        self.look_at(listing);
        let (position, listed, lineage) = match listing.restore_point(listing.highest()) {
            RestorePoint::Finished(_) => return Ok(()),
            RestorePoint::Missing { claim, base } => {
                return Err(format!("claim {claim} hands on {base}, which is gone"));
            }
            RestorePoint::Nothing => (0, Vec::new(), newest_start(listing)),
            RestorePoint::Checkpoint(number) => {
                let checkpoint = listing.checkpoint(number).unwrap();
                if let Some(file) = checkpoint.manifest.files().find(|file| !store.has(file)) {
                    return Err(format!("entry {number} would be restored, and its file {file} is gone"));
                }
                let (position, listed) = read_state(&checkpoint.manifest);
                (position, listed, checkpoint.manifest.lineage.0)
            }
        };
        self.count_records(position, &listed, lineage)
    }

    fn count_records(&self, position: u64, listed: &[Branch], lineage: u64) -> Result<(), String> {
        let mut times = BTreeMap::<u64, u32>::new();
        for (branch, (records, state)) in &self.branches {
            let will_be_out = match state {
                BranchState::Committed => true,
                BranchState::Prepared => listed.contains(branch),
                BranchState::RolledBack => false,
            };
            if will_be_out && branch.0 >= lineage {
                records.iter().for_each(|record| *times.entry(*record).or_default() += 1);
            }
        }
        if let Some(record) = (0..position).find(|record| !times.contains_key(record)) {
            return Err(format!("record {record} is lost: a restart begins at {position}\n{self:#?}"));
        }
        let doubled = times.iter().find(|(record, times)| **times > 1 || **record >= position);
        match doubled {
            Some((record, _)) if !self.rewound => {
                Err(format!("record {record} is doubled: a restart begins at {position}\n{self:#?}"))
            }
            _ => Ok(()),
        }
    }

    fn look_at(&mut self, listing: &Listing) {
        for (_, entry) in listing.iter() {
            match entry.body {
                EntryBody::Claim { base: ClaimBase::Entry(_), .. } => self.rewound = true,
                EntryBody::Claim { base: ClaimBase::None, .. } => self.anew = true,
                EntryBody::Finished => self.finished = true,
                _ => {}
            }
        }
    }

    pub(super) fn count(&self, coverage: &mut Coverage) {
        coverage.completed += self.completed;
        coverage.fenced += self.fenced;
        coverage.void_claims += self.void_claims;
        coverage.cleaned += self.cleaned;
        coverage.rewinds += u64::from(self.rewound);
        coverage.anew += u64::from(self.anew);
        coverage.finished += u64::from(self.finished);
    }
}

/// The newest claim that began anew: what is below it is of another lineage.
fn newest_start(listing: &Listing) -> u64 {
    let is_start =
        |entry: &super::super::LogEntry| matches!(entry.body, EntryBody::Claim { base: ClaimBase::None, .. });
    listing.iter().filter(|(n, e)| is_start(e) && !listing.is_void(*n)).map(|(n, _)| n.0).max().unwrap_or(0)
}

/// Position and listed branches, as the test's manifests hold them.
pub(super) fn read_state(manifest: &Manifest) -> (u64, Vec<Branch>) {
    let bytes = manifest.operators[0].enumerator.as_deref().unwrap();
    let words: Vec<u64> = bytes.chunks(8).map(|c| u64::from_le_bytes(c.try_into().unwrap())).collect();
    (words[0], words[1..].chunks(2).map(|pair| (pair[0], pair[1])).collect())
}

pub(super) fn write_state(position: u64, listed: &[Branch]) -> Vec<u8> {
    let words = [position].into_iter().chain(listed.iter().flat_map(|b| [b.0, b.1]));
    words.flat_map(u64::to_le_bytes).collect()
}
