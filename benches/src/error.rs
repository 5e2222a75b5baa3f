//! What can go wrong in a benchmark.
//!
//! Owns: the enum. Does not own: how it is shown (`main`). Runs on: plain data.

use std::path::PathBuf;

use tidegate_engine::error::{EngineError, JobError};
use tidegate_engine::taskworker::mail::TaskFailure;

/// Why a benchmark has no figures.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BenchError {
    /// A job of ours did not end well.
    #[error("the job of \"{candidate}\" failed; run it alone with --only \"{candidate}\"")]
    Job {
        /// Which candidate.
        candidate: &'static str,
        /// Why.
        #[source]
        source: Box<EngineError>,
    },
    /// An operator of a chain failed.
    #[error("the chain of \"{candidate}\" failed")]
    Chain {
        /// Which candidate.
        candidate: &'static str,
        /// Why.
        #[source]
        source: Box<TaskFailure>,
    },
    /// An operator on its own failed.
    #[error("the operator of \"{candidate}\" failed: {message}")]
    Operator {
        /// Which candidate.
        candidate: &'static str,
        /// What it said.
        message: String,
    },
    /// A candidate computed something else than the others: its speed says nothing.
    #[error("\"{candidate}\" came to {got}, and {expected} is right; its figures would say nothing")]
    WrongResult {
        /// Which candidate.
        candidate: String,
        /// What it found.
        got: u64,
        /// What it should have found.
        expected: u64,
    },
    /// No candidate's name contains what was asked for.
    #[error("no candidate's name contains \"{only}\"; without --only all of them are run")]
    NoCandidate {
        /// What was asked for.
        only: String,
    },
    /// A job never came to where it would have been ended.
    #[error(
        "the job of \"{candidate}\" was ended after {seconds} s without what it was run for; try it with less"
    )]
    TooLong {
        /// Which candidate.
        candidate: &'static str,
        /// How long it was let run.
        seconds: u64,
    },
    /// A job ended before anything was measured.
    #[error("the job of \"{candidate}\" ended before anything was measured")]
    Unmeasured {
        /// Which candidate.
        candidate: &'static str,
    },
    /// There is no place for checkpoints.
    #[error("a folder for checkpoints could not be made; TMPDIR names the place")]
    Folder {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// A run in a process of its own failed.
    #[error("a run in a process of its own failed: {said}")]
    Child {
        /// What it said, or why it could not be started.
        said: String,
    },
    /// A server could not be started.
    #[cfg(feature = "servers")]
    #[error("a server could not be started; name a running one by --kafka or --mysql")]
    Service {
        /// Why.
        #[source]
        source: tidegate_jobs::services::ServiceError,
    },
    /// A server did not do what was asked.
    #[cfg(feature = "servers")]
    #[error("{tried} failed: {said}")]
    Server {
        /// What was tried.
        tried: &'static str,
        /// What it said.
        said: String,
    },
    /// A peer could not be run.
    #[cfg(feature = "peers")]
    #[error("{peer} could not be run: {message}")]
    Peer {
        /// Which.
        peer: &'static str,
        /// What it said.
        message: String,
    },
    /// The page could not be written.
    #[error("the report {path} could not be written; name a file in a folder that exists")]
    Report {
        /// Where.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl BenchError {
    /// For `map_err` on what an operator says.
    pub(crate) fn operator<E: Into<JobError>>(candidate: &'static str) -> impl Fn(E) -> Self {
        move |error| Self::Operator { candidate, message: error.into().full_text() }
    }

    /// For `map_err` on what the engine says.
    pub(crate) fn job(candidate: &'static str) -> impl Fn(EngineError) -> Self {
        move |source| Self::Job { candidate, source: Box::new(source) }
    }
}
