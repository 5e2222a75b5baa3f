//! What can keep a scenario from its end.
//!
//! Owns: the enum. Does not own: the failures of the steps it is made of.
//! Runs on: the main thread.

use std::io;

use crate::address::AddressError;
use crate::attempt::AttemptError;
use crate::database::DatabaseError;
use crate::ground::GroundError;
use crate::topic::TopicError;
use crate::verify::VerifyError;
use crate::work_folder::WorkFolderError;
use tidegate_jobs::output_folder::OutputError;
use tidegate_jobs::services::ServiceError;

/// See the module. A check that does not hold is no error but exit status 1.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ScenarioError {
    /// The folder.
    #[error(transparent)]
    Folder(#[from] WorkFolderError),
    /// A server that was to be started.
    #[error("cannot start the servers\n  help: give running ones with --kafka HOST:PORT and --mysql URL")]
    Service(#[from] ServiceError),
    /// What a started server tells about itself.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The path of this program is unknown, so that it cannot start itself.
    #[error("cannot find the path of this program\n  help: start it by its path")]
    Program(#[source] io::Error),
    /// A run of the job.
    #[error("{scenario}: {what}")]
    Run {
        /// Which scenario.
        scenario: &'static str,
        /// What was tried.
        what: String,
        /// What happened instead.
        #[source]
        source: AttemptError,
    },
    /// Another command of this program that is a part of the scenario.
    #[error("orders {command} did not say what came out ({status}){said}")]
    Command {
        /// The command.
        command: String,
        /// How it ended.
        status: String,
        /// Its last words.
        said: String,
    },
    /// Nothing happens any more.
    #[error("{scenario}: {what} did not come in {waited_s} s")]
    Waited {
        /// Which scenario.
        scenario: &'static str,
        /// What was waited for.
        what: String,
        /// How long.
        waited_s: u64,
    },
    /// Topic and tables.
    #[error(transparent)]
    Ground(#[from] GroundError),
    /// The topic.
    #[error(transparent)]
    Topic(#[from] TopicError),
    /// The database.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// A branch that cannot be settled by hand.
    #[error(transparent)]
    Settle(#[from] tidegate::connectors::mysql::MysqlError),
    /// The audit.
    #[error(transparent)]
    Verify(#[from] VerifyError),
    /// The input, or the report.
    #[error(transparent)]
    Output(#[from] OutputError),
}
