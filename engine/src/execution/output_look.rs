//! Whether the output has more already than the checkpoint that a start goes on from: asked of every sink before the job is claimed.
//!
//! Somebody has committed by hand what no checkpoint lists, or the folder is an old copy of the one that the job runs on. Such a start must
//! touch nothing: recovery rolls back what its log does not list, and the right folder's log may list it. So all sinks are asked before
//! any of them recovers, and before the claim, which would make this start's attempt higher than the right one's. Each subtask 0 asks
//! once more when it recovers (see [`crate::operator::sink_io`]): after a restart that is the only look.
//!
//! A start with an explicit base (a rewind, or anew) is not asked: its operator has decided to have records once more.
//!
//! Owns: what the answers mean for a start. Does not own: the question to a server (the sink's), the words of the refusal.
//! Runs on: the I/O side.

use futures::future::join_all;

use crate::api::{AskCommitted, ConnectorContext, ConnectorError, TwoPhaseContext};
use crate::checkpoint::commit_log::{LogClient, Survey};
use crate::error::EngineError;
use crate::ids::{AttemptId, CheckpointId, JobName, Lineage, OperatorUid};
use crate::operator::{TransactionName, TransactionScope, start_behind};
use crate::quoted::folder_of;

/// A sink that is asked.
pub struct OutputLook {
    /// Its name for people.
    pub operator: String,
    /// Its uid.
    pub uid: OperatorUid,
    /// Subtasks.
    pub parallelism: u32,
    /// The question.
    pub ask: AskCommitted,
}

/// What all questions of a start have in common.
#[derive(Clone)]
pub struct LookSetup {
    /// The job.
    pub job: JobName,
    /// What connectors are given; no attempt has claimed anything yet.
    pub connector: ConnectorContext,
    /// Transactions that a subtask may hold.
    pub places: usize,
}

