//! How an attempt begins: look, refuse what can be refused, claim, look again.
//!
//! Owns: the claim protocol. Does not own: its decisions (see [`super::decide`]), nor whether a checkpoint fits the job (see
//! [`crate::checkpoint::restore_check`]): the caller checks between [`LogClient::survey`] and [`LogClient::claim`], since
//! refusals are decided before the claim is written. Runs on: the I/O side.

use std::collections::BTreeSet;

use tidegate_state::fault_point;

use super::client::{LISTINGS_AGAIN_MAX, LogClient};
use super::decide::{AfterClaim, ReadBack, decide_after_claim, lineage_of};
use super::entry::{ClaimBase, EntryBody, LogEntry, Nonce, NonceSource};
use super::error::LogError;
use super::gaps::Gap;
use super::identity::START_TRIES_MAX;
use super::listing::{Listing, RestorePoint};
use super::retry::Pauses;
use super::rewind::{Rewind, validate_rewind};
use super::store::LogStore;
use crate::checkpoint::completed::CompletedCheckpoint;
use crate::ids::{AttemptId, CheckpointId, EntryNumber, Lineage, LogId, OperatorUid};
use crate::mutation::{self, Mutation};
use crate::operator::TransactionName;

/// What a claim would restore, before it is written.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The log as it was.
    pub listing: Listing,
    /// What was asked for.
    pub base: ClaimBase,
    /// What would be restored.
    pub restored: Option<CompletedCheckpoint>,
}

/// How a claim ended.
#[derive(Clone, Debug)]
pub enum ClaimOutcome {
    /// The job is this attempt's.
    Claimed(Box<Claimed>),
    /// A later claim stands above.
    Fenced {
        /// That claim.
        by: EntryNumber,
    },
    /// Another entry took the number, or the claim is void: survey, check and claim again.
    Again,
}

/// An attempt that has begun.
#[derive(Clone, Debug)]
pub struct Claimed {
    /// The number of the claim: the attempt's last entry so far.
    pub number: EntryNumber,
    /// The attempt: the number of its claim.
    pub attempt: AttemptId,
    /// The claim's nonce; later entries derive theirs from it.
    pub nonce: Nonce,
    /// The log.
    pub log_id: LogId,
    /// The lineage.
    pub lineage: Lineage,
    /// What is restored.
    pub restored: Option<CompletedCheckpoint>,
    /// For each sink: everything up to this checkpoint is known to be committed and is not asked for again.
    pub committed: Vec<(OperatorUid, CheckpointId)>,
    /// The id of the first checkpoint of this attempt.
    pub next_checkpoint: CheckpointId,
    /// Older checkpoints that the restored entry retains, lowest first.
    pub retained: Vec<CompletedCheckpoint>,
    /// Checkpoint entries that were passed over or left behind: to be cleaned once a checkpoint of this attempt is complete.
    pub left_over: Vec<CompletedCheckpoint>,
    /// Transactions that somebody decided to go on without.
    pub forgotten: Vec<TransactionName>,
    /// The log as it stood after the claim.
    pub listing: Listing,
}

impl<S: LogStore> LogClient<S> {
    /// Looks at what a claim with this base would restore.
    ///
    /// # Errors
    /// [`LogError::AlreadyFinished`] for `Latest` on a finished job, [`LogError::BaseMissing`], [`LogError::NotWhole`] for `Latest`, or
    /// an unreadable log.
    pub async fn survey(&self, base: ClaimBase) -> Result<Survey, LogError> {
        let mut listing = self.listing(None).await?;
        if base == ClaimBase::Latest {
            // What has finished has no newest checkpoint to look for.
            self.restored(&listing, listing.restore_point(listing.highest()))?;
            listing = self.whole(listing, |listing| listing.gaps(&BTreeSet::new())).await?;
        }
        let restored = match base {
            ClaimBase::None => None,
            ClaimBase::Latest => self.restored(&listing, listing.restore_point(listing.highest()))?,
            ClaimBase::Entry(entry) => {
                let claim = listing.highest().next();
                let found = listing.checkpoint(entry);
                Some(found.ok_or_else(|| self.base_missing(claim, entry))?)
            }
        };
        Ok(Survey { listing, base, restored })
    }

