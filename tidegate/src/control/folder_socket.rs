//! The control socket of a checkpoint folder: where the job on it answers, and who that is.
//!
//! Owns: `control.sock` in the folder, or, where its path is too long for a socket, one under the temporary folder named by the
//! hash of the path. Does not own: answering ([`super::server`]). Runs on: the calling thread.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::client::{ClientError, ask_within};
use super::protocol::{Answer, Ask};
use super::{ControlAddress, JobReport, JobState};
use crate::quoted::quoted;

/// Name of the socket in the folder.
const NAME: &str = "control.sock";
/// Longer paths do not fit into a socket's address (108 bytes with its end on Linux, 104 elsewhere).
const PATH_BYTES_MAX: usize = 100;
/// Who does not answer within this is taken to be alive and not talkative.
const PATIENCE: Duration = Duration::from_secs(1);

/// Why a job is not controlled as wanted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ControlError {
    /// Another process runs a job on the folder.
    #[error(
        "{who} is running on the checkpoint folder {}\n  help: stop it first ({}); or start with \
         --take-over, and it ends at its next checkpoint without publishing anything more",
        folder.display(), match stopped {
            Some(pid) => format!("kill -CONT {pid}, then tidegate cancel {}; or kill -9 {pid}", quoted(&folder.to_string_lossy())),
            None => format!("tidegate cancel {}", quoted(&folder.to_string_lossy())),
        }
    )]
    Alive {
        /// The folder.
        folder: PathBuf,
        /// Job and process.
        who: String,
        /// Its process, if a signal has stopped it.
        stopped: Option<u32>,
    },
    /// A check holds the folder.
    #[error("{who} is checking the checkpoint folder {}\n  help: it does not take long: start again when it is done", folder.display())]
    BeingChecked {
        /// The folder.
        folder: PathBuf,
        /// The process.
        who: String,
    },
    /// The door that was asked for cannot be opened.
    #[error(
        "the job cannot answer at {address}\n  help: give --control another address; port 0 takes a free one"
    )]
    Door {
        /// Where.
        address: ControlAddress,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

/// Whoever answers.
#[derive(Debug)]
pub(crate) enum Who {
    /// A job, or a check.
    Known(Box<JobReport>),
    /// A process of the list of jobs that a signal has stopped.
    Stopped(u32),
    /// Something that listens and does not say its name.
    Silent,
}

impl Who {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Known(report) if report.state == JobState::Checking => format!("process {}", report.pid),
            Self::Known(report) => format!("job \"{}\", process {},", report.job, report.pid),
            Self::Stopped(pid) => format!("process {pid}, which is stopped by a signal,"),
            Self::Silent => "a process that does not say its name".to_owned(),
        }
    }
}

/// Where the job on a folder answers.
pub(crate) fn address_of(folder: &Path) -> ControlAddress {
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let path = folder.join(NAME);
    if path.as_os_str().len() <= PATH_BYTES_MAX {
        return ControlAddress::Unix(path);
    }
    let hash = xxhash_rust::xxh3::xxh3_64(folder.as_os_str().as_bytes());
    ControlAddress::Unix(std::env::temp_dir().join(format!("tidegate-{hash:016x}.sock")))
}

/// Who answers on a folder, if anybody does.
pub(crate) fn who_runs_on(folder: &Path) -> Option<Who> {
    match ask_within(&address_of(folder), Ask::Status, PATIENCE) {
        Ok(Answer::Status { job }) => Some(Who::Known(Box::new(job))),
        Err(ClientError::Stopped { pid, .. }) => Some(Who::Stopped(pid)),
        Ok(_) | Err(ClientError::Gibberish { .. }) => Some(Who::Silent),
        Err(ClientError::NoAnswer { source, .. })
            if matches!(source.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) =>
        {
            Some(Who::Silent)
        }
        // Nobody listens; or it was closed between the question and the answer.
        Err(ClientError::Nobody { .. } | ClientError::NoAnswer { .. }) => None,
    }
}

/// Refuses a start on a folder whose job answers.
///
/// # Errors
/// [`ControlError::Alive`], or [`ControlError::BeingChecked`].
pub(crate) fn refuse_if_alive(folder: &Path) -> Result<(), ControlError> {
    let Some(who) = who_runs_on(folder) else { return Ok(()) };
    let (words, folder) = (who.words(), folder.to_owned());
    Err(match who {
        Who::Known(report) if report.state == JobState::Checking => {
            ControlError::BeingChecked { folder, who: words }
        }
        Who::Stopped(pid) => ControlError::Alive { folder, who: words, stopped: Some(pid) },
        _ => ControlError::Alive { folder, who: words, stopped: None },
    })
}

#[cfg(test)]
mod tests;
