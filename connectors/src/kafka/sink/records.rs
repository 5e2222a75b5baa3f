//! How a record becomes a message: its bytes, its key, its partition.
//!
//! Owns: the functions of the job's author. Does not own: the producer. Runs on: the I/O side, for each record.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// Why a serializer refuses a record.
pub type SerializeError = Box<dyn Error + Send + Sync>;

type IntoBytes<T> = Arc<dyn Fn(&T, &mut Vec<u8>) -> Result<(), SerializeError> + Send + Sync>;
type IntoKey<T> = Arc<dyn Fn(&T, &mut Vec<u8>) + Send + Sync>;
type IntoPartition<T> = Arc<dyn Fn(&T, u32) -> u32 + Send + Sync>;

/// See the module.
pub(super) struct RecordShape<T> {
    pub(super) value: IntoBytes<T>,
    pub(super) key: Option<IntoKey<T>>,
    pub(super) partition: Option<IntoPartition<T>>,
}

impl<T> RecordShape<T> {
    pub(super) fn new(
        value: impl Fn(&T, &mut Vec<u8>) -> Result<(), SerializeError> + Send + Sync + 'static,
    ) -> Self {
        Self { value: Arc::new(value), key: None, partition: None }
    }

    pub(super) fn json() -> Self
    where
        T: Serialize,
    {
        Self::new(|record, bytes| Ok(serde_json::to_writer(bytes, record)?))
    }
}

impl<T> Clone for RecordShape<T> {
    fn clone(&self) -> Self {
        Self { value: Arc::clone(&self.value), key: self.key.clone(), partition: self.partition.clone() }
    }
}

impl<T> fmt::Debug for RecordShape<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keyed, partitioned) = (self.key.is_some(), self.partition.is_some());
        f.debug_struct("RecordShape").field("keyed", &keyed).field("partitioned", &partitioned).finish()
    }
}
