//! How an attempt starts: open the log, look, refuse, claim, read the checkpoint's files.
//!
//! Owns: the order of these. Does not own: the claim protocol ([`crate::checkpoint::commit_log`]). Runs on: the I/O side.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use futures::future::join_all;
use tidegate_state::CheckpointStorage;

use super::config::RestoreFrom;
use super::output_look::{self, LookSetup, OutputLook};
use crate::api::Preflight;
use crate::checkpoint::commit_log::{
    ClaimBase, ClaimOutcome, Claimed, Listing, LogClient, Nonce, NonceSource, Survey,
};
use crate::checkpoint::completed::CompletedCheckpoint;
use crate::checkpoint::restore_check::{RestoreNote, RestoreOptions, check_restore};
use crate::error::EngineError;
use crate::ids::{AttemptId, EntryNumber, LogId, OperatorUid};
use crate::io::SharedIo;
use crate::jobmanager::plan::JobPlan;
use crate::taskworker::restore::{RestoreError, Restored, StateCheck, load};

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
    /// Whether stored states can be read as the job's operators declare them.
    pub checks: Vec<(OperatorUid, StateCheck)>,
    /// Whether this is the first start of this process: the store is tried out.
    pub preflight: bool,
    /// The last attempt of this process, for a restart.
    pub previous: Option<AttemptId>,
    /// The log that it claimed: a restart finds it again, or is none.
    pub log_id: Option<LogId>,
    /// Claims of this process.
    pub own: OwnClaims,
    /// Whether this process began with an explicit base: what lies behind it, somebody has decided to have once more.
    pub is_decided: bool,
}

/// The nonces of the claims that one process has put: a restart knows its own claims by them, also one whose start failed later.
#[derive(Clone, Debug, Default)]
pub struct OwnClaims(Arc<Mutex<BTreeSet<Nonce>>>);

impl OwnClaims {
    fn add(&self, nonce: Nonce) -> Nonce {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(nonce);
        nonce
    }

