//! [`FaultyStore`]: an object store that a caller-supplied policy makes late, failing or lying.
//!
//! Owns: asking the policy before and after each operation, and doing what it says.
//! Does not own: the policy (a simulation's seed, a test's script).
//! Runs on: the I/O side; in simulation on its one thread.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures::future::BoxFuture;
use futures::stream::{self, BoxStream};
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyMode, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, PutMode, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

/// What is being done to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StoreOp {
    /// A put that replaces.
    Put,
    /// A put that must find the name free.
    Create,
    /// A read, also of a range or of the metadata alone.
    Get,
    /// A listing; asked once, before and after the whole.
    List,
    /// The deletion of one object.
    Delete,
    /// A copy or rename.
    Copy,
}

/// What becomes of the operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultAction {
    /// Before: do it. After: give the true answer.
    Proceed,
    /// Answer with an error. Before: nothing is applied. After: it was applied all the same.
    Fail,
    /// Answer that an object of this name exists (whether or not one does).
    SayAlreadyExists,
    /// Answer that there is no such object (whether or not there is); a listing comes out empty.
    SayNotFound,
    /// Before: answer success without applying a put, create or delete (other operations fail). After: give the
    /// true answer.
    SayDone,
}

/// Decides the fate of each operation. A hook may return a future that is late.
pub trait StoreFaults: fmt::Debug + Send + Sync + 'static {
    /// Asked before the operation; anything but [`FaultAction::Proceed`] keeps it from being applied.
    fn before(&self, op: StoreOp, path: &Path) -> BoxFuture<'static, FaultAction> {
        let _ = (op, path);
        Box::pin(async { FaultAction::Proceed })
    }

    /// Asked after the operation, with whether it succeeded; anything but [`FaultAction::Proceed`] replaces the
    /// answer.
    fn after(&self, op: StoreOp, path: &Path, succeeded: bool) -> BoxFuture<'static, FaultAction> {
        let _ = (op, path, succeeded);
        Box::pin(async { FaultAction::Proceed })
    }
}

/// An object store under a policy of faults.
#[derive(Clone, Debug)]
pub struct FaultyStore {
    inner: Arc<dyn ObjectStore>,
    faults: Arc<dyn StoreFaults>,
}

impl FaultyStore {
    /// Puts `inner` under the policy `faults`.
    pub fn new(inner: Arc<dyn ObjectStore>, faults: Arc<dyn StoreFaults>) -> Self {
        Self { inner, faults }
    }

    /// One operation under both hooks.
    async fn run<T>(
        &self,
        op: StoreOp,
        path: &Path,
        done: impl FnOnce() -> Option<T>,
        apply: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        match self.faults.before(op, path).await {
            FaultAction::Proceed => {}
            FaultAction::SayDone => return done().ok_or_else(|| injected(op, path, "before")),
            other => return Err(answer(other, op, path, "before")),
        }
        let result = apply.await;
        match self.faults.after(op, path, result.is_ok()).await {
            FaultAction::Proceed | FaultAction::SayDone => result,
            other => Err(answer(other, op, path, "after")),
        }
    }
}

/// A fault that the policy ordered.
#[derive(Debug, thiserror::Error)]
#[error("injected fault {side} {op:?} of {path}")]
pub struct InjectedFault {
    /// The operation.
    op: StoreOp,
    /// Its object.
    path: String,
    /// `before` or `after`.
    side: &'static str,
}

fn injected(op: StoreOp, path: &Path, side: &'static str) -> Error {
    let fault = InjectedFault { op, path: path.to_string(), side };
    Error::Generic { store: "faulty", source: Box::new(fault) }
}

