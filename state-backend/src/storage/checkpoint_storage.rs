//! [`CheckpointStorage`]: the operations that checkpoints rest on.
//!
//! Owns: create-if-absent and its preflight; the translation of "not found" and "already exists" into answers.
//! Does not own: retries and reading back after an uncertain put (the commit log).
//! Runs on: the I/O side.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use futures::TryStreamExt;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt, PutMode, PutOptions};

use super::{StorageError, half_written, local_folder, open};
use crate::fault_point;

/// Where the preflight makes its objects: what lies there belongs to a start that is at it now, or died while it was.
pub const PREFLIGHT_FOLDER: &str = "preflight";

/// How many names the preflight tries before it gives up.
const PREFLIGHT_NAMES: u32 = 256;

/// How often the preflight tries: another start may sweep its objects away under it, as it cannot tell them from left-overs.
const PREFLIGHT_TRIES: u32 = 6;

/// The answer to a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Created {
    /// The object was absent and now has the given bytes.
    Created,
    /// An object of this name exists; nothing was written. It may be the caller's own, from an attempt whose
    /// answer was lost: read it back.
    AlreadyExists,
}

/// A folder of named blobs on an object store; cheap to clone.
#[derive(Clone)]
pub struct CheckpointStorage {
    store: Arc<dyn ObjectStore>,
    url: Arc<str>,
    /// Where it lies, if on local disk and opened by its URL.
    local: Option<Arc<std::path::Path>>,
}

impl fmt::Debug for CheckpointStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CheckpointStorage").field(&self.url).finish()
    }
}

impl CheckpointStorage {
    /// Opens a store: a plain path or `file://` (the folder is created), `memory://` (a new, empty one), or
    /// `s3://bucket/prefix` with the feature `s3` (the rest of its settings from the environment).
    ///
    /// # Errors
    /// When the URL is not understood, or the folder or store cannot be opened.
    pub fn open(url: &str) -> Result<Self, StorageError> {
        let store = open::open(url)?;
        Ok(Self { local: local_folder(url).map(Arc::from), ..Self::over(store, url) })
    }

    /// Uses a store that is already open; `url` stands in messages.
    pub fn over(store: Arc<dyn ObjectStore>, url: impl Into<String>) -> Self {
        Self { store, url: url.into().into(), local: None }
    }

    /// How the store was named.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The store underneath, to wrap it.
    pub fn object_store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Creates an object if none of this name exists, durably.
    ///
    /// # Errors
    /// When the store fails. The object may have been created all the same.
    pub async fn create(&self, path: &str, bytes: Bytes) -> Result<Created, StorageError> {
        let location = parse(path)?;
        fault_point!("storage.create.before");
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let answer = self.store.put_opts(&location, bytes.into(), options).await;
        fault_point!("storage.create.after");
        match answer {
            Ok(_) => Ok(Created::Created),
            Err(object_store::Error::AlreadyExists { .. }) => Ok(Created::AlreadyExists),
            Err(source) => Err(self.failed("create", path, source)),
        }
    }

    /// Writes an object, replacing one of the same name, durably.
    ///
    /// # Errors
    /// When the store fails. The object may have been written all the same.
    pub async fn put(&self, path: &str, bytes: Bytes) -> Result<(), StorageError> {
        let location = parse(path)?;
        fault_point!("storage.put.before");
        let answer = self.store.put(&location, bytes.into()).await;
        fault_point!("storage.put.after");
        answer.map(drop).map_err(|source| self.failed("put", path, source))
    }

