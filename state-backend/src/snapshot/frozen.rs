//! [`FrozenTable`]: a state's content at a barrier, on its way to a file.
//!
//! Owns: the step from frozen tables to the bytes of one state file.
//! Does not own: freezing (see [`crate::hashmap`]), storing (the engine).
//! Runs on: off the slot's thread.

use super::StateFileWriter;
use crate::descriptor::StateDescriptor;
use crate::key_group::{KeyGroupRange, MaxParallelism};

/// A state's content as it was at the freeze; later writes to its table do not show in it.
pub trait FrozenTable: Send {
    /// Which state it is.
    fn descriptor(&self) -> &StateDescriptor;

    /// Appends the content to a state file, and lets go of the pages.
    fn write(self: Box<Self>, file: &mut StateFileWriter);
}

/// The bytes of the state file of one subtask.
pub fn write_state_file(
    operator_uid: &str,
    range: KeyGroupRange,
    max_parallelism: MaxParallelism,
    frozen: Vec<Box<dyn FrozenTable>>,
) -> Vec<u8> {
    let mut file = StateFileWriter::new(operator_uid, range, max_parallelism);
    for table in frozen {
        table.write(&mut file);
    }
    file.finish()
}
