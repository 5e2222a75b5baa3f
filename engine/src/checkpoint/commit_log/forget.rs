//! An operator's decision to go on without a transaction, put into the log.
//!
//! Whoever decides is an attempt that begins nothing: it claims the job (nothing that still runs completes anything more) and
//! puts `forgotten` right behind its claim. The next start walks through both, restores what the newest checkpoint says, asks the
//! server about the transaction once more, and goes on if it is lost.
//!
//! Owns: which transactions can be named, the order of these steps. Does not own: what a start makes of it
//! ([`crate::operator::sink_io`]). Runs on: the I/O side, in a process that runs no job.

use super::claim::ClaimOutcome;
use super::client::{LogClient, Settled};
use super::entry::{ClaimBase, EntryBody, LogEntry, NonceSource};
use super::forget_error::ForgetError;
use super::identity::read_id;
use super::listing::Listing;
use super::store::LogStore;
use crate::checkpoint::completed::CompletedCheckpoint;
use crate::checkpoint::manifest::StateBlob;
use crate::ids::{AttemptId, CheckpointId, EntryNumber};
use crate::io::SharedIo;
use crate::operator::ListedTransaction;
use crate::operator::sink_operator::COMMITTABLES;

/// A decision that stands in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forgotten {
    /// The transaction.
    pub transaction: ListedTransaction,
    /// The checkpoint that lists it: the next start restores that one.
    pub checkpoint: CheckpointId,
    /// Where the decision stands. `None`: it had been put before, and nothing was written.
    pub entry: Option<EntryNumber>,
}

impl<S: LogStore> LogClient<S> {
    /// Opens the log that is there; begins none.
    ///
    /// # Errors
    /// [`ForgetError::NoLog`], or the store is away.
    pub async fn open_existing(store: S, io: SharedIo) -> Result<Self, ForgetError> {
        match read_id(&store).await? {
            Some((job, log_id)) => Ok(Self::reopen(store, io, job, log_id).await?),
            None => Err(ForgetError::NoLog { folder: store.url().to_owned() }),
        }
    }

    /// Puts into the log that the job goes on without the transaction of this name, in the spelling of
    /// [`crate::operator::TransactionName`]. The newest checkpoint has to list it. May be repeated.
    ///
    /// # Errors
    /// [`ForgetError`]; nothing is decided then.
    pub async fn forget(&self, wanted: &str, nonces: &mut NonceSource) -> Result<Forgotten, ForgetError> {
        loop {
            let files = self.files().await?;
            let survey = self.survey(ClaimBase::Latest).await?;
            self.check_files(&survey, &files)?;
            let found = self.find(wanted, survey.restored.as_ref(), &survey.listing).await?;
            if survey.listing.forgotten().contains(&found.transaction.name) {
                return Ok(found);
            }
            let claimed = match self.claim(&survey, nonces.draw()).await? {
                ClaimOutcome::Again => continue,
                ClaimOutcome::Fenced { by } => return Err(self.overtaken(by)),
                ClaimOutcome::Claimed(claimed) => claimed,
            };
            // A checkpoint may have come between: then that one has to list it.
            let found = self.find(wanted, claimed.restored.as_ref(), &claimed.listing).await?;
            return self.put_forgotten(found, claimed.number, claimed.nonce).await;
        }
    }

    async fn put_forgotten(
        &self,
        found: Forgotten,
        claim: EntryNumber,
        claim_nonce: super::entry::Nonce,
    ) -> Result<Forgotten, ForgetError> {
        let number = claim.next();
        let body = EntryBody::Forgotten { transaction: found.transaction.name.clone() };
        let entry = LogEntry { attempt: AttemptId(claim.0), nonce: claim_nonce.of_entry(number), body };
        match self.append(number, entry).await {
            Settled::Ours => Ok(Forgotten { entry: Some(number), ..found }),
            Settled::Fenced => Err(self.overtaken(number)),
            Settled::Replaced { found } => {
                let (folder, job) = (self.url().to_owned(), self.job.clone());
                Err(super::LogError::FolderReplaced { folder, job, found }.into())
            }
            #[cfg(feature = "mutations")]
            Settled::TakenAsFailed => Err(self.overtaken(number)),
        }
    }

    async fn find(
        &self,
        wanted: &str,
        restored: Option<&CompletedCheckpoint>,
        listing: &Listing,
    ) -> Result<Forgotten, ForgetError> {
        let Some(restored) = restored else {
            return Err(ForgetError::NothingRestored { folder: self.url().to_owned() });
        };
        let mut listed = self.pending_in(restored, listing).await?;
        let checkpoint = restored.id();
        match listed.iter().position(|it| it.name.to_string() == wanted) {
            Some(at) => Ok(Forgotten { transaction: listed.swap_remove(at), checkpoint, entry: None }),
            None => {
                let folder = self.url().to_owned();
                Err(ForgetError::NotListed { wanted: wanted.to_owned(), checkpoint, folder, listed })
            }
        }
    }

    /// Transactions that a start from this checkpoint asks about, oldest first.
    async fn pending_in(
        &self,
        checkpoint: &CompletedCheckpoint,
        listing: &Listing,
    ) -> Result<Vec<ListedTransaction>, ForgetError> {
        let committed = listing.committed_with(checkpoint.number);
        let mut pending = Vec::new();
        for operator in checkpoint.manifest.operators.iter().filter(|operator| operator.two_phase) {
            let known = committed.iter().filter(|(sink, _)| *sink == operator.uid).map(|(_, up_to)| *up_to);
            let known = known.max().unwrap_or_default();
            let lists = operator.subtasks.iter().flat_map(|subtask| &subtask.lists);
            for list in lists.filter(|list| list.name == COMMITTABLES) {
                let bytes = self.list_bytes(&list.blob).await?;
                let read = ListedTransaction::read_list(&bytes).map_err(|source| ForgetError::State {
                    operator: operator.uid.clone(),
                    checkpoint: checkpoint.id(),
                    source: Box::new(source),
                })?;
                pending.extend(read.into_iter().filter(|it| it.closed_by > known));
            }
        }
        pending.sort();
        pending.dedup();
        Ok(pending)
    }

    async fn list_bytes(&self, blob: &StateBlob) -> Result<Vec<u8>, ForgetError> {
        let path = match blob {
            StateBlob::Inline(bytes) => return Ok(bytes.clone()),
            StateBlob::File(path, _) => path,
        };
        let found = self.store.get(path).await.map_err(|source| self.failed("read", path, source))?;
        let missing = || ForgetError::FileGone { path: path.clone(), folder: self.url().to_owned() };
        Ok(found.ok_or_else(missing)?.to_vec())
    }

    fn overtaken(&self, by: EntryNumber) -> ForgetError {
        ForgetError::Overtaken { by, folder: self.url().to_owned(), job: self.job.clone() }
    }
}