fn answer(action: FaultAction, op: StoreOp, path: &Path, side: &'static str) -> Error {
    let source = Box::new(InjectedFault { op, path: path.to_string(), side });
    match action {
        FaultAction::SayAlreadyExists => Error::AlreadyExists { path: path.to_string(), source },
        FaultAction::SayNotFound => Error::NotFound { path: path.to_string(), source },
        FaultAction::Proceed | FaultAction::Fail | FaultAction::SayDone => {
            Error::Generic { store: "faulty", source }
        }
    }
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FaultyStore({})", self.inner)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        let op = if matches!(opts.mode, PutMode::Create) { StoreOp::Create } else { StoreOp::Put };
        let done = || Some(PutResult { e_tag: None, version: None, extensions: Default::default() });
        self.run(op, location, done, self.inner.put_opts(location, payload, opts)).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.inner.put_multipart_opts(location, opts);
        self.run(StoreOp::Put, location, || None, upload).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.run(StoreOp::Get, location, || None, self.inner.get_opts(location, options)).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.run(StoreOp::Get, location, || None, self.inner.get_ranges(location, ranges)).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        let store = self.clone();
        locations
            .and_then(move |location| {
                let store = store.clone();
                async move {
                    let done = || Some(());
                    let delete = object_store::ObjectStoreExt::delete(&store.inner, &location);
                    store.run(StoreOp::Delete, &location, done, delete).await?;
                    Ok(location)
                }
            })
            .boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let store = self.clone();
        let prefix = prefix.cloned();
        let listing = async move {
            let place = prefix.clone().unwrap_or_default();
            let all = store.inner.list(prefix.as_ref()).try_collect::<Vec<_>>();
            match store.run(StoreOp::List, &place, || None, all).await {
                Ok(found) => stream::iter(found.into_iter().map(Ok).collect::<Vec<_>>()),
                Err(Error::NotFound { .. }) => stream::iter(Vec::new()),
                Err(error) => stream::iter(vec![Err(error)]),
            }
        };
        stream::once(listing).flatten().boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        let place = prefix.cloned().unwrap_or_default();
        self.run(StoreOp::List, &place, || None, self.inner.list_with_delimiter(prefix)).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        let op = if matches!(options.mode, CopyMode::Create) { StoreOp::Create } else { StoreOp::Copy };
        self.run(op, to, || None, self.inner.copy_opts(from, to, options)).await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use object_store::memory::InMemory;

    use super::*;
    use crate::storage::{CheckpointStorage, Created, StorageError};

    /// Answers from a script: (before, after) for each operation in turn, then `Proceed`.
    #[derive(Debug)]
    struct Script(Mutex<Vec<(FaultAction, FaultAction)>>);

    impl StoreFaults for Script {
        fn before(&self, _: StoreOp, _: &Path) -> BoxFuture<'static, FaultAction> {
            let next = self.0.lock().unwrap().first().map_or(FaultAction::Proceed, |step| step.0);
            if next != FaultAction::Proceed {
                self.0.lock().unwrap().remove(0);
            }
            Box::pin(async move { next })
        }

        fn after(&self, _: StoreOp, _: &Path, _: bool) -> BoxFuture<'static, FaultAction> {
            let mut steps = self.0.lock().unwrap();
            let next = if steps.is_empty() { FaultAction::Proceed } else { steps.remove(0).1 };
            Box::pin(async move { next })
        }
    }

    fn scripted(steps: &[(FaultAction, FaultAction)]) -> CheckpointStorage {
        let script = Arc::new(Script(Mutex::new(steps.to_vec())));
        CheckpointStorage::over(Arc::new(FaultyStore::new(Arc::new(InMemory::new()), script)), "faulty://")
    }

    #[tokio::test]
    async fn a_failure_before_leaves_nothing_and_one_after_leaves_the_object() {
        use FaultAction::{Fail, Proceed};
        let storage = scripted(&[(Fail, Proceed), (Proceed, Fail)]);
        storage.create("a", Bytes::from_static(b"1")).await.unwrap_err();
        let error = storage.create("a", Bytes::from_static(b"2")).await.unwrap_err();
        assert!(matches!(error, StorageError::Operation { operation: "create", .. }));
        assert_eq!(storage.get("a").await.unwrap(), Some(Bytes::from_static(b"2")));
        assert_eq!(storage.create("a", Bytes::new()).await.unwrap(), Created::AlreadyExists);
    }

    #[tokio::test]
    async fn a_store_that_lies_about_the_second_create_fails_the_preflight() {
        use FaultAction::{Proceed, SayDone};
        // Once it may be another start that has swept the first object away.
        let storage = scripted(&[(Proceed, Proceed), (SayDone, Proceed), (Proceed, Proceed)].repeat(6));
        let error = storage.preflight().await.unwrap_err();
        assert!(matches!(error, StorageError::NoCreateIfAbsent { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn a_store_that_refuses_puts_is_not_writable() {
        let storage = scripted(&[(FaultAction::Fail, FaultAction::Proceed)]);
        let error = storage.preflight().await.unwrap_err();
        assert!(matches!(error, StorageError::NotWritable { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn lists_and_deletes_go_through_the_policy() {
        use FaultAction::{Fail, Proceed, SayNotFound};
        let storage =
            scripted(&[(Proceed, Proceed), (SayNotFound, Proceed), (Fail, Proceed), (Fail, Proceed)]);
        storage.put("x/1", Bytes::new()).await.unwrap();
        assert_eq!(storage.list("x").await.unwrap(), Vec::<String>::new());
        storage.list("x").await.unwrap_err();
        storage.delete("x/1").await.unwrap_err();
        assert_eq!(storage.list("x").await.unwrap(), ["x/1"]);
    }
}
