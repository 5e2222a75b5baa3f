//! Checkpoint storage: named blobs on an object store, with create-if-absent.
//!
//! Owns: opening a store from a URL, the six operations that checkpoints need, the preflight, and a wrapper that
//! lets a simulation make a store late, failing or lying.
//! Does not own: what the blobs mean (state files, log entries), retries, and which folder belongs to whom.
//! Runs on: the I/O side; never on a slot's thread.

mod checkpoint_storage;
mod error;
mod faulty;
mod file_url;
mod half_written;
mod open;

pub use self::checkpoint_storage::{CheckpointStorage, Created, PREFLIGHT_FOLDER};
pub use self::error::StorageError;
pub use self::faulty::{FaultAction, FaultyStore, InjectedFault, StoreFaults, StoreOp};
pub use self::file_url::local_folder;
