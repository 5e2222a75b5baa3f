//! What can keep a subcommand from doing what it shall.
//!
//! Owns: the enum and its exit statuses. Does not own: the single failures. Runs on: plain data.

use std::io;

use crate::control::client::ClientError;
use crate::engine::checkpoint::commit_log::ForgetError;
use crate::engine::checkpoint::fsck::FsckError;
use crate::quoted::quoted;
use crate::state::StorageError;

/// A subcommand did not do what it shall.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum CliError {
    /// Nobody, or nobody sensible, answers.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// The job says no.
    #[error("{reason}")]
    Refused {
        /// Its words.
        reason: String,
    },
    /// No job was named, and it is not clear which is meant.
    #[error(
        "{}\n  help: name the job by its checkpoint folder, the address of its --control, or its name",
        if running.is_empty() { "no job runs on this machine".to_owned() } else { format!("several jobs run on this machine: {}", running.join(", ")) }
    )]
    WhichJob {
        /// Those that run.
        running: Vec<String>,
    },
    /// Several jobs have this name.
    #[error(
        "several jobs named {name:?} run on this machine (processes {})\n  help: name the one you mean by its checkpoint folder",
        pids.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    SeveralOfThisName {
        /// As given.
        name: String,
        /// Their processes.
        pids: Vec<u32>,
    },
    /// Neither a folder, nor an address, nor a job.
    #[error(
        "no job {name:?} runs on this machine, and it is neither a folder nor an address\n  \
         help: `tidegate list` shows the jobs; a folder, unix:PATH and 127.0.0.1:PORT work too"
    )]
    NoSuchJob {
        /// As given.
        name: String,
    },
    /// The list of jobs cannot be read.
    #[error(
        "the list of running jobs cannot be read\n  help: name the job by its checkpoint folder; or set TIDEGATE_RUNTIME_DIR"
    )]
    Registry(#[source] io::Error),
    /// The history does not have this checkpoint.
    #[error("checkpoint {id} is not among the last ones of the job{}", if known.is_empty() { String::new() } else { format!(" ({} to {})", known[0], known[known.len() - 1]) })]
    NoSuchCheckpoint {
        /// As given.
        id: u64,
        /// Those that are, lowest first.
        known: Vec<u64>,
    },
    /// A folder that is not there.
    #[error("there is no folder {url}\n  help: name the folder that the job was given as --checkpoints")]
    FolderMissing {
        /// As given.
        url: String,
    },
    /// The store cannot be opened.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A folder could not be looked at.
    #[error(transparent)]
    Fsck(#[from] FsckError),
    /// A job runs on the folder, or it cannot be made sure that none does.
    #[error(
        "{who} runs on {url}, and what it has under way must not be deleted\n  help: cancel it first (tidegate cancel {}), or leave --delete away",
        quoted(url)
    )]
    FolderInUse {
        /// The folder.
        url: String,
        /// Who.
        who: String,
    },
    /// A job runs on the folder: nothing has to be decided about it, or not yet.
    #[error(
        "{who} runs on {url}: it has lost nothing so far\n  help: a job that finds a transaction lost ends with that; until then cancel it first \
         (tidegate cancel {})",
        quoted(url)
    )]
    JobRuns {
        /// The folder.
        url: String,
        /// Who.
        who: String,
    },
    /// A transaction was not given up.
    #[error(transparent)]
    Forget(#[from] ForgetError),
    /// The folder's socket cannot be held.
    #[error(
        "the folder {url} cannot be kept from jobs while it is being cleaned\n  help: see that this user may write to it"
    )]
    Hold {
        /// The folder.
        url: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A connector's server does not do what it shall.
    #[cfg(feature = "rdkafka")]
    #[error("{}", .0.full_text())]
    Connector(crate::engine::api::ConnectorError),
    /// Not a transactional id of a Tidegate job, or one that the brokers do not know.
    #[cfg(feature = "rdkafka")]
    #[error(
        "the brokers know no transactional id {id} of a Tidegate job\n  help: `tidegate txn list --all` shows those they know"
    )]
    NoSuchTransaction {
        /// As given.
        id: String,
    },
    /// It was being written when its job stopped, or is being written now.
    #[cfg(feature = "rdkafka")]
    #[error(
        "{id} is not prepared: its writer has not closed it, no checkpoint lists it, and its job writes the records again, so that they would be \
         there twice\n  help: leave it, the job's next start aborts it; or `tidegate txn abort`; --force commits it all the same"
    )]
    NotPrepared {
        /// As given.
        id: String,
    },
    /// A database does not do what it shall.
    #[cfg(feature = "mysql")]
    #[error(transparent)]
    Mysql(Box<crate::connectors::mysql::MysqlError>),
    /// No such branch or staging table.
    #[cfg(feature = "mysql")]
    #[error("no transaction {xid} is left on this server\n  help: `tidegate xa list` shows those that are")]
    NoSuchBranch {
        /// As given.
        xid: String,
    },
    /// A name that no left-over transaction has.
    #[cfg(feature = "mysql")]
    #[error(
        "nothing is left of a job {job:?}\n  help: `tidegate xa list` shows what is left, and whose it is"
    )]
    NothingOfJob {
        /// As given.
        job: String,
    },
    /// A branch that is not this database's.
    #[cfg(feature = "mysql")]
    #[error(
        "{xid} writes into another database of this server: its row is not in tidegate_ledger here\n  \
         help: name that database in the address, so that its ledger has the decision; --yes settles it without"
    )]
    OtherDatabase {
        /// As given.
        xid: String,
    },
    /// No runtime.
    #[error("the I/O runtime cannot be made")]
    Runtime(#[source] io::Error),
}

impl CliError {
    /// 2 where the command line names something that is not there, else 1.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::WhichJob { .. }
            | Self::SeveralOfThisName { .. }
            | Self::NoSuchJob { .. }
            | Self::NoSuchCheckpoint { .. }
            | Self::FolderMissing { .. }
            | Self::Fsck(FsckError::NoFolder { .. })
            | Self::Forget(ForgetError::NoLog { .. } | ForgetError::NotListed { .. })
            | Self::Storage(
                StorageError::UnknownScheme { .. }
                | StorageError::MalformedUrl { .. }
                | StorageError::FeatureMissing { .. },
            ) => 2,
            #[cfg(feature = "rdkafka")]
            Self::NoSuchTransaction { .. } => 2,
            #[cfg(feature = "mysql")]
            Self::NoSuchBranch { .. } | Self::NothingOfJob { .. } | Self::OtherDatabase { .. } => 2,
            _ => 1,
        }
    }
}

#[cfg(feature = "mysql")]
impl From<crate::connectors::mysql::MysqlError> for CliError {
    fn from(error: crate::connectors::mysql::MysqlError) -> Self {
        Self::Mysql(Box::new(error))
    }
}
