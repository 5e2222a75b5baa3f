//! Lines into part files, exactly once: what is finished has been committed, and never changes.
//!
//! A transaction is one or more part files. While they are written and until their checkpoint is complete they lie in the hidden folder
//! `.tidegate` of the output folder; a commit links them to their finished names, without ever overwriting. The protocol, its names
//! and what each crash leaves stand in `docs/rfcs/0007-file-sink.md`; its steps are [`tidegate_engine::parts`], which the simulation
//! drives too.
//!
//! Owns: the settings ([`FileSink`]), encoders ([`LineEncoder`]), bucket names, real folders. Does not own: the protocol's steps, when
//! anything is prepared, committed or rolled back (the engine's sink driver). Runs on: the I/O side; every system call in blocking
//! work.

mod bucket;
mod committer;
mod disk_folder;
mod encoder;
mod error;
mod probe;
mod settings;
#[cfg(test)]
mod tests;
mod writer;

pub use bucket::{BUCKET_BYTES_MAX, BucketRefusal};
pub use committer::FileSinkCommitter;
pub use disk_folder::DiskFolder;
pub use encoder::{JsonLines, LineEncoder, TextLines};
pub use error::FileSinkError;
pub use settings::FileSink;
pub use writer::FileSinkWriter;
