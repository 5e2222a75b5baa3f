//! Why a transaction was not given up.
//!
//! Owns: the errors. Does not own: the decision ([`super::forget`]). Runs on: plain data.

use tidegate_state::StateError;

use super::error::LogError;
use crate::ids::{CheckpointId, EntryNumber, JobName, OperatorUid};
use crate::operator::ListedTransaction;

/// Nothing was decided.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForgetError {
    /// The log cannot be used.
    #[error(transparent)]
    Log(Box<LogError>),
    /// Nothing is left to be decided.
    #[error(
        "job \"{job}\" has finished: entry {entry} of its log says so, and all its output is committed\n  \
         help: it waits for no transaction, and there is nothing to forget; `tidegate checkpoint list` shows the log"
    )]
    Finished {
        /// The job.
        job: JobName,
        /// The entry.
        entry: EntryNumber,
    },
    /// Nothing of a job lies there.
    #[error(
        "{folder} is no checkpoint folder: it has no log\n  help: name the folder that the job was given as --checkpoints"
    )]
    NoLog {
        /// What was given.
        folder: String,
    },
    /// A start there restores nothing.
    #[error(
        "a start on {folder} restores no checkpoint, and so waits for no transaction\n  help: see `tidegate checkpoint list`"
    )]
    NothingRestored {
        /// The folder's URL.
        folder: String,
    },
    /// The newest checkpoint lists no such transaction.
    #[error(
        "checkpoint {checkpoint} in {folder} lists no transaction \"{wanted}\"\n  help: {}",
        known(listed)
    )]
    NotListed {
        /// As given.
        wanted: String,
        /// The checkpoint that a start restores.
        checkpoint: CheckpointId,
        /// The folder's URL.
        folder: String,
        /// What it lists.
        listed: Vec<ListedTransaction>,
    },
    /// The list of a sink cannot be read.
    #[error(
        "the list of \"{operator}\" in checkpoint {checkpoint} cannot be read\n  help: bring the folder back from a copy"
    )]
    State {
        /// The sink.
        operator: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Why not.
        #[source]
        source: Box<StateError>,
    },
    /// A file of the checkpoint is not there.
    #[error(
        "{path} in {folder} is gone, and the newest checkpoint refers to it\n  help: a job that still runs may have cleaned it: stop that job first"
    )]
    FileGone {
        /// The file.
        path: String,
        /// The folder's URL.
        folder: String,
    },
    /// A start came between.
    #[error(
        "job \"{job}\" was started on {folder} meanwhile (entry {by} of its log)\n  help: stop it first (tidegate cancel), then decide again"
    )]
    Overtaken {
        /// Its entry.
        by: EntryNumber,
        /// The folder's URL.
        folder: String,
        /// The job.
        job: JobName,
    },
}

impl From<LogError> for ForgetError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::AlreadyFinished { job, entry } => Self::Finished { job, entry },
            error => Self::Log(Box::new(error)),
        }
    }
}

fn known(listed: &[ListedTransaction]) -> String {
    if listed.is_empty() {
        return "it lists none: nothing keeps the job from going on".to_owned();
    }
    let names: Vec<_> = listed.iter().map(|it| format!("\n    {}", it.name)).collect();
    format!("it lists:{}", names.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_job_that_has_finished_nothing_can_be_forgotten_and_no_start_is_advised() {
        let finished = LogError::AlreadyFinished { job: "orders".into(), entry: EntryNumber(9) };
        let text = ForgetError::from(finished).to_string();
        assert!(text.contains("has finished") && text.contains("nothing to forget"), "{text}");
        assert!(!text.contains("--restore"), "{text}");
    }
}
