//! A checkpoint folder as it was found.
//!
//! Owns: the order of looking (files first, the log after them), and the deletions. Does not own: what is wrong (see
//! [`super::judge`] and [`super::state_files`]). Runs on: the I/O side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tidegate_state::CheckpointStorage;

use super::finding::Finding;
use super::inventory::{self, FoundFile};
use super::judge::{self, Deletable};
use super::state_files::{self, Checked};
use super::{FsckError, error};
use crate::checkpoint::commit_log::{
    EnvelopeError, FOLDER, Gap, IDENTITY_PATH, Listing, LogEntry, number_in, path_of, read_entry,
    read_identity,
};
use crate::ids::{EntryNumber, JobName, LogId};

/// A log that seems to miss something is read anew, so often at most.
const READINGS_AGAIN_MAX: u32 = 16;

/// See the module.
#[derive(Debug)]
pub struct CheckpointFolder {
    storage: CheckpointStorage,
    local: Option<PathBuf>,
    /// Whose folder it is, and the id of its log.
    pub owner: Option<(JobName, LogId)>,
    /// The entries that can be read.
    pub listing: Listing,
    /// Everything that lies there.
    pub files: Vec<FoundFile>,
    /// Log entries that cannot be read, and `log/id` if it cannot.
    pub unreadable: Vec<(String, EnvelopeError)>,
}

impl CheckpointFolder {
    /// Looks at a folder. `local` is its path if it lies on a local disk, which is then walked.
    ///
    /// # Errors
    /// [`FsckError`].
    pub async fn look(storage: CheckpointStorage, local: Option<&Path>) -> Result<Self, FsckError> {
        let files = match local {
            Some(root) => inventory::walk(root)?,
            None => inventory::list(&storage).await?,
        };
        let mut folder = Self {
            storage,
            local: local.map(Path::to_owned),
            owner: None,
            listing: Listing::default(),
            files,
            unreadable: Vec::new(),
        };
        folder.read_identity().await?;
        folder.read_entries().await?;
        folder.read_again_while_it_changes().await?;
        if folder.is_empty() {
            return Err(error::FsckError::NoFolder { url: folder.storage.url().to_owned() });
        }
        Ok(folder)
    }

    /// Where it is.
    pub fn url(&self) -> &str {
        self.storage.url()
    }

    fn is_empty(&self) -> bool {
        self.owner.is_none()
            && self.unreadable.is_empty()
            && self.listing.iter().next().is_none()
            && !self.files.iter().any(|file| judge::is_of_an_attempt(&file.path))
    }

    async fn read_identity(&mut self) -> Result<(), FsckError> {
        match self.storage.get(IDENTITY_PATH).await?.map(|bytes| read_identity(&bytes)) {
            None => {}
            Some(Ok(owner)) => self.owner = Some(owner),
            Some(Err(why)) => self.unreadable.push((IDENTITY_PATH.to_owned(), why)),
        }
        Ok(())
    }

    /// Beside a living cleaner the log may seem to miss what was cleaned while it was read: what is missing twice is missing.
    async fn read_again_while_it_changes(&mut self) -> Result<(), FsckError> {
        for _ in 0..READINGS_AGAIN_MAX {
            let gaps = self.gaps();
            if gaps.is_empty() {
                return Ok(());
            }
            self.read_entries().await?;
            if self.gaps() == gaps {
                return Ok(());
            }
        }
        Ok(())
    }

    /// What must stand in the log and does not.
    pub(super) fn gaps(&self) -> Vec<Gap> {
        let unreadable = self.unreadable_entries();
        let mut gaps = self.listing.gaps(&unreadable);
        let paths = self.files.iter().map(|file| file.path.as_str());
        let claims = self.listing.claims_gone(&unreadable);
        for gap in claims.into_iter().chain(self.listing.claims_gone_by_files(&unreadable, paths)) {
            // One entry is told once.
            if gaps.iter().all(|known| known.entry() != gap.entry()) {
                gaps.push(gap);
            }
        }
        gaps
    }

