//! The four verbs that the log needs of a store.
//!
//! Owns: the seam, and its implementation for [`CheckpointStorage`]. Does not own: retries and read-back (see [`super::client`]).
//! Runs on: the I/O side. Tests bring a store that is late, fails and lies.

use std::future::Future;

use bytes::Bytes;
use tidegate_state::{CheckpointStorage, Created};

/// What a store answers when it fails.
pub type StoreError = Box<dyn std::error::Error + Send + Sync>;

/// The answer to a create-if-absent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PutResult {
    /// The object is ours.
    Created,
    /// Something was there. It may be our own: stores retry on their own.
    AlreadyExists,
}

/// A store with create-if-absent.
pub trait LogStore: Clone + Send + Sync + 'static {
    /// Where it is, for people.
    fn url(&self) -> &str;
    /// Creates an object unless there is one of this name.
    ///
    /// # Errors
    /// It is unknown whether the object was created.
    fn create(&self, path: &str, bytes: Bytes) -> impl Future<Output = Result<PutResult, StoreError>> + Send;
    /// Reads an object; `None` if there is none.
    ///
    /// # Errors
    /// The store is away.
    fn get(&self, path: &str) -> impl Future<Output = Result<Option<Bytes>, StoreError>> + Send;
    /// Lists every object below a folder ("" for all), sorted.
    ///
    /// # Errors
    /// The store is away.
    fn list(&self, folder: &str) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;
    /// Deletes an object; one that is gone is fine.
    ///
    /// # Errors
    /// The store is away.
    fn delete(&self, path: &str) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Deletes what cut-short puts have left that are in no listing, where `may` allows the object that it was to become.
    ///
    /// # Errors
    /// Some of it may be left.
    fn sweep_half_written(&self, may: impl Fn(&str) -> bool) -> Result<usize, StoreError> {
        let _ = may;
        Ok(0)
    }
}

impl LogStore for CheckpointStorage {
    fn url(&self) -> &str {
        CheckpointStorage::url(self)
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<PutResult, StoreError> {
        Ok(match CheckpointStorage::create(self, path, bytes).await? {
            Created::Created => PutResult::Created,
            Created::AlreadyExists => PutResult::AlreadyExists,
        })
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        Ok(CheckpointStorage::get(self, path).await?)
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        Ok(CheckpointStorage::list(self, folder).await?)
    }

    async fn delete(&self, path: &str) -> Result<(), StoreError> {
        Ok(CheckpointStorage::delete(self, path).await?)
    }

    fn sweep_half_written(&self, may: impl Fn(&str) -> bool) -> Result<usize, StoreError> {
        Ok(CheckpointStorage::sweep_half_written(self, may)?)
    }
}
