//! From a URL to an object store.
//!
//! Owns: the schemes and what each opens.
//! Does not own: the operations (see [`CheckpointStorage`](super::CheckpointStorage)).
//! Runs on: the I/O side, once at start.

use std::path::Path;
use std::sync::Arc;

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;

use super::{StorageError, file_url};

/// Opens the store that `url` names.
pub(super) fn open(url: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
    match url.split_once("://") {
        None => folder(url, Path::new(url)),
        Some(("file", rest)) => {
            let path = file_url::path(rest);
            folder(url, &path.map_err(|what| StorageError::MalformedUrl { url: url.to_owned(), what })?)
        }
        Some(("memory", _)) => Ok(Arc::new(InMemory::new())),
        Some(("s3", rest)) => s3(url, rest),
        Some((scheme, _)) => {
            Err(StorageError::UnknownScheme { url: url.to_owned(), scheme: scheme.to_owned() })
        }
    }
}

/// Local disk, durable: a put returns after its file and its folder are synced.
fn folder(url: &str, path: &Path) -> Result<Arc<dyn ObjectStore>, StorageError> {
    if path.as_os_str().is_empty() {
        return Err(StorageError::NoFolder);
    }
    if path.exists() && !path.is_dir() {
        return Err(StorageError::NotAFolder { url: url.to_owned() });
    }
    std::fs::create_dir_all(path).map_err(|source| StorageError::Folder {
        url: url.to_owned(),
        remedy: StorageError::remedy_for(&source),
        source,
    })?;
    let store = LocalFileSystem::new_with_prefix(path)
        .map_err(|source| StorageError::Open { url: url.to_owned(), source: Box::new(source) })?;
    // A folder that deletes have emptied goes too: each checkpoint has its own.
    Ok(Arc::new(store.with_fsync(true).with_automatic_cleanup(true)))
}

#[cfg(feature = "s3")]
fn s3(url: &str, rest: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
    use object_store::aws::AmazonS3Builder;
    use object_store::prefix::PrefixStore;

    let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    if bucket.is_empty() {
        let what = "it names no bucket; write s3://bucket/prefix";
        return Err(StorageError::MalformedUrl { url: url.to_owned(), what });
    }
    let store = AmazonS3Builder::from_env()
        .with_bucket_name(bucket)
        .build()
        .map_err(|source| StorageError::Open { url: url.to_owned(), source: Box::new(source) })?;
    match prefix.trim_matches('/') {
        "" => Ok(Arc::new(store)),
        prefix => Ok(Arc::new(PrefixStore::new(store, prefix))),
    }
}

#[cfg(not(feature = "s3"))]
fn s3(url: &str, _rest: &str) -> Result<Arc<dyn ObjectStore>, StorageError> {
    Err(StorageError::FeatureMissing { url: url.to_owned(), feature: "s3" })
}
