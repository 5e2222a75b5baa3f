//! [`StorageError`]: what went wrong with a checkpoint store.
//!
//! Owns: the reasons, each with the store's URL and a remedy.
//! Does not own: whether the attempt is repeated (the caller decides).
//! Runs on: the I/O side.

use std::io;

/// What went wrong with a checkpoint store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The URL's scheme is none of ours.
    #[error("{url}: the scheme {scheme}:// is not known; use a path, file://, memory:// or s3://")]
    UnknownScheme {
        /// What was given.
        url: String,
        /// Its scheme.
        scheme: String,
    },
    /// The URL needs a feature that this binary was built without.
    #[error(
        "{url}: this binary was built without the feature `{feature}`; build it with --features {feature}"
    )]
    FeatureMissing {
        /// What was given.
        url: String,
        /// The cargo feature.
        feature: &'static str,
    },
    /// The URL has a good scheme but does not name a place.
    #[error("{url}: {what}")]
    MalformedUrl {
        /// What was given.
        url: String,
        /// What is missing.
        what: &'static str,
    },
    /// The folder could not be made or opened.
    #[error("the folder {url} cannot be created or opened; choose one that this user may write to")]
    Folder {
        /// The folder.
        url: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The store could not be opened.
    #[error("the store {url} cannot be opened; check its address and credentials")]
    Open {
        /// The store.
        url: String,
        /// The store's reason.
        #[source]
        source: Box<object_store::Error>,
    },
    /// A name that cannot be an object's path.
    #[error("{path} is not a valid object path")]
    Path {
        /// The name.
        path: String,
        /// Why not.
        #[source]
        source: object_store::path::Error,
    },
    /// An operation failed; a put or create may have been applied all the same.
    #[error("{operation} of {path} in {url} failed")]
    Operation {
        /// `put`, `create`, `get`, `list` or `delete`.
        operation: &'static str,
        /// The object or prefix.
        path: String,
        /// The store.
        url: String,
        /// The store's reason.
        #[source]
        source: Box<object_store::Error>,
    },
    /// The folder could not be walked for what dead processes have left.
    #[error(
        "{url} could not be searched for half-written files; check that this user may read and delete there"
    )]
    HalfWritten {
        /// The store.
        url: String,
        /// The system's reason.
        #[source]
        source: io::Error,
    },
    /// The preflight could not write.
    #[error("{url} is not writable; give this user the right to create and delete there")]
    NotWritable {
        /// The store.
        url: String,
        /// The refused operation.
        #[source]
        source: Box<StorageError>,
    },
    /// The preflight's second create of one name was not refused.
    #[error(
        "{url} does not refuse a second create of the same object, so two runs of a job could both own its \
         checkpoints; use a store with conditional puts (local disk, S3)"
    )]
    NoCreateIfAbsent {
        /// The store.
        url: String,
    },
    /// The preflight found no name that is free.
    #[error("{url} holds {tried} objects under {prefix}/ left by earlier preflights; delete them")]
    PreflightCrowded {
        /// The store.
        url: String,
        /// How many names were tried.
        tried: u32,
        /// Where they lie.
        prefix: &'static str,
    },
}
