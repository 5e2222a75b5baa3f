//! Carries the log's decisions out on a store.
//!
//! Owns: puts with read-back, listings, deletions. Does not own: any decision (see [`super::decide`], [`super::listing`] and
//! [`crate::checkpoint::cleaner`]). Runs on: the I/O side of the job manager.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use tidegate_state::{CheckpointStorage, fault_point};

use super::bytes::{ENTRY_MAGIC, open, seal};
use super::decide::{PutAnswer, ReadBack, decide_after_put, read_back};
use super::entry::{EntryBody, FOLDER, LogEntry, Nonce, number_in, path_of};
use super::error::LogError;
use super::identity::read_id;
use super::listing::Listing;
use super::retry::Pauses;
use super::store::{LogStore, PutResult};
use crate::checkpoint::cleaner::{CleanPlan, DeletedCheckpoint, is_of_lower, sweep_orphans};
use crate::ids::{AttemptId, EntryNumber, JobName, LogId};
use crate::io::SharedIo;
use crate::mutation::{Mutation, on};

/// After an orderly end nobody else sweeps, so it is tried so often.
const LAST_SWEEP_TRIES_MAX: u32 = 8;

/// A listing from which entries vanish while it is read is made anew, so often at most.
pub(super) const LISTINGS_AGAIN_MAX: u32 = 16;

/// How a put of an entry ended. There is no third way: a put whose outcome is unknown is not over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The entry stands.
    Ours,
    /// Another attempt's entry stands there: stop everything, publish nothing more.
    Fenced,
    /// The folder is not the one that was claimed: `log/id` is gone, or another log's. Nothing that stands in it says anything.
    Replaced {
        /// What `log/id` is instead, for people.
        found: &'static str,
    },
    /// Only under [`Mutation::UncertainPutIsFailure`].
    #[cfg(feature = "mutations")]
    TakenAsFailed,
}

/// The log of one job in one store. Clones share it.
#[derive(Clone)]
pub struct LogClient<S: LogStore = CheckpointStorage> {
    pub(super) store: S,
    pub(super) io: SharedIo,
    pub(super) job: JobName,
    pub(super) log_id: LogId,
}

impl<S: LogStore> LogClient<S> {
    /// The random id of this log.
    pub fn log_id(&self) -> &LogId {
        &self.log_id
    }

    /// The job it belongs to.
    pub fn job(&self) -> &JobName {
        &self.job
    }

    /// Where it is, for people.
    pub fn url(&self) -> &str {
        self.store.url()
    }

    /// Reads every entry. Entries that `known` has are not read again: an entry never changes.
    ///
    /// # Errors
    /// [`LogError::Unreadable`] names the file; [`LogError::Store`] if the store is away; [`LogError::Restless`] if the entries go
    /// faster than they can be read.
    pub async fn listing(&self, known: Option<&Listing>) -> Result<Listing, LogError> {
        self.listing_from(EntryNumber(0), known).await
    }

    /// The same without what stands below `lowest`.
    pub(super) async fn listing_from(
        &self,
        lowest: EntryNumber,
        known: Option<&Listing>,
    ) -> Result<Listing, LogError> {
        let failed = |doing, path: &str, source| self.failed(doing, path, source);
        let listed = self.store.list(FOLDER).await.map_err(|e| failed("list", FOLDER, e))?;
        let mut paths = VecDeque::from(listed);
        let mut entries = BTreeMap::new();
        let mut again = 0;
        while let Some(path) = paths.pop_front() {
            let is_new = |n: &EntryNumber| *n >= lowest && !entries.contains_key(n);
            let Some(number) = number_in(&path).filter(is_new) else { continue };
            if let Some(entry) = known.and_then(|known| known.get(number)) {
                entries.insert(number, entry.clone());
                continue;
            }
            let path = &path;
            let Some(bytes) = self.store.get(path).await.map_err(|e| failed("read", path, e))? else {
                // Gone between listing and reading: a cleaner was here, and what it cleaned for may have come after the listing.
                again += 1;
                if again > LISTINGS_AGAIN_MAX {
                    // What has come meanwhile is not known, and what was listed is gone: this must not pass for an empty log.
                    let (folder, tries) = (self.store.url().to_owned(), again);
                    return Err(LogError::Restless { folder, tries });
                }
                paths = self.store.list(FOLDER).await.map_err(|e| failed("list", FOLDER, e))?.into();
                entries.retain(|number, _| paths.contains(&path_of(*number)));
                continue;
            };
            let entry: LogEntry = open(ENTRY_MAGIC, &bytes).map_err(|source| LogError::Unreadable {
                path: path.clone(),
                folder: self.store.url().to_owned(),
                source,
            })?;
            entries.insert(number, Arc::new(entry));
        }
        Ok(entries.into_iter().collect())
    }

