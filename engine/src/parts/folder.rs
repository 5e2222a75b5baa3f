//! The seam between the protocol and a file system.
//!
//! Paths are relative to the output folder, with `/` between their components.
//!
//! Owns: what the protocol needs of a folder. Does not own: how it is done: on disk (the file connector), in a model (the simulation).
//! Runs on: the I/O side; every call may wait.

use std::future::Future;

use crate::api::ConnectorError;

/// How an attempt to publish came out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Published {
    /// The finished file stands, and will after a power loss.
    Done,
    /// There is something of the finished file's name: nothing was changed.
    Taken,
    /// The pending file is gone: nothing was changed.
    Gone,
    /// The disk has no room for another name: nothing was changed, and it is worth asking again.
    NoRoom {
        /// What the system says, for people.
        reason: String,
    },
}

/// An output folder. An error leaves open whether the step was done.
pub trait PartFolder: Clone + Send + Sync + 'static {
    /// A file that is being written.
    type File: Send + 'static;

    /// Makes an empty file, and the folders above it. One that is there already is an error.
    fn create(&self, path: &str) -> impl Future<Output = Result<Self::File, ConnectorError>> + Send;

    /// Writes at the end of a file.
    fn append(
        &self,
        file: &mut Self::File,
        bytes: Vec<u8>,
    ) -> impl Future<Output = Result<(), ConnectorError>> + Send;

    /// Makes the bytes of a file durable and closes it.
    fn sync(&self, file: Self::File) -> impl Future<Output = Result<(), ConnectorError>> + Send;

    /// Gives a file another name in the same folder, durably. One that is gone is an error.
    fn rename(&self, from: &str, to: &str) -> impl Future<Output = Result<(), ConnectorError>> + Send;

    /// The length of a regular file; `None`: there is none.
    fn length(&self, path: &str) -> impl Future<Output = Result<Option<u64>, ConnectorError>> + Send;

    /// Whether two names are of one file, or of two with the same bytes; `None`: one of them is gone.
    fn is_same(
        &self,
        one: &str,
        other: &str,
    ) -> impl Future<Output = Result<Option<bool>, ConnectorError>> + Send;

    /// Gives a pending file its finished name beside the old one, durably, and never overwrites.
    fn publish(
        &self,
        pending: &str,
        finished: &str,
    ) -> impl Future<Output = Result<Published, ConnectorError>> + Send;

    /// Makes a finished name durable that somebody else may have given.
    fn settle(&self, finished: &str) -> impl Future<Output = Result<(), ConnectorError>> + Send;

    /// Takes a name away; one that is gone is fine.
    fn remove(&self, path: &str) -> impl Future<Output = Result<(), ConnectorError>> + Send;

    /// The names in a folder; none if the folder is not there.
    fn list(&self, folder: &str) -> impl Future<Output = Result<Vec<String>, ConnectorError>> + Send;
}