    /// A claim of another process above `previous`.
    fn taken_over(&self, previous: AttemptId, listing: &Listing) -> Option<EntryNumber> {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut above = listing.claims_above(previous);
        above.find(|(_, claim)| !own.contains(&claim.nonce)).map(|(number, _)| number)
    }
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

/// Starts an attempt: lets connectors look at their servers (at the first start of a process), surveys, reads and checks what would be restored, asks the sinks whether their output has more, claims, and looks whether that is still the same.
///
/// Everything that can be refused is refused before the claim is written, a state of another type or a damaged file too.
///
/// # Errors
/// The folder refuses, the checkpoint does not fit, or another start was faster.
pub async fn start(
    mut setup: StartSetup,
    preflights: Vec<Preflight>,
    outputs: (LookSetup, Vec<OutputLook>),
) -> Result<Started, EngineError> {
    if setup.preflight {
        setup.storage.preflight().await?;
    }
    // Side by side: each waits for its own server.
    let (operators, looks): (Vec<_>, Vec<_>) = preflights.into_iter().map(|p| (p.operator, p.look)).unzip();
    for (operator, looked) in operators.into_iter().zip(join_all(looks).await) {
        let warnings = looked.map_err(|error| EngineError::of_connector(&operator, &error))?;
        for warning in warnings {
            tracing::warn!("{operator}: {warning}");
        }
    }
    let job = setup.plan.job.clone();
    let (storage, io) = (setup.storage.clone(), setup.io.clone());
    let log = match setup.log_id.clone() {
        Some(log_id) => LogClient::reopen(storage, io, job, log_id).await?,
        None => LogClient::open(storage, io, job, &mut setup.nonces).await?,
    };
    loop {
        // Before the log: no attempt writes a file before its claim stands.
        let files = log.files().await?;
        let survey = survey(&log, setup.restore).await?;
        log.check_files(&survey, &files)?;
        // Whoever was taken over while an attempt failed does not take the job back with a restart.
        if let Some(by) = setup.previous.and_then(|p| setup.own.taken_over(p, &survey.listing)) {
            return Err(fenced(&setup.plan, by));
        }
        let notes = check(survey.restored.as_ref(), &setup)?;
        output_look::look(&outputs.1, &outputs.0, &log, &survey).await?;
        let Some(restored) = read(&setup, &survey, &log).await? else { continue };
        match log.claim(&survey, setup.own.add(setup.nonces.draw())).await? {
            ClaimOutcome::Again => {}
            ClaimOutcome::Fenced { by } => return Err(fenced(&setup.plan, by)),
            ClaimOutcome::Claimed(claimed) => {
                return claim_stands(&setup, survey, *claimed, restored, log, notes).await;
            }
        }
    }
}

/// A checkpoint that was put between survey and claim is read anew.
async fn claim_stands(
    setup: &StartSetup,
    survey: Survey,
    claimed: Claimed,
    read_before: Restored,
    log: LogClient,
    notes: Vec<RestoreNote>,
) -> Result<Started, EngineError> {
    let entry = |c: &Option<CompletedCheckpoint>| c.as_ref().map(|c| c.number);
    let restored = match &claimed.restored {
        Some(checkpoint) if entry(&claimed.restored) != entry(&survey.restored) => {
            let restored = match load(&setup.storage, &checkpoint.manifest).await {
                Err(missing @ RestoreError::Missing { .. }) => {
                    // The cleaner of a later attempt may have taken away what this one has claimed to restore.
                    return Err(match log.taken_over(claimed.attempt).await? {
                        Some(by) => fenced(&setup.plan, by),
                        None => missing.into(),
                    });
                }
                loaded => loaded?,
            };
            check_state(&restored, setup)?;
            restored
        }
        _ => read_before,
    };
    let restored = restored.with_log(&claimed);
    let restored = if setup.is_decided { restored.whatever_is_behind() } else { restored };
    Ok(Started { claimed, restored, log, notes })
}

async fn survey(log: &LogClient, restore: RestoreFrom) -> Result<Survey, EngineError> {
    match restore {
        RestoreFrom::Latest => Ok(log.survey(ClaimBase::Latest).await?),
        RestoreFrom::None => Ok(log.survey(ClaimBase::None).await?),
        RestoreFrom::Rewind(checkpoint) => {
            let (survey, rewind) = log.survey_rewind(checkpoint).await?;
            for doubled in &rewind.doubled {
                tracing::warn!("{doubled}");
            }
            Ok(survey)
        }
    }
}

fn check(
    restored: Option<&CompletedCheckpoint>,
    setup: &StartSetup,
) -> Result<Vec<RestoreNote>, EngineError> {
    let Some(checkpoint) = restored else { return Ok(Vec::new()) };
    let allow_non_restored_state = setup.allow_non_restored_state;
    let options = RestoreOptions { allow_non_restored_state, ..RestoreOptions::default() };
    Ok(check_restore(&checkpoint.manifest, &setup.plan, &options)?)
}

/// Whether what was read can be restored as the operators declare it.
fn check_state(restored: &Restored, setup: &StartSetup) -> Result<(), EngineError> {
    restored.check_keyed(&setup.checks)?;
    if !setup.allow_non_restored_state {
        restored.check_declared(&setup.plan)?;
    }
    Ok(())
}

/// Reads and checks the state. `None`: a file is gone, and the log has changed meanwhile: an attempt that still runs, or ran while
/// this one stood still, has cleaned the checkpoint. (That its entry stands proves nothing: a late put may have brought it back.)
async fn read(setup: &StartSetup, survey: &Survey, log: &LogClient) -> Result<Option<Restored>, EngineError> {
    let Some(checkpoint) = &survey.restored else { return Ok(Some(Restored::default())) };
    match load(&setup.storage, &checkpoint.manifest).await {
        Ok(restored) => {
            check_state(&restored, setup)?;
            Ok(Some(restored))
        }
        Err(missing @ RestoreError::Missing { .. }) => {
            let now = log.listing(None).await?;
            let unchanged = now.highest() == survey.listing.highest() && now.get(checkpoint.number).is_some();
            if unchanged { Err(missing.into()) } else { Ok(None) }
        }
        Err(other) => Err(other.into()),
    }
}

fn fenced(plan: &JobPlan, by: EntryNumber) -> EngineError {
    EngineError::Fenced {
        job: plan.job.clone(),
        detail: format!("entry {by} of the commit log is a later claim"),
    }
}
