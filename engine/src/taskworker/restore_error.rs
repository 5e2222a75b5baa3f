//! Why a checkpoint cannot be restored into a job.
//!
//! Owns: the errors of a restore, each with its place and its remedy. Does not own: the reading (see [`super::restore`]), nor whether
//! the job fits the checkpoint as a whole ([`crate::checkpoint::restore_check`]). Runs on: plain data.

use tidegate_state::{StateError, StorageError};

use crate::ids::{CheckpointId, OperatorUid};

/// A checkpoint that cannot be restored into this job.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RestoreError {
    /// A file of the checkpoint is gone.
    #[error(
        "checkpoint {checkpoint}: {path} is missing in {url}\n  \
         help: bring the file back from a copy, restore another retained checkpoint (`--restore URL#id --rewind`), or start over with `--restore none`"
    )]
    Missing {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The file.
        path: String,
        /// The folder.
        url: String,
    },
    /// Storage failed while reading.
    #[error("checkpoint {checkpoint}: {path} could not be read")]
    Storage {
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<StorageError>,
    },
    /// A state has another type than it is declared with.
    #[error(
        "the state of operator \"{operator}\" does not fit this job\n\n  state      {state}\n  field      {field}\n  \
         was        {was}    (checkpoint {checkpoint})\n  is         {is}\n\n  \
         help: bring the type back; a new field may be an Option or #[state(default)]; or start without this state: \
         --restore none begins anew"
    )]
    Mismatch {
        /// The operator.
        operator: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The state, with its kind.
        state: Box<str>,
        /// The path to the place inside it.
        field: Box<str>,
        /// What was written there.
        was: Box<str>,
        /// What is declared there.
        is: Box<str>,
    },
    /// The state of a source, sink or function is that of another one.
    #[error(
        "operator \"{operator}\" was another kind of source, sink or function when checkpoint {checkpoint} was written\n\n  state      {state}\n  \
         was        {was}\n  is         {is}\n\n  \
         help: start it as what it was: nothing else can go on from this checkpoint, or commit what it lists; --restore none begins anew, in \
         addition to what is there: all input is read again, and what was published already is published a second time (give it an \
         output of its own). A state whose type was only renamed says so: #[state(renamed_from = \"{was}\")]"
    )]
    AnotherKind {
        /// The operator.
        operator: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// Where it stands.
        state: Box<str>,
        /// The type whose state the checkpoint has, by name.
        was: Box<str>,
        /// The type that the operator has now, by name.
        is: Box<str>,
    },
    /// The checkpoint has a state that its operator does not declare: it was renamed, or removed.
    #[error(
        "operator \"{operator}\" declares no state \"{state}\", and checkpoint {checkpoint} has {entries} entries of it\n\n  \
         states of this job    {known}\n\n  \
         help: give the state its name back, or drop it: --allow-non-restored-state starts without it"
    )]
    Undeclared {
        /// The operator.
        operator: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// The state in the checkpoint.
        state: Box<str>,
        /// How many entries one file of it has.
        entries: u64,
        /// States that the operator declares.
        known: Box<str>,
    },
    /// The bytes of a state are damaged, or of another kind.
    #[error(
        "the state of operator \"{operator}\" in checkpoint {checkpoint} ({place}) cannot be restored\n  \
         help: restore another retained checkpoint (`--restore URL#id --rewind`), or start over with `--restore none`"
    )]
    State {
        /// The operator.
        operator: OperatorUid,
        /// The checkpoint.
        checkpoint: CheckpointId,
        /// File or list.
        place: String,
        /// What is wrong with it.
        source: Box<StateError>,
    },
}
