//! [`StorageError`]: what went wrong with a checkpoint store.
//!
//! Owns: the reasons, each with the store's URL and a remedy.
//! Does not own: whether the attempt is repeated (the caller decides).
//! Runs on: the I/O side.

use std::error::Error;
use std::io::{self, ErrorKind};

/// What went wrong with a checkpoint store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// The URL's scheme is none of ours.
    #[error("{url}: the scheme {scheme}:// is not known; use a path, file:///path or s3://bucket/prefix")]
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
    /// An empty path.
    #[error(
        "no folder is named: the path of the checkpoint folder is empty; write file:///absolute/path or a plain path"
    )]
    NoFolder,
    /// Something else has the folder's name.
    #[error("{url} is no folder, but a file or something else; name another one")]
    NotAFolder {
        /// What was given.
        url: String,
    },
    /// The folder could not be made or opened.
    #[error("the folder {url} cannot be created or opened; {remedy}")]
    Folder {
        /// The folder.
        url: String,
        /// What helps against the system's reason.
        remedy: &'static str,
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
    #[error("{url} cannot be written to; {remedy}")]
    NotWritable {
        /// The store.
        url: String,
        /// What helps against the refusal.
        remedy: &'static str,
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

impl StorageError {
    /// Whether a preflight may have met this because another start has swept away under it what it took for a left-over.
    pub(super) fn may_be_swept(&self) -> bool {
        if matches!(self, Self::NoCreateIfAbsent { .. }) {
            return true;
        }
        let mut cause: Option<&(dyn Error + 'static)> = Some(self);
        while let Some(error) = cause {
            let by_system =
                error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == ErrorKind::NotFound);
            let by_store = matches!(error.downcast_ref(), Some(object_store::Error::NotFound { .. }));
            if by_system || by_store {
                return true;
            }
            cause = error.source();
        }
        false
    }

    /// What helps against the system's reason somewhere below an error.
    pub(super) fn remedy_for(error: &(dyn Error + 'static)) -> &'static str {
        let mut cause = Some(error);
        while let Some(error) = cause {
            match error.downcast_ref::<io::Error>().map(io::Error::kind) {
                Some(ErrorKind::StorageFull) => {
                    return "the disk is full: make room there, or choose another place";
                }
                Some(ErrorKind::QuotaExceeded) => {
                    return "this user's quota of the disk is used up: make room there, or choose another place";
                }
                Some(ErrorKind::ReadOnlyFilesystem) => {
                    return "it lies on a file system that is mounted read-only: choose another place, or mount it to be written to";
                }
                _ => cause = error.source(),
            }
        }
        "give this user the right to create and delete there, or choose another place"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_not_told_as_a_missing_right() {
        let refused = |kind: ErrorKind| {
            let source =
                object_store::Error::Generic { store: "local", source: Box::new(io::Error::from(kind)) };
            let (operation, path, url) = ("create", "preflight/0".to_owned(), "ck".to_owned());
            StorageError::remedy_for(&StorageError::Operation {
                operation,
                path,
                url,
                source: Box::new(source),
            })
        };
        assert!(refused(ErrorKind::StorageFull).contains("disk is full"));
        assert!(refused(ErrorKind::ReadOnlyFilesystem).contains("read-only"));
        assert!(refused(ErrorKind::PermissionDenied).contains("the right"));
    }
}
