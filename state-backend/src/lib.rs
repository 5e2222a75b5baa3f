//! Keyed and operator state of the Tidegate stream processor.
//!
//! A keyed operator declares its states ([`value`], [`list`], [`map`]) and gets them back, for each record, as
//! handles bound to the record's key ([`ValueState`], [`ListState`], [`MapState`]). Keys fall into
//! [`KeyGroup`]s; each subtask owns one contiguous [`KeyGroupRange`]. At a barrier the tables are frozen by
//! copy-on-write and written as one state file, which any later parallelism can restore.
//!
//! Owns: key groups, the codec and the schemas of everything that lasts, state tables, state files, operator
//! state, checkpoint storage over an object store, fault points.
//! Does not own: when a snapshot is taken, completed or deleted (the engine's coordinator and commit log).
//! Runs on: tables on the slot's thread; writing and storing snapshots off it.

extern crate self as tidegate_state;

pub mod backend;
pub mod codec;
pub mod declaration;
pub mod descriptor;
pub mod error;
pub mod fault;
pub mod hashmap;
pub mod key_group;
pub mod operator_state;
pub mod schema;
pub mod snapshot;
pub mod state;
pub mod storage;

pub use backend::{HeapBackend, KeyedBackend};
pub use codec::{BincodeCodec, Codec, CodecError, StateType};
pub use declaration::{
    ListDeclaration, MapDeclaration, StateDeclaration, ValueDeclaration, list, map, value,
};
pub use descriptor::{StateDescriptor, StateKind};
pub use error::{FileDefect, StateError};
pub use hashmap::{TIMERS_STATE, TimerTable};
pub use key_group::{KeyGroup, KeyGroupRange, MaxParallelism, key_group_of, range_of, subtask_of};
pub use operator_state::{Redistribution, check_list, decode_list, encode_list, redistribute};
pub use schema::{Schema, SchemaMismatch};
pub use snapshot::{FrozenTable, StateFileReader, StateFileWriter, write_state_file};
pub use state::{ListState, MapState, ValueState};
pub use storage::{CheckpointStorage, Created, PREFLIGHT_FOLDER, StorageError, local_folder};
/// Derives [`trait@StateType`] for a struct or an enum; see the trait for the rules of evolution.
pub use tidegate_state_derive::StateType;
