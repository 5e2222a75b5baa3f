//! How an attempt starts: open the log, look, refuse, claim, read the checkpoint's files.
//!
//! Owns: the order of these. Does not own: the claim protocol ([`crate::checkpoint::commit_log`]). Runs on: the I/O side.

use std::sync::Arc;

use tidegate_state::CheckpointStorage;

use super::config::RestoreFrom;
use crate::checkpoint::commit_log::{ClaimBase, ClaimOutcome, Claimed, LogClient, LogError, NonceSource};
use crate::checkpoint::completed::CompletedCheckpoint;
use crate::checkpoint::restore_check::{RestoreNote, RestoreOptions, RestoreRefusal, check_restore};
use crate::error::EngineError;
use crate::io::SharedIo;
use crate::jobmanager::plan::JobPlan;
use crate::taskworker::restore::{Restored, load};

/// What a start needs.
pub struct StartSetup {
    /// The job.
    pub plan: Arc<JobPlan>,
    /// Its checkpoint folder.
    pub storage: CheckpointStorage,
    /// Runs retries' pauses.
    pub io: SharedIo,
    /// Fresh random numbers.
    pub nonces: NonceSource,
    /// What to restore.
    pub restore: RestoreFrom,
    /// Drop state that no operator claims.
    pub allow_non_restored_state: bool,
    /// Whether this is the first start of this process: the store is tried out.
    pub preflight: bool,
}

/// An attempt that has claimed the job and read what it restores.
pub struct Started {
    /// The claim.
    pub claimed: Claimed,
    /// The state.
    pub restored: Restored,
    /// The log.
    pub log: LogClient,
    /// What was not restored, for people.
    pub notes: Vec<RestoreNote>,
}

/// A refusal or a failure between survey and claim.
enum CheckFailed {
    Log(LogError),
    Refused(RestoreRefusal),
}

impl From<LogError> for CheckFailed {
    fn from(error: LogError) -> Self {
        Self::Log(error)
    }
}

/// Starts an attempt.
///
/// # Errors
/// The folder refuses, the checkpoint does not fit, or another start was faster.
pub async fn start(mut setup: StartSetup) -> Result<Started, EngineError> {
    if setup.preflight {
        setup.storage.preflight().await?;
    }
    let job = setup.plan.job.clone();
    let log = LogClient::open(setup.storage.clone(), setup.io.clone(), job.clone(), &mut setup.nonces).await?;
    let (claimed, notes) = match setup.restore {
        RestoreFrom::Rewind(checkpoint) => claim_rewind(&log, &mut setup, checkpoint).await?,
        RestoreFrom::Latest => claim(&log, &mut setup, ClaimBase::Latest).await?,
        RestoreFrom::None => claim(&log, &mut setup, ClaimBase::None).await?,
    };
    let restored = match &claimed.restored {
        Some(checkpoint) => load(&setup.storage, &checkpoint.manifest).await?,
        None => Restored::default(),
    };
    Ok(Started { claimed, restored, log, notes })
}

async fn claim(
    log: &LogClient,
    setup: &mut StartSetup,
    base: ClaimBase,
) -> Result<(Claimed, Vec<RestoreNote>), EngineError> {
    let (plan, allow) = (Arc::clone(&setup.plan), setup.allow_non_restored_state);
    let mut notes = Vec::new();
    let outcome = log
        .claim_checked(base, &mut setup.nonces, |restored: Option<&CompletedCheckpoint>| {
            notes = check(restored, &plan, allow)?;
            Ok::<(), CheckFailed>(())
        })
        .await;
    match outcome {
        Ok(ClaimOutcome::Claimed(claimed)) => Ok((*claimed, notes)),
        Ok(ClaimOutcome::Fenced { by }) => Err(fenced(&plan, by)),
        Ok(ClaimOutcome::Again) => unreachable!("claim_checked claims again by itself"),
        Err(CheckFailed::Log(error)) => Err(error.into()),
        Err(CheckFailed::Refused(refusal)) => Err(refusal.into()),
    }
}

async fn claim_rewind(
    log: &LogClient,
    setup: &mut StartSetup,
    checkpoint: crate::ids::CheckpointId,
) -> Result<(Claimed, Vec<RestoreNote>), EngineError> {
    loop {
        let (survey, rewind) = log.survey_rewind(checkpoint).await?;
        let notes = match check(survey.restored.as_ref(), &setup.plan, setup.allow_non_restored_state) {
            Ok(notes) => notes,
            Err(CheckFailed::Log(error)) => return Err(error.into()),
            Err(CheckFailed::Refused(refusal)) => return Err(refusal.into()),
        };
        for doubled in &rewind.doubled {
            tracing::warn!("{doubled}");
        }
        match log.claim(&survey, setup.nonces.draw()).await? {
            ClaimOutcome::Claimed(claimed) => return Ok((*claimed, notes)),
            ClaimOutcome::Fenced { by } => return Err(fenced(&setup.plan, by)),
            ClaimOutcome::Again => {}
        }
    }
}

fn check(
    restored: Option<&CompletedCheckpoint>,
    plan: &JobPlan,
    allow_non_restored_state: bool,
) -> Result<Vec<RestoreNote>, CheckFailed> {
    let Some(checkpoint) = restored else { return Ok(Vec::new()) };
    let options = RestoreOptions { allow_non_restored_state, ..RestoreOptions::default() };
    check_restore(&checkpoint.manifest, plan, &options).map_err(CheckFailed::Refused)
}

fn fenced(plan: &JobPlan, by: crate::ids::EntryNumber) -> EngineError {
    EngineError::Fenced { job: plan.job.clone(), detail: format!("entry {by} of the commit log is a later claim") }
}
