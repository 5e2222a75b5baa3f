//! What can keep a run from ending well, and the exit status of each.
//!
//! Owns: the enum, the statuses, and the form of an error on the terminal.
//! Does not own: the single failures.
//! Runs on: the main thread.

use std::error::Error;
use std::io;

use crate::connectors::state_kind;
use crate::control::ControlError;
use crate::engine::checkpoint::commit_log::LogError;
use crate::engine::error::{EngineError, JobError};
use crate::engine::graph::GraphError;
use crate::engine::taskworker::restore::RestoreError;
use crate::settings::SettingsError;
use crate::state::StorageError;
use crate::state::fault::FaultError;
use crate::without_passwords::without_passwords;

/// What can keep a run from ending well.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// Settings contradict each other.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// `TIDEGATE_FAULT` names no fault point.
    #[error(transparent)]
    Fault(#[from] FaultError),
    /// The author's function returned an error.
    #[error("job \"{job}\" cannot be built: {}", cause.full_text())]
    Build {
        /// The job.
        job: String,
        /// What the function returned.
        cause: JobError,
    },
    /// The engine, a connector or the checkpoint folder.
    #[error("{}{}", .0, kinds(.0))]
    Engine(#[from] EngineError),
    /// Another process runs the job on this folder, or the job cannot answer where it shall.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// Ctrl-C could not be listened for.
    #[error("cannot listen for signals")]
    Signals(#[source] io::Error),
}

/// Wrong usage: flags and settings.
const USAGE: u8 = 2;
/// Another attempt has taken the job over.
const FENCED: u8 = 3;
/// User code or a server did not return in time, so that the process had to be ended.
pub(crate) const STUCK: u8 = 4;
/// The job of this folder has finished before: who supervises it has nothing to start.
const FINISHED: u8 = 5;
/// Everything else.
const FAILURE: u8 = 1;

impl RunError {
    /// The exit status: 2 for wrong usage, 3 when the job was taken over by another process, 4 when user code or a connector did
    /// not return, 5 when the job had finished before, else 1.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Settings(_) | Self::Fault(_) => USAGE,
            Self::Engine(EngineError::Fenced { .. }) => FENCED,
            Self::Engine(
                EngineError::SlotStuck { .. }
                | EngineError::IoStuck { .. }
                | EngineError::CancelTimedOut { .. },
            ) => STUCK,
            Self::Engine(EngineError::AlreadyFinished { .. }) => FINISHED,
            Self::Engine(EngineError::Log(log)) if matches!(**log, LogError::AlreadyFinished { .. }) => {
                FINISHED
            }
            Self::Engine(EngineError::Settings { .. }) => USAGE,
            Self::Engine(EngineError::Storage(storage)) => match &**storage {
                StorageError::UnknownScheme { .. }
                | StorageError::MalformedUrl { .. }
                | StorageError::FeatureMissing { .. } => USAGE,
                _ => FAILURE,
            },
            Self::Engine(EngineError::Graph(
                GraphError::ParallelismOverMaximum { .. } | GraphError::MaxParallelism { .. },
            )) => USAGE,
            _ => FAILURE,
        }
    }
}

/// Whose the states are that a checkpoint has and that an operator would want, as far as they are of connectors that are known.
fn kinds(error: &EngineError) -> String {
    let EngineError::Restore(restore) = error else { return String::new() };
    let RestoreError::AnotherKind { was, is, .. } = &**restore else { return String::new() };
    let [was_of, is_of] =
        [was, is].map(|name| state_kind(name).unwrap_or("another source, sink or function"));
    format!("\n  {was} is the state of {was_of}, {is} that of {is_of}")
}