    /// Numbers of the entries that cannot be read.
    pub(super) fn unreadable_entries(&self) -> BTreeSet<EntryNumber> {
        self.unreadable.iter().filter_map(|(path, _)| number_in(path)).collect()
    }

    async fn read_entries(&mut self) -> Result<(), FsckError> {
        self.unreadable.retain(|(path, _)| path == IDENTITY_PATH);
        let mut entries: BTreeMap<EntryNumber, Arc<LogEntry>> = BTreeMap::new();
        for path in self.storage.list(FOLDER).await? {
            let Some(number) = number_in(&path) else { continue };
            // One that is gone was cleaned since it was listed.
            let Some(bytes) = self.storage.get(&path).await? else { continue };
            match read_entry(&bytes) {
                Ok(entry) => drop(entries.insert(number, Arc::new(entry))),
                Err(why) => self.unreadable.push((path, why)),
            }
        }
        self.listing = entries.into_iter().collect();
        Ok(())
    }

    /// Reads every file that the retained checkpoints refer to, and says what is missing in the log. What is missing because a running job has cleaned its checkpoint
    /// meanwhile is no finding.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn verify(&self) -> Result<Checked, FsckError> {
        let kept: BTreeSet<_> = self.listing.kept().into_iter().collect();
        let mut checked = self.check_files(|number| kept.contains(&number)).await?;
        checked.findings.splice(..0, judge::missing_entries(self));
        Ok(checked)
    }

    /// Reads every file that any entry names, and compares the folder with its log. `alive`: a job runs on it, so that what its
    /// attempt has under way is no finding.
    ///
    /// # Errors
    /// The store does not answer.
    pub async fn check(&self, alive: bool) -> Result<Checked, FsckError> {
        let mut checked = self.check_files(|_| true).await?;
        let mut findings = judge::findings(self, alive);
        findings.append(&mut checked.findings);
        Ok(Checked { findings, ..checked })
    }

    async fn check_files(&self, of: impl Fn(EntryNumber) -> bool) -> Result<Checked, FsckError> {
        let checkpoints: Vec<_> = self.listing.checkpoints().filter(|c| of(c.number)).collect();
        let mut checked = state_files::check(&self.storage, &checkpoints).await?;
        let mut still = BTreeMap::new();
        for checkpoint in &checkpoints {
            still.insert(checkpoint.id(), self.storage.get(&path_of(checkpoint.number)).await?.is_some());
        }
        checked.findings.retain(|finding| match finding {
            Finding::MissingFile { checkpoints, .. } => {
                checkpoints.iter().any(|id| still.get(id).copied().unwrap_or(true))
            }
            _ => true,
        });
        Ok(checked)
    }

    /// Deletes what may be, and says what is gone. `alone`: the caller has made sure that no job runs on this folder and none starts.
    ///
    /// # Errors
    /// The store or the disk refuses; what was deleted before stays deleted.
    pub async fn delete(&self, findings: &[Finding], alone: bool) -> Result<Vec<String>, FsckError> {
        let deletable = Deletable::of(self, alone);
        let mut deleted = Vec::new();
        for finding in findings.iter().filter(|finding| deletable.allows(finding)) {
            let Some(path) = finding.path() else { continue };
            match &self.local {
                // The store's names do not reach a half-written file.
                Some(root) => delete_local(root, path)?,
                None => self.storage.delete(path).await?,
            }
            deleted.push(path.to_owned());
        }
        Ok(deleted)
    }
}

/// Deletes a file, and its folder below `root` if that leaves it empty.
fn delete_local(root: &Path, path: &str) -> Result<(), FsckError> {
    let file = root.join(path);
    match std::fs::remove_file(&file) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(FsckError::Walk { path: file, source: error });
        }
        _ => {}
    }
    let mut folder = file.parent();
    while let Some(empty) = folder.filter(|folder| *folder != root && std::fs::remove_dir(folder).is_ok()) {
        folder = empty.parent();
    }
    Ok(())
}