    /// Reads an object; `None` when there is none of this name.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn get(&self, path: &str) -> Result<Option<Bytes>, StorageError> {
        let failed = |source| self.failed("get", path, source);
        match self.store.get(&parse(path)?).await {
            Ok(found) => found.bytes().await.map(Some).map_err(failed),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(source) => Err(failed(source)),
        }
    }

    /// The paths of all objects under the folder `prefix` (`""` for all), relative to the store's root, sorted.
    ///
    /// # Errors
    /// When the store fails. A folder that does not exist is empty.
    pub async fn list(&self, prefix: &str) -> Result<Vec<String>, StorageError> {
        let folder = parse(prefix)?;
        let folder = (!folder.as_ref().is_empty()).then_some(&folder);
        let listed: Result<Vec<_>, _> =
            self.store.list(folder).map_ok(|found| found.location.to_string()).try_collect().await;
        let mut paths = listed.map_err(|source| self.failed("list", prefix, source))?;
        paths.sort_unstable();
        Ok(paths)
    }

    /// Deletes an object; one that is absent is no error.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn delete(&self, path: &str) -> Result<(), StorageError> {
        match self.store.delete(&parse(path)?).await {
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(source) => Err(self.failed("delete", path, source)),
        }
    }

    /// Deletes what puts of dead processes have left on local disk, where `may` allows the object that it was to become, and answers
    /// how many. Other stores leave nothing.
    ///
    /// # Errors
    /// [`StorageError::HalfWritten`].
    pub fn sweep_half_written(&self, may: impl Fn(&str) -> bool) -> Result<usize, StorageError> {
        let Some(root) = &self.local else { return Ok(0) };
        half_written::sweep(root, &may)
            .map_err(|source| StorageError::HalfWritten { url: self.url.to_string(), source })
    }

    /// Checks that the store is writable and refuses a second create of one name. Leaves nothing behind.
    ///
    /// # Errors
    /// [`StorageError::NotWritable`], [`StorageError::NoCreateIfAbsent`], or what the store answers.
    pub async fn preflight(&self) -> Result<(), StorageError> {
        let mut tries = 1;
        loop {
            match self.preflight_once().await {
                Err(error) if tries < PREFLIGHT_TRIES && error.may_be_swept() => tries += 1,
                answer => return answer,
            }
        }
    }

    async fn preflight_once(&self) -> Result<(), StorageError> {
        let path = self.preflight_object().await?;
        let second = self.create(&path, Bytes::from_static(b"second")).await;
        self.delete(&path).await.map_err(|source| self.not_writable(source))?;
        match second? {
            Created::AlreadyExists => Ok(()),
            Created::Created => Err(StorageError::NoCreateIfAbsent { url: self.url.to_string() }),
        }
    }

    /// Creates an object under a name that nobody else uses: a preflight only touches names it has created.
    async fn preflight_object(&self) -> Result<String, StorageError> {
        for number in 0..PREFLIGHT_NAMES {
            let path = format!("{PREFLIGHT_FOLDER}/{number}");
            let first = self.create(&path, Bytes::from_static(b"first")).await;
            match first.map_err(|source| self.not_writable(source))? {
                Created::Created => return Ok(path),
                Created::AlreadyExists => {}
            }
        }
        let url = self.url.to_string();
        Err(StorageError::PreflightCrowded { url, tried: PREFLIGHT_NAMES, prefix: PREFLIGHT_FOLDER })
    }

    fn failed(&self, operation: &'static str, path: &str, source: object_store::Error) -> StorageError {
        let (path, url) = (path.to_owned(), self.url.to_string());
        StorageError::Operation { operation, path, url, source: Box::new(source) }
    }

    fn not_writable(&self, source: StorageError) -> StorageError {
        let remedy = StorageError::remedy_for(&source);
        StorageError::NotWritable { url: self.url.to_string(), remedy, source: Box::new(source) }
    }
}