/// `error: what was tried`, then the help, then one line for each cause below it that says something new; without the passwords of addresses.
pub fn error_text(error: &dyn Error) -> String {
    let mut text = said_once(&format!("error: {error}"));
    let mut cause = error.source();
    while let Some(inner) = cause {
        let words = said_once(&inner.to_string());
        if !text.contains(&words) {
            text.push_str(&format!("\n  because: {words}"));
        }
        cause = inner.source();
    }
    without_passwords(&text).into_owned()
}

/// Clients put the same words in front of themselves: `Input/output error: Input/output error: Connection refused`.
fn said_once(text: &str) -> String {
    let once = |line: &str| {
        let mut parts: Vec<&str> = line.split(": ").collect();
        parts.dedup();
        parts.join(": ")
    };
    text.trim_end().lines().map(once).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::ids::{CheckpointId, JobName};

    #[test]
    fn each_kind_of_failure_has_its_status() {
        let fenced = EngineError::Fenced { job: JobName::from("j"), detail: "entry 5".into() };
        assert_eq!(RunError::from(fenced).exit_status(), 3);
        let finished = EngineError::AlreadyFinished { job: JobName::from("j"), checkpoint: CheckpointId(7) };
        assert_eq!(RunError::from(finished).exit_status(), 5);
        let (job, after) = (JobName::from("j"), std::time::Duration::from_secs(10));
        let (who, cause) = ("sink[0]".to_owned(), "expired".to_owned());
        let stuck = EngineError::IoStuck { job, after, who, cause, blocks_poll: true };
        assert_eq!(RunError::from(stuck).exit_status(), 4);
        let over = GraphError::ParallelismOverMaximum {
            operator: "o".into(),
            parallelism: 200,
            max_parallelism: 128,
        };
        assert_eq!(RunError::from(EngineError::from(over)).exit_status(), 2);
        assert_eq!(RunError::from(SettingsError::NoCheckpoints).exit_status(), 2);
        let build = RunError::Build { job: "j".into(), cause: JobError::msg("no") };
        assert_eq!(build.exit_status(), 1);
    }

    #[test]
    fn a_connector_that_is_stuck_is_told_after_the_cause_and_its_author_only_where_he_could_mend_it() {
        let stuck = |blocks_poll| {
            let (job, after) = (JobName::from("j"), std::time::Duration::from_millis(500));
            let (who, cause) = ("sink[0]".to_owned(), "the file is locked by python3".to_owned());
            error_text(&RunError::from(EngineError::IoStuck { job, after, who, cause, blocks_poll }))
        };
        let of_operator = stuck(false);
        assert!(
            of_operator.starts_with("error: job \"j\" failed: the file is locked by python3"),
            "{of_operator}"
        );
        assert!(of_operator.contains("0.5 s after that sink[0]") && of_operator.contains("nothing is lost"));
        assert!(!of_operator.contains("io::blocking"), "{of_operator}");
        assert!(stuck(true).contains("io::blocking"));
    }

    #[test]
    fn the_state_of_another_sink_is_told_by_what_the_sink_was() {
        let error = RestoreError::AnotherKind {
            operator: "log_sink".into(),
            checkpoint: CheckpointId(7),
            state: "list \"transactions\"".into(),
            was: "XaBranch".into(),
            is: "StagedTable".into(),
        };
        let text = error_text(&RunError::from(EngineError::from(error)));
        assert!(text.contains("a MySQL sink, mode xa") && text.contains("mode staging"), "{text}");
        assert!(text.contains("a second time") && !text.contains("bring the type back"), "{text}");
        assert_eq!(text.matches("log_sink").count(), 1, "{text}");
    }

    #[test]
    fn a_cause_that_says_the_same_is_said_once() {
        let error = RunError::from(EngineError::from(GraphError::NoSource));
        let text = error_text(&error);
        assert_eq!(text.matches("no source").count(), 1, "{text}");
        let refused = io::Error::other("Input/output error: Input/output error: refused");
        let text = error_text(&RunError::Signals(refused));
        assert!(text.ends_with("because: Input/output error: refused"), "{text}");
    }
}
