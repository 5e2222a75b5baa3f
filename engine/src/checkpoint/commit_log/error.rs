//! What can go wrong with a commit log before an attempt has begun.
//!
//! Owns: the errors. Does not own: being fenced, which is an outcome and no error (see [`super::Settled`]). Runs on: plain data.

use super::bytes::EnvelopeError;
use super::gaps::Gap;
use super::store::StoreError;
use crate::ids::{CheckpointId, EntryNumber, JobName};

/// A commit log cannot be used, or not like this.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    /// The store did not do what it was asked for.
    #[error(
        "cannot {doing} {path} in the checkpoint folder {folder}\n  help: see that the folder can be reached and written to"
    )]
    Store {
        /// The verb.
        doing: &'static str,
        /// The object.
        path: String,
        /// The folder's URL.
        folder: String,
        /// Why.
        #[source]
        source: StoreError,
    },
    /// A file of the log cannot be read.
    #[error(
        "{path} in the checkpoint folder {folder} cannot be read: {source}\n  \
         help: bring the file back from a copy, or start in another checkpoint folder; it is never skipped, since it may be the newest checkpoint"
    )]
    Unreadable {
        /// The file.
        path: String,
        /// The folder's URL.
        folder: String,
        /// What is wrong with it.
        #[source]
        source: EnvelopeError,
    },
    /// Entries went away while they were read, again and again.
    #[error(
        "the log in {folder} changed {tries} times while it was read: a job that still runs completes checkpoints faster than they \
         can be read\n  help: stop that job first, or give it a longer checkpoint interval"
    )]
    Restless {
        /// The folder's URL.
        folder: String,
        /// How often it was read.
        tries: u32,
    },
    /// Something was deleted that a start must know.
    #[error(
        "the log in {folder} is not whole: {gap}. A start from what is left may put out again what is out already\n  \
         help: bring log/{:020}, and what may have stood above it, back from a copy; {}", gap.entry().0, go_on(gap, folder, *newest)
    )]
    NotWhole {
        /// The folder's URL.
        folder: String,
        /// What is missing.
        gap: Gap,
        /// The newest checkpoint that is left.
        newest: Option<CheckpointId>,
    },
    /// The folder was taken away from under a running job.
    #[error(
        "the checkpoint folder {folder} was deleted or replaced while job \"{job}\" ran: log/id {found}. The job has stopped; what it put \
         into its sinks since its last checkpoint is not committed\n  \
         help: put the folder back where it was, or bring it back from a copy; without it the next start begins anew, and puts out \
         again what is out already"
    )]
    FolderReplaced {
        /// The folder's URL.
        folder: String,
        /// The job.
        job: JobName,
        /// What is there instead.
        found: &'static str,
    },
    /// The folder is another job's.
    #[error(
        "the checkpoint folder {folder} belongs to job \"{owner}\", not to \"{job}\"\n  \
         help: give this job a folder of its own (--checkpoints)"
    )]
    WrongJob {
        /// The folder's URL.
        folder: String,
        /// Whose it is.
        owner: JobName,
        /// Who asked.
        job: JobName,
    },
    /// There are entries but nothing that says whose.
    #[error(
        "the checkpoint folder {folder} has log entries but no log/id\n  \
         help: bring log/id back from a copy, or start in another checkpoint folder"
    )]
    NoIdentity {
        /// The folder's URL.
        folder: String,
    },
    /// There are files of checkpoints but no log.
    #[error(
        "the checkpoint folder {folder} has files of checkpoints ({path}) but no log: a start here would begin anew, and put out \
         again what is out already\n  \
         help: bring the folder log back from a copy, or start in another checkpoint folder"
    )]
    LogGone {
        /// The folder's URL.
        folder: String,
        /// One of the files.
        path: String,
    },
    /// The job has finished.
    #[error(
        "job \"{job}\" has finished: entry {entry} of its log says so, and all its output is committed\n  \
         help: --restore none runs it again from the start, in addition to what is there"
    )]
    AlreadyFinished {
        /// The job.
        job: JobName,
        /// The entry.
        entry: EntryNumber,
    },
    /// The log has no checkpoint with this id.
    #[error("there is no checkpoint {checkpoint} in {folder}\n  help: restorable are: {}", list(restorable))]
    UnknownCheckpoint {
        /// The id asked for.
        checkpoint: CheckpointId,
        /// The folder's URL.
        folder: String,
        /// What can be restored.
        restorable: Vec<CheckpointId>,
    },
    /// The checkpoint was passed over by an earlier rewind, or lies under a start without restore.
    #[error(
        "checkpoint {checkpoint} is not on the line that checkpoint {newest} stands on: an earlier rewind or start without \
         restore has passed it over, and it can never be restored again\n  help: restorable are: {}",
        list(restorable)
    )]
    NotOnTheLine {
        /// The id asked for.
        checkpoint: CheckpointId,
        /// The newest one.
        newest: CheckpointId,
        /// What can be restored.
        restorable: Vec<CheckpointId>,
    },
    /// The newest entry does not name the checkpoint as retained: its files may be gone at any moment.
    #[error(
        "checkpoint {checkpoint} is no longer retained: checkpoint {newest} does not name it\n  help: restorable are: {}",
        list(restorable)
    )]
    NotRetained {
        /// The id asked for.
        checkpoint: CheckpointId,
        /// The newest one.
        newest: CheckpointId,
        /// What can be restored.
        restorable: Vec<CheckpointId>,
    },
    /// A claim hands on a base that is not there.
    #[error(
        "the claim at entry {claim} restores entry {base}, which is not in the log of {folder}\n  \
         help: bring log/{:020} back from a copy, or begin anew with --restore none", base.0
    )]
    BaseMissing {
        /// The claim.
        claim: EntryNumber,
        /// Its base.
        base: EntryNumber,
        /// The folder's URL.
        folder: String,
    },
}

impl LogError {
    /// Whether the store is away, or changes while it is read: asking again may help.
    pub fn is_away(&self) -> bool {
        matches!(self, Self::Store { .. } | Self::Restless { .. })
    }
}

/// What a person may do who has no copy.
fn go_on(gap: &Gap, folder: &str, newest: Option<CheckpointId>) -> String {
    match (gap, newest) {
        (Gap::Claim { .. }, _) => "without a copy start in another checkpoint folder".to_owned(),
        (_, Some(id)) => format!(
            "without a copy --restore '{folder}#{id}' --rewind goes on from checkpoint {id}, and what was put out after it will be there twice"
        ),
        (_, None) => "without a copy --restore none begins anew, in addition to what is there".to_owned(),
    }
}

fn list(ids: &[CheckpointId]) -> String {
    if ids.is_empty() {
        return "none".to_owned();
    }
    ids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
