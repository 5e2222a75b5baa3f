//! The file sink's protocol: part files that are *open* while they are written, *pending* from their prepare until their commit, and
//! *finished* for ever after.
//!
//! Open and pending files lie in a hidden folder of their own for each job, log and sink ([`PartName`]); a finished file is made by a
//! hard link that never overwrites. So a commit can be asked for any number of times, by any process: what the folder shows decides
//! ([`decide_commit`]). The byte and name formats stand in `docs/rfcs/0007-file-sink.md`.
//!
//! It stands here and not with the connector because the simulation drives it too, over a model of a file system: what is simulated
//! is this code, not a copy. The seam is [`PartFolder`].
//!
//! Owns: names, steps and their order, decisions. Does not own: real files, encoders, settings (the file connector), *when* anything
//! is prepared, committed or rolled back (see [`crate::operator::sink_operator`]). Runs on: the I/O side.

mod committer;
mod decide;
mod error;
mod folder;
mod limits;
mod name;
mod open_part;
#[cfg(test)]
mod tests;
mod writer;
mod written;

pub use committer::PartCommitter;
pub use decide::{CommitPlan, FinishedFile, LostPart, PartFacts, PartStep, decide_commit};
pub use error::PartError;
pub use folder::{PartFolder, Published};
pub use limits::PartLimits;
pub use name::{PartName, PartStage, STAGING};
pub use writer::PartWriter;
pub use written::{WrittenPart, WrittenParts};