    /// Looks at a rewind to `checkpoint`.
    ///
    /// # Errors
    /// As [`LogClient::survey`], and if the checkpoint is unknown, not on the line or not retained.
    pub async fn survey_rewind(&self, checkpoint: CheckpointId) -> Result<(Survey, Rewind), LogError> {
        let mut listing = self.listing(None).await?;
        let mut rewind = validate_rewind(&listing, checkpoint, self.url())?;
        if listing.checkpoints().last().is_some_and(|newest| newest.number != rewind.target.number) {
            // A claim that is gone may have passed the target over.
            listing = self.whole(listing, |listing| listing.claims_gone(&BTreeSet::new())).await?;
            rewind = validate_rewind(&listing, checkpoint, self.url())?;
        }
        let base = ClaimBase::Entry(rewind.target.number);
        Ok((Survey { listing, base, restored: Some(rewind.target.clone()) }, rewind))
    }

    /// Refuses if `gaps` shows something in two listings, one after the other; what only one shows, a living cleaner has done while it
    /// was read.
    async fn whole(
        &self,
        mut listing: Listing,
        gaps: impl Fn(&Listing) -> Vec<Gap> + Send,
    ) -> Result<Listing, LogError> {
        let mut found = gaps(&listing);
        for _ in 0..LISTINGS_AGAIN_MAX {
            if found.is_empty() {
                return Ok(listing);
            }
            listing = self.listing(Some(&listing)).await?;
            let again = gaps(&listing);
            if again == found {
                let newest = listing.checkpoints().last().map(|c| c.id());
                return Err(LogError::NotWhole {
                    folder: self.url().to_owned(),
                    gap: found.remove(0),
                    newest,
                });
            }
            found = again;
        }
        Err(LogError::Restless { folder: self.url().to_owned(), tries: LISTINGS_AGAIN_MAX })
    }

    /// Paths of everything in the folder. Listed before the log, they must be of attempts whose claims stand (see
    /// [`LogClient::check_files`]).
    ///
    /// # Errors
    /// [`LogError::Store`].
    pub async fn files(&self) -> Result<Vec<String>, LogError> {
        self.store.list("").await.map_err(|source| self.failed("list", "", source))
    }

    /// Whether a file is of an attempt above the log: the next claim could get the number of one that is gone, and its transactions the
    /// names of that one's.
    ///
    /// # Errors
    /// [`LogError::NotWhole`].
    pub fn check_files(&self, survey: &Survey, files: &[String]) -> Result<(), LogError> {
        let paths = files.iter().map(String::as_str);
        let gone = survey.listing.claims_gone_by_files(&BTreeSet::new(), paths);
        match gone.into_iter().find(|gap| gap.entry() > survey.listing.highest()) {
            None => Ok(()),
            Some(gap) => {
                let newest = survey.listing.checkpoints().last().map(|c| c.id());
                Err(LogError::NotWhole { folder: self.url().to_owned(), gap, newest })
            }
        }
    }

    /// Claims the job at the number above what the survey listed. `nonce` is fresh for each call.
    ///
    /// # Errors
    /// The store failed several times: this start gives up. (A claim of it may still appear; it is like a start that died.)
    pub async fn claim(&self, survey: &Survey, nonce: Nonce) -> Result<ClaimOutcome, LogError> {
        let own = survey.listing.highest().next();
        let unsaid = mutation::on(Mutation::ExplicitRestoreNotInLog);
        let base = if unsaid { ClaimBase::Latest } else { survey.base };
        let body = EntryBody::Claim { base, stores: vec![self.url().to_owned()] };
        let entry = LogEntry { attempt: AttemptId(own.0), nonce, body };
        fault_point!("commit_log.claim.before");
        if !self.put_claim(own, &entry).await? {
            return Ok(ClaimOutcome::Again);
        }
        fault_point!("commit_log.claim.after");
        let listing = match mutation::on(Mutation::NoSecondListing) {
            true => survey.listing.clone(),
            false => self.listing(Some(&survey.listing)).await?,
        };
        match decide_after_claim(own, &listing) {
            AfterClaim::Claimed => {
                let mut claimed = self.begun(own, nonce, listing)?;
                if unsaid && survey.base != ClaimBase::Latest {
                    let manifest = survey.restored.as_ref().map(|r| r.manifest.as_ref());
                    claimed.lineage = lineage_of(own, &self.log_id, &self.job, manifest);
                    claimed.restored = survey.restored.clone();
                    claimed.committed = Vec::new();
                }
                Ok(ClaimOutcome::Claimed(Box::new(claimed)))
            }
            AfterClaim::Fenced { by } => Ok(ClaimOutcome::Fenced { by }),
            AfterClaim::ClaimAgain => Ok(ClaimOutcome::Again),
        }
    }