/// Asks all sinks.
///
/// # Errors
/// One of them has more than the checkpoint that was surveyed, or cannot say.
pub(super) async fn look(
    looks: &[OutputLook],
    setup: &LookSetup,
    log: &LogClient,
    survey: &Survey,
) -> Result<(), EngineError> {
    let restored = survey.restored.as_ref();
    let from = restored.map_or(CheckpointId(0), |checkpoint| checkpoint.manifest.checkpoint);
    let restored_attempt = restored.map_or(AttemptId(0), |checkpoint| checkpoint.manifest.attempt);
    let asked = looks.iter().map(|sink| {
        let scope = TransactionScope {
            job: setup.job.clone(),
            log_id: log.log_id().clone(),
            // The one that is claimed is not known yet, and all are asked for.
            lineage: Lineage(0),
            uid: sink.uid.clone(),
        };
        let context = TwoPhaseContext {
            connector: setup.connector.clone(),
            subtask: 0,
            parallelism: sink.parallelism,
            places: setup.places,
            restored_attempt,
            name: TransactionName { scope, subtask: 0, opened_after: from, attempt: AttemptId(0) },
        };
        (sink.ask)(context, survey.listing.rewound_at())
    });
    let answers = join_all(asked).await;
    for (sink, answer) in looks.iter().zip(answers) {
        let refused = |error: &ConnectorError| EngineError::of_connector(&sink.operator, error);
        let committed = match answer {
            Ok(committed) => committed,
            // A server that is away for a moment: subtask 0 asks again, and waits as the restart strategy has it.
            Err(error) if error.restartable => {
                tracing::debug!(operator = sink.operator, %error, "what is committed cannot be said now");
                continue;
            }
            Err(error) => return Err(refused(&error)),
        };
        let Some(committed) = committed.filter(|committed| *committed > from) else { continue };
        // A checkpoint's entry comes before its commits: a job at work has put it since, and the claim restores it.
        let now = log.listing(None).await?;
        let newest = now.checkpoints().map(|checkpoint| checkpoint.manifest.checkpoint).max();
        if now.highest() != survey.listing.highest() && newest >= Some(committed) {
            continue;
        }
        let said = start_behind::refusal(committed, from, Some(&folder_of(log.url())));
        return Err(refused(&ConnectorError::fatal(said)));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tidegate_state::CheckpointStorage;

    use super::*;
    use crate::api::ClaimWatch;
    use crate::checkpoint::commit_log::{ClaimBase, ClaimOutcome, EntryBody, LogEntry, NonceSource, Settled};
    use crate::checkpoint::manifest::Manifest;
    use crate::clock::ManualClock;
    use crate::element::CheckpointKind;
    use crate::ids::EntryNumber;
    use crate::io::{NoWake, TokioIo};

    type Answer = Result<Option<CheckpointId>, ConnectorError>;

    fn sink(name: &str, answer: fn() -> Answer) -> OutputLook {
        let ask: AskCommitted = Box::new(move |_, _| Box::pin(std::future::ready(answer())));
        OutputLook { operator: name.to_owned(), uid: name.into(), parallelism: 1, ask }
    }

    #[test]
    fn one_sink_that_is_ahead_refuses_the_start_unless_the_log_has_gone_on() {
        let folder = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let io = TokioIo::shared(runtime.handle().clone());
        runtime.block_on(async {
            let storage = CheckpointStorage::open(folder.path().to_str().unwrap()).unwrap();
            let mut nonces = NonceSource::new(7);
            let log = LogClient::open(storage, Arc::clone(&io), "orders".into(), &mut nonces).await.unwrap();
            let connector = ConnectorContext {
                clock: ManualClock::shared(),
                io,
                waker: Arc::new(NoWake),
                checkpoint_timeout: Duration::from_secs(60),
                claim: ClaimWatch::unclaimed(),
            };
            let setup = LookSetup { job: "orders".into(), connector, places: 3 };
            let survey = log.survey(ClaimBase::Latest).await.unwrap();
            let away = || sink("away", || Err(ConnectorError::transient("the server is away")));
            let fits = [sink("a", || Ok(None)), sink("b", || Ok(Some(CheckpointId(0)))), away()];
            look(&fits, &setup, &log, &survey).await.unwrap();
            let ahead = [away(), sink("a", || Ok(None)), sink("b", || Ok(Some(CheckpointId(5))))];
            let said = look(&ahead, &setup, &log, &survey).await.unwrap_err().to_string();
            assert!(
                said.contains("\"b\"") && said.contains("what checkpoint 5 of this job closed"),
                "{said}"
            );
            let never = [sink("a", || Err(ConnectorError::fatal("no right to ask")))];
            assert!(look(&never, &setup, &log, &survey).await.is_err());
            let ClaimOutcome::Claimed(by) = log.claim(&survey, nonces.draw()).await.unwrap() else {
                panic!()
            };
            assert!(look(&ahead, &setup, &log, &survey).await.is_err(), "another claim is no checkpoint");
            for (number, checkpoint, fits) in [(2, 4, false), (3, 5, true)] {
                let number = EntryNumber(number);
                let (log_id, lineage) = (by.log_id.clone(), by.lineage);
                let manifest = Manifest {
                    job: "orders".into(),
                    log_id,
                    lineage,
                    checkpoint: CheckpointId(checkpoint),
                    attempt: by.attempt,
                    kind: CheckpointKind::Checkpoint,
                    completed_at_ms: 0,
                    operators: Vec::new(),
                };
                let body = EntryBody::Checkpoint { manifest, retained: Vec::new(), committed: Vec::new() };
                let entry = LogEntry { attempt: by.attempt, nonce: by.nonce.of_entry(number), body };
                assert!(matches!(log.append(number, entry).await, Settled::Ours));
                assert_eq!(
                    look(&ahead, &setup, &log, &survey).await.is_ok(),
                    fits,
                    "checkpoint {checkpoint}"
                );
            }
        });
    }
}
