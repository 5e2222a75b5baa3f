//! Snapshots: from frozen tables to one state file per subtask, and back into tables of other key groups.
//!
//! The byte layout stands in `docs/rfcs/0002-state-file.md`.
//!
//! Owns: the state file's format, its checks, and decoding by the writer's schema.
//! Does not own: where files lie and when they are written (the engine).
//! Runs on: off the slot's thread for writing; at a start for reading.

mod format;
mod frozen;
mod reader;
mod restore;
#[cfg(test)]
mod tests;
mod writer;

pub use self::frozen::{FrozenTable, write_state_file};
pub use self::reader::StateFileReader;
pub use self::restore::check_stored;
pub use self::writer::{SectionWriter, StateFileWriter};

pub(crate) use self::format::seal;
pub(crate) use self::format::{Frame, unseal};
pub(crate) use self::restore::RestoreDecoder;