    /// The claim that has taken the job over from the attempt `own`: the lowest that stands above its own.
    ///
    /// # Errors
    /// [`LogError::FolderReplaced`]: then no entry says anything; or the log cannot be read.
    pub async fn taken_over(&self, own: AttemptId) -> Result<Option<EntryNumber>, LogError> {
        let mut claim = None;
        // A claim is void by what stands above it, and that may have come and gone past a listing while it was made; not past two.
        for _ in 0..2 {
            let listing = self.listing_from(EntryNumber(own.0).next(), None).await?;
            claim = listing.claims_above(own).next().map(|(number, _)| number);
            if claim.is_none() {
                break;
            }
        }
        self.check_folder().await?;
        Ok(claim)
    }

    /// Surveys, checks and claims until it is claimed or fenced.
    ///
    /// # Errors
    /// What [`LogClient::survey`] and [`LogClient::claim`] report, or what `check` refuses.
    pub async fn claim_checked<E: From<LogError>>(
        &self,
        base: ClaimBase,
        nonces: &mut NonceSource,
        mut check: impl FnMut(Option<&CompletedCheckpoint>) -> Result<(), E> + Send,
    ) -> Result<ClaimOutcome, E> {
        loop {
            let survey = self.survey(base).await?;
            check(survey.restored.as_ref())?;
            match self.claim(&survey, nonces.draw()).await? {
                ClaimOutcome::Again => {}
                outcome => return Ok(outcome),
            }
        }
    }

    /// Whether the claim stands; `false`: another entry does.
    async fn put_claim(&self, own: EntryNumber, entry: &LogEntry) -> Result<bool, LogError> {
        let mut pauses = Pauses::default();
        loop {
            let failed = match self.put_once(own, entry).await {
                Ok(ReadBack::Ours) => return Ok(true),
                Ok(ReadBack::Foreign) => return Ok(false),
                Ok(ReadBack::Absent) => {
                    let source = "the store reported a failure, and nothing stands there".into();
                    self.failed("create", &super::entry::path_of(own), source)
                }
                Err(error) => error,
            };
            if pauses.taken() + 1 >= START_TRIES_MAX {
                return Err(failed);
            }
            self.io.sleep(pauses.next()).await;
        }
    }

    pub(super) fn begun(
        &self,
        own: EntryNumber,
        nonce: Nonce,
        listing: Listing,
    ) -> Result<Claimed, LogError> {
        let restored = self.restored(&listing, listing.restore_point(own))?;
        // Only what the newest entry of the log keeps: its cleaner may be about to delete everything else.
        let in_log = listing.kept();
        let mut retained = restored.as_ref().map(|r| listing.retained_with(r.number)).unwrap_or_default();
        retained.retain(|c| in_log.contains(&c.number));
        let kept = |c: &CompletedCheckpoint| retained.iter().chain(&restored).any(|r| r.number == c.number);
        let left_over = listing.checkpoints().filter(|c| !kept(c)).collect();
        let manifest = restored.as_ref().map(|r| r.manifest.as_ref());
        Ok(Claimed {
            number: own,
            attempt: AttemptId(own.0),
            nonce,
            log_id: self.log_id.clone(),
            lineage: lineage_of(own, &self.log_id, &self.job, manifest),
            committed: restored.as_ref().map(|r| listing.committed_with(r.number)).unwrap_or_default(),
            next_checkpoint: listing.next_checkpoint(),
            retained,
            left_over,
            forgotten: listing.forgotten(),
            restored,
            listing,
        })
    }

    fn restored(
        &self,
        listing: &Listing,
        point: RestorePoint,
    ) -> Result<Option<CompletedCheckpoint>, LogError> {
        match point {
            RestorePoint::Nothing => Ok(None),
            RestorePoint::Checkpoint(number) => Ok(listing.checkpoint(number)),
            RestorePoint::Finished(entry) => Err(LogError::AlreadyFinished { job: self.job.clone(), entry }),
            RestorePoint::Missing { claim, base } => Err(self.base_missing(claim, base)),
        }
    }

    fn base_missing(&self, claim: EntryNumber, base: EntryNumber) -> LogError {
        LogError::BaseMissing { claim, base, folder: self.url().to_owned() }
    }
}