fn parse(path: &str) -> Result<Path, StorageError> {
    Path::parse(path).map_err(|source| StorageError::Path { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use object_store::memory::InMemory;

    use super::*;

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    async fn behaves(storage: CheckpointStorage) {
        storage.preflight().await.unwrap();
        assert_eq!(storage.list("").await.unwrap(), Vec::<String>::new());
        assert_eq!(storage.list("log").await.unwrap(), Vec::<String>::new());
        assert_eq!(storage.create("log/02", bytes("a")).await.unwrap(), Created::Created);
        assert_eq!(storage.create("log/02", bytes("b")).await.unwrap(), Created::AlreadyExists);
        assert_eq!(storage.get("log/02").await.unwrap(), Some(bytes("a")));
        storage.put("log/01", bytes("c")).await.unwrap();
        storage.put("log/01", bytes("d")).await.unwrap();
        storage.put("logs/x/y", bytes("e")).await.unwrap();
        assert_eq!(storage.get("log/01").await.unwrap(), Some(bytes("d")));
        assert_eq!(storage.get("log/03").await.unwrap(), None);
        assert_eq!(storage.list("log").await.unwrap(), ["log/01", "log/02"]);
        assert_eq!(storage.list("").await.unwrap(), ["log/01", "log/02", "logs/x/y"]);
        storage.delete("log/02").await.unwrap();
        storage.delete("log/02").await.unwrap();
        assert_eq!(storage.list("log").await.unwrap(), ["log/01"]);
    }

    #[tokio::test]
    async fn a_folder_keeps_blobs_and_refuses_a_second_create() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/checkpoints");
        behaves(CheckpointStorage::open(path.to_str().unwrap()).unwrap()).await;
        let url = format!("file://{}/again", path.display());
        behaves(CheckpointStorage::open(&url).unwrap()).await;
    }

    #[tokio::test]
    async fn memory_keeps_blobs_and_refuses_a_second_create() {
        behaves(CheckpointStorage::open("memory://").unwrap()).await;
    }

    #[tokio::test]
    async fn emptied_folders_go_away_and_come_back_under_concurrent_writes() {
        let folder = tempfile::tempdir().unwrap();
        let storage = CheckpointStorage::open(folder.path().to_str().unwrap()).unwrap();
        storage.put("7-1/op/0", bytes("a")).await.unwrap();
        storage.delete("7-1/op/0").await.unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        for round in 0..20 {
            let (new, old) = (format!("log/{}", round + 1), format!("log/{round}"));
            let (created, deleted) = futures::join!(storage.create(&new, bytes("b")), storage.delete(&old));
            assert_eq!(created.unwrap(), Created::Created);
            deleted.unwrap();
        }
        assert_eq!(storage.list("").await.unwrap(), ["log/20"]);
    }

    #[tokio::test]
    async fn a_preflight_steps_over_what_another_one_has_left() {
        let storage = CheckpointStorage::over(Arc::new(InMemory::new()), "memory://left");
        storage.put("preflight/0", bytes("left")).await.unwrap();
        storage.preflight().await.unwrap();
        assert_eq!(storage.list("").await.unwrap(), ["preflight/0"]);
    }

    /// Another start sweeps what it takes for left-overs, so often.
    #[derive(Debug)]
    struct Sweeper {
        store: Arc<InMemory>,
        sweeps_left: std::sync::atomic::AtomicU32,
    }

    impl crate::storage::StoreFaults for Sweeper {
        fn before(
            &self,
            op: crate::storage::StoreOp,
            path: &Path,
        ) -> futures::future::BoxFuture<'static, crate::storage::FaultAction> {
            use std::sync::atomic::Ordering::Relaxed;
            let sweeps = op == crate::storage::StoreOp::Create
                && self.sweeps_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
            let (store, path) = (Arc::clone(&self.store), path.clone());
            Box::pin(async move {
                if sweeps {
                    let _ = store.delete(&path).await;
                }
                crate::storage::FaultAction::Proceed
            })
        }
    }

    #[tokio::test]
    async fn a_preflight_whose_objects_another_start_sweeps_tries_again() {
        for (sweeps, writable) in [(2, true), (u32::MAX, false)] {
            let store = Arc::new(InMemory::new());
            let sweeper = Sweeper { store: Arc::clone(&store), sweeps_left: sweeps.into() };
            let faulty = crate::storage::FaultyStore::new(store, Arc::new(sweeper));
            let storage = CheckpointStorage::over(Arc::new(faulty), "memory://swept");
            assert_eq!(storage.preflight().await.is_ok(), writable, "{sweeps}");
            assert_eq!(storage.list("").await.unwrap(), Vec::<String>::new());
        }
    }

    #[test]
    fn bad_urls_name_the_remedy() {
        let text = |url: &str| CheckpointStorage::open(url).unwrap_err().to_string();
        assert!(text("hdfs://x/y").contains("the scheme hdfs:// is not known"));
        assert!(text("file://").contains("names no folder"));
        assert!(text("file://tmp/ck").contains("three slashes"));
        assert!(text("").contains("no folder is named"));
        #[cfg(not(feature = "s3"))]
        assert!(text("s3://bucket/x").contains("--features s3"));
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_named() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let below = file.path().join("below");
        let error = CheckpointStorage::open(below.to_str().unwrap()).unwrap_err();
        assert!(matches!(error, StorageError::Folder { .. }), "{error:?}");
        assert!(error.to_string().contains("below"));
        let error = CheckpointStorage::open(file.path().to_str().unwrap()).unwrap_err();
        assert!(matches!(error, StorageError::NotAFolder { .. }), "{error:?}");
    }
}