    /// Puts an entry at `number` and does not return before the outcome is certain, however long that takes. That it stands is certain
    /// only if `log/id` is still there afterwards: a folder that was deleted is made anew by the put itself.
    pub async fn append(&self, number: EntryNumber, entry: LogEntry) -> Settled {
        // Not in a folder that is another one's. A store that is away now is asked again after the put.
        if let Ok(Some(found)) = self.replaced().await {
            return Settled::Replaced { found };
        }
        let settled = self.append_here(number, entry).await;
        let mut pauses = Pauses::default();
        loop {
            match self.replaced().await {
                Ok(None) => return settled,
                Ok(Some(found)) => return Settled::Replaced { found },
                // Whoever does not own the job stops at once.
                Err(_) if settled != Settled::Ours => return settled,
                Err(error) => {
                    tracing::warn!(%error, "whether the folder is still the same is not settled yet")
                }
            }
            self.io.sleep(pauses.next()).await;
        }
    }

    /// What `log/id` is now, for people; `None`: what it was.
    pub(super) async fn replaced(&self) -> Result<Option<&'static str>, LogError> {
        Ok(match read_id(&self.store).await {
            Ok(Some((_, log_id))) if log_id == self.log_id => None,
            Ok(Some(_)) => Some("is that of another log"),
            Ok(None) => Some("is gone"),
            Err(LogError::Unreadable { .. }) => Some("cannot be read any more"),
            Err(error) => return Err(error),
        })
    }

    async fn append_here(&self, number: EntryNumber, entry: LogEntry) -> Settled {
        let mut number = number;
        if on(Mutation::NumbersFromListing)
            && let Ok(listing) = self.listing(None).await
        {
            number = listing.highest().next();
        }
        strike_before(&entry.body);
        let mut pauses = Pauses::default();
        let settled = loop {
            match self.put_once(number, &entry).await {
                Ok(ReadBack::Ours) => break Settled::Ours,
                Ok(ReadBack::Foreign) if on(Mutation::PutPerId) && self.other_id_at(number, &entry).await => {
                    number = number.next();
                    continue;
                }
                Ok(ReadBack::Foreign) => break Settled::Fenced,
                #[cfg(feature = "mutations")]
                Ok(ReadBack::Absent) | Err(_) if on(Mutation::UncertainPutIsFailure) => {
                    return Settled::TakenAsFailed;
                }
                Ok(ReadBack::Absent) => {}
                Err(error) => {
                    tracing::warn!(entry = number.0, %error, "the put of a log entry is not settled yet")
                }
            }
            self.io.sleep(pauses.next()).await;
        };
        if settled == Settled::Ours {
            strike_after(&entry.body);
        }
        settled
    }

    /// One put and, unless it is settled by that, one read-back.
    pub(super) async fn put_once(&self, number: EntryNumber, entry: &LogEntry) -> Result<ReadBack, LogError> {
        let path = path_of(number);
        let answer = match self.store.create(&path, Bytes::from(seal(ENTRY_MAGIC, entry))).await {
            Ok(PutResult::Created) => PutAnswer::Created,
            Ok(PutResult::AlreadyExists) => PutAnswer::AlreadyExists,
            Err(error) => {
                tracing::warn!(entry = number.0, %error, "a put failed; it is read back");
                PutAnswer::Error
            }
        };
        match decide_after_put(answer) {
            Some(settled) => Ok(settled),
            None if on(Mutation::UncertainPutIsFailure) && !entry.is_claim() => Ok(ReadBack::Absent),
            None => self.read_back(number, entry.nonce).await,
        }
    }

    /// Whether an entry of another checkpoint id stands at `number`.
    async fn other_id_at(&self, number: EntryNumber, own: &LogEntry) -> bool {
        let Ok(Some(bytes)) = self.store.get(&path_of(number)).await else { return false };
        let found = open::<LogEntry>(ENTRY_MAGIC, &bytes);
        own.manifest().is_some() && found.is_ok_and(|found| found.checkpoint_id() != own.checkpoint_id())
    }

    async fn read_back(&self, number: EntryNumber, own: Nonce) -> Result<ReadBack, LogError> {
        let path = path_of(number);
        let bytes = self.store.get(&path).await.map_err(|e| self.failed("read back", &path, e))?;
        let Some(bytes) = bytes else { return Ok(ReadBack::Absent) };
        match open::<LogEntry>(ENTRY_MAGIC, &bytes) {
            Ok(found) => Ok(read_back(own, Some(&found))),
            // Not known to be ours: then nothing may be published. The next start names the file.
            Err(error) => {
                tracing::error!(%path, %error, "what stands at the entry cannot be read");
                Ok(ReadBack::Foreign)
            }
        }
    }

    /// Deletes what a plan names, entries first. What fails is left for the next time.
    pub async fn clean(&self, plan: CleanPlan) -> Vec<EntryNumber> {
        let plan = if on(Mutation::CleanerByListing) { self.plan_by_listing(plan).await } else { plan };
        let mut cleaned = Vec::new();
        for checkpoint in plan.delete {
            match self.clean_one(checkpoint.number, &checkpoint.folder, &plan.keep).await {
                Ok(()) => cleaned.push(checkpoint.number),
                Err(error) => {
                    tracing::warn!(entry = checkpoint.number.0, %error, "a checkpoint was not cleaned")
                }
            }
        }
        cleaned
    }

    /// The softened cleaner: as many of the highest entries as the newest checkpoint keeps stay, whatever they are.
    async fn plan_by_listing(&self, plan: CleanPlan) -> CleanPlan {
        let Ok(listing) = self.listing(None).await else { return plan };
        let Some(newest) = listing.checkpoints().last() else { return plan };
        let kept = listing.retained_with(newest.number).len() + 1;
        let high: BTreeSet<_> = listing.iter().rev().take(kept).map(|(number, _)| number).collect();
        let low = listing.checkpoints().filter(|c| !high.contains(&c.number));
        let delete = low.map(|c| DeletedCheckpoint { number: c.number, folder: c.folder() }).collect();
        CleanPlan { delete, keep: BTreeSet::new() }
    }

    async fn clean_one(
        &self,
        number: EntryNumber,
        folder: &str,
        keep: &BTreeSet<String>,
    ) -> Result<(), LogError> {
        fault_point!("cleaner.entry.before");
        self.delete(&path_of(number)).await?;
        fault_point!("cleaner.entry.after");
        fault_point!("cleaner.files.before");
        let files = self.store.list(folder).await.map_err(|e| self.failed("list", folder, e))?;
        for file in files.iter().filter(|file| !keep.contains(*file)) {
            self.delete(file).await?;
        }
        fault_point!("cleaner.files.after");
        Ok(())
    }

    /// Deletes files of lower attempts that no entry names, and what their puts have left half-written. Only after the claim of
    /// `own`, whose listing is given.
    ///
    /// # Errors
    /// The store failed; the next start tries again.
    pub async fn sweep(&self, own: AttemptId, listing: &Listing) -> Result<usize, LogError> {
        let all = self.store.list("").await.map_err(|e| self.failed("list", "", e))?;
        let orphans = sweep_orphans(own, listing, &all);
        for file in &orphans {
            self.delete(file).await?;
        }
        let half_written = self.store.sweep_half_written(|path| is_of_lower(own, path));
        Ok(orphans.len() + half_written.map_err(|e| self.failed("sweep", "", e))?)
    }

    /// Deletes files of attempts up to `own` that no entry names: for an attempt that has ended in order and puts nothing more.
    ///
    /// # Errors
    /// The store failed; the next claimant tries again.
    pub async fn sweep_own(&self, own: AttemptId) -> Result<usize, LogError> {
        let mut pauses = Pauses::default();
        loop {
            let swept = match self.listing(None).await {
                Ok(listing) => self.sweep(AttemptId(own.0 + 1), &listing).await,
                Err(error) => Err(error),
            };
            if swept.is_ok() || pauses.taken() + 1 >= LAST_SWEEP_TRIES_MAX {
                return swept;
            }
            self.io.sleep(pauses.next()).await;
        }
    }

    async fn delete(&self, path: &str) -> Result<(), LogError> {
        self.store.delete(path).await.map_err(|e| self.failed("delete", path, e))
    }

    pub(super) fn failed(&self, doing: &'static str, path: &str, source: super::StoreError) -> LogError {
        LogError::Store { doing, path: path.to_owned(), folder: self.store.url().to_owned(), source }
    }
}

fn strike_before(body: &EntryBody) {
    match body {
        EntryBody::Checkpoint { .. } => {
            fault_point!("commit_log.checkpoint.before");
        }
        EntryBody::Finished => {
            fault_point!("commit_log.finished.before");
        }
        EntryBody::Claim { .. } | EntryBody::Settled { .. } | EntryBody::Forgotten { .. } => {}
    }
}

fn strike_after(body: &EntryBody) {
    match body {
        EntryBody::Checkpoint { .. } => {
            fault_point!("commit_log.checkpoint.after");
        }
        EntryBody::Finished => {
            fault_point!("commit_log.finished.after");
        }
        EntryBody::Claim { .. } | EntryBody::Settled { .. } | EntryBody::Forgotten { .. } => {}
    }
}
