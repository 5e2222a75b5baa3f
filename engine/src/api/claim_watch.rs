//! What a sink may ask the commit log: how far its transactions are committed for good, and whether its attempt still holds its job,
//! which is asked before something is written where everybody can see it at once.
//!
//! A process that stood still (SIGSTOP, a machine that was paused) does not know that another one has taken its job over. What it
//! prepares in transactions never becomes visible, since the commit log refuses its next checkpoint; what it writes at once is there.
//! The answer alone is no protection, it is old when it arrives. It is one together with a lock of the server that a successor takes
//! away before it writes. The order makes it so: *first the lock, then the question, then the writing*. A claim that stands when the
//! question is asked is seen; whoever claims later ends the session that holds the lock before it writes anything itself, so what
//! this one has written by then lies below.
//!
//! Owns: what an answer means to a connector. Does not own: the question to the log ([`LogClient::taken_over`]), the lock (the
//! connector's), how long an answer is waited for.
//! Runs on: the I/O side.

use super::source::ConnectorError;
use crate::checkpoint::commit_log::{LogClient, LogError};
use crate::ids::{AttemptId, CheckpointId, EntryNumber, JobName, OperatorUid};
use crate::quoted::folder_of;

/// See the module.
#[derive(Clone)]
pub struct ClaimWatch {
    /// `None`: nobody can take the job over.
    claim: Option<(LogClient, AttemptId)>,
}

/// The job is not this attempt's any more, or nobody can say so.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// A later claim stands.
    #[error("job \"{job}\" was taken over: entry {by} of the commit log is a later claim")]
    TakenOver {
        /// The job.
        job: JobName,
        /// That claim.
        by: EntryNumber,
    },
    /// The commit log cannot be read.
    #[error("whether the job was taken over cannot be said")]
    Unread {
        /// Why.
        #[source]
        source: Box<LogError>,
    },
    /// The commit log does not answer.
    #[error(
        "the commit log did not say for {waited_ms} ms whether the job was taken over\n  help: see that the checkpoint folder can be reached"
    )]
    NoAnswer {
        /// How long.
        waited_ms: u64,
    },
}

impl ClaimWatch {
    /// For a job without checkpoints: it has no log, and nobody takes it over.
    pub fn unclaimed() -> Self {
        Self { claim: None }
    }

    /// For the attempt `own`, which has claimed its job in this log.
    pub fn of(log: LogClient, own: AttemptId) -> Self {
        Self { claim: Some((log, own)) }
    }

    /// The checkpoint folder that the log is in, as a command line takes it.
    pub(crate) fn folder(&self) -> Option<String> {
        self.claim.as_ref().map(|(log, _)| folder_of(log.url()))
    }

    /// Asks up to which checkpoint the transactions of a sink are committed for good: every checkpoint that a start could restore from
    /// this log knows them to be, and asks for none of them again. `None`: there is none, or not for all of them.
    ///
    /// # Errors
    /// [`ClaimError::Unread`].
    pub async fn committed_for_good(&self, sink: &OperatorUid) -> Result<Option<CheckpointId>, ClaimError> {
        let Some((log, _)) = &self.claim else { return Ok(None) };
        let listing =
            log.listing(None).await.map_err(|source| ClaimError::Unread { source: Box::new(source) })?;
        let known = listing.checkpoints().map(|checkpoint| {
            let committed = listing.committed_with(checkpoint.number);
            committed.into_iter().find(|(uid, _)| uid == sink).map(|(_, up_to)| up_to)
        });
        // The lowest; where one of them knows nothing, nothing.
        Ok(known.min().flatten())
    }

    /// Asks whether the attempt still holds the job.
    ///
    /// # Errors
    /// [`ClaimError::TakenOver`], or [`ClaimError::Unread`].
    pub async fn check(&self) -> Result<(), ClaimError> {
        let Some((log, own)) = &self.claim else { return Ok(()) };
        match log.taken_over(*own).await {
            Ok(None) => Ok(()),
            Ok(Some(by)) => Err(ClaimError::TakenOver { job: log.job().clone(), by }),
            Err(source) => Err(ClaimError::Unread { source: Box::new(source) }),
        }
    }
}

impl std::fmt::Debug for ClaimWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let own = self.claim.as_ref().map(|(_, own)| own);
        f.debug_struct("ClaimWatch").field("own", &own).finish_non_exhaustive()
    }
}

impl ClaimError {
    /// Whether asking again may help.
    pub fn is_away(&self) -> bool {
        match self {
            Self::TakenOver { .. } => false,
            Self::Unread { source } => source.is_away(),
            Self::NoAnswer { .. } => true,
        }
    }

    /// The claim that has taken the job over.
    pub fn taken_over_by(&self) -> Option<EntryNumber> {
        match self {
            Self::TakenOver { by, .. } => Some(*by),
            Self::Unread { .. } | Self::NoAnswer { .. } => None,
        }
    }

    /// As the failure of a connector that was `doing` something: the attempt ends as fenced, or a restart finds out why the log
    /// cannot be read.
    pub fn while_doing(self, doing: impl std::fmt::Display) -> ConnectorError {
        let fenced_by = self.taken_over_by();
        ConnectorError { fenced_by, ..ConnectorError::transient(doing).caused_by(self) }
    }
}
