//! Whether a checkpoint folder is as it should be: whole log entries, every file that an entry names, and no others.
//!
//! 1. What lies there is listed ([`inventory`]); on local disk by walking it, since the store's own listing hides half-written files.
//! 2. The log is read after that, entry by entry, damaged ones too ([`folder`]): whatever was listed and is not named by then is no
//!    file that a checkpoint is about to name.
//! 3. The two are compared ([`judge`], pure), and files are read and checked ([`state_files`]).
//! 4. Only on request, and only what [`judge::Deletable`] allows, is deleted.
//!
//! Owns: these steps and the list of findings. Does not own: whether a job runs on the folder (the caller asks its control socket),
//! the cleaning that a running job does ([`super::cleaner`]). Runs on: the I/O side, away from any job.

mod error;
mod finding;
mod folder;
mod inventory;
mod judge;
mod state_files;

#[cfg(test)]
mod tests;

pub use error::FsckError;
pub use finding::Finding;
pub use folder::CheckpointFolder;
pub use inventory::FoundFile;
pub use judge::Deletable;
pub use state_files::Checked;
