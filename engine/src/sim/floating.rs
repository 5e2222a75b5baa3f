//! An object store in which a put may float: it is answered with an error, and applied later, also after a failover.
//!
//! It also remembers every log entry that ever stood, since a cleaner deletes some of them, and which puts were uncertain.
//!
//! Owns: the objects, puts afloat, the history of the log. Does not own: other faults (see [`super::store`]).
//! Runs on: the simulation's thread.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use futures::stream::BoxStream;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};

use super::clock::SimClock;
use super::coverage::{Area, SharedCoverage};
use super::rng::Rng;

/// A floating put is applied after so many microseconds at most.
const AFLOAT_US_MAX: u64 = 3_000_000;

/// What made a put uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PutFault {
    /// Not applied, answered with an error.
    Refused,
    /// Applied, answered with an error.
    AppliedWithError,
    /// Answered with an error, applied later.
    Floated,
}

/// Which puts of log entries were uncertain; shared with the policy of faults.
#[derive(Clone, Debug, Default)]
pub struct EntryPuts {
    /// Guards the set; one thread uses it.
    faulted: Arc<Mutex<BTreeSet<(String, PutFault)>>>,
}

impl EntryPuts {
    /// A put of `path` is uncertain.
    pub fn faulted(&self, path: &Path, fault: PutFault) {
        if is_entry(path) {
            self.faulted.lock().unwrap_or_else(PoisonError::into_inner).insert((path.to_string(), fault));
        }
    }
}

fn is_entry(path: &Path) -> bool {
    path.as_ref().strip_prefix("log/").is_some_and(|name| name != "id")
}

#[derive(Debug)]
struct Afloat {
    due: u64,
    path: Path,
    payload: PutPayload,
    create: bool,
}

/// See the module.
#[derive(Debug)]
pub struct FloatingStore {
    inner: InMemory,
    clock: Arc<SimClock>,
    /// One put in so many floats.
    float_one_in: u64,
    calm: Arc<AtomicBool>,
    puts: EntryPuts,
    coverage: SharedCoverage,
    /// Guards what only one thread uses.
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    rng: Rng,
    afloat: Vec<Afloat>,
    log: BTreeMap<String, Bytes>,
    applied_late: BTreeSet<String>,
}

impl FloatingStore {
    /// An empty store.
    pub fn new(
        clock: Arc<SimClock>,
        rng: Rng,
        float_one_in: u64,
        calm: Arc<AtomicBool>,
        puts: EntryPuts,
        coverage: SharedCoverage,
    ) -> Self {
        let state = State { rng, afloat: Vec::new(), log: BTreeMap::new(), applied_late: BTreeSet::new() };
        Self { inner: InMemory::new(), clock, float_one_in, calm, puts, coverage, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Applies what has floated long enough.
    pub fn settle(&self) {
        let now = self.clock.micros();
        if self.state().afloat.iter().all(|a| a.due > now) {
            return;
        }
        let (due, rest): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.state().afloat).into_iter().partition(|a| a.due <= now);
        self.state().afloat = rest;
        for Afloat { path, payload, create, .. } in due {
            let mode = if create { PutMode::Create } else { PutMode::Overwrite };
            let options = PutOptions { mode, ..PutOptions::default() };
            if let Some(Ok(_)) = self.put_now(&path, payload, options).now_or_never() {
                self.state().applied_late.insert(path.to_string());
                self.puts.faulted(&path, PutFault::Floated);
            }
        }
    }

    /// When the next put afloat is applied.
    pub fn next_due(&self) -> Option<u64> {
        self.state().afloat.iter().map(|a| a.due).min()
    }

    /// Every log entry that ever stood, by path.
    pub fn log_history(&self) -> BTreeMap<String, Bytes> {
        self.state().log.clone()
    }

    /// Whether a put of this object was applied late.
    pub fn was_applied_late(&self, path: &str) -> bool {
        self.state().applied_late.contains(path)
    }

    /// Paths of all objects.
    pub fn paths(&self) -> Vec<String> {
        use futures::TryStreamExt;
        let listed = self.inner.list(None).try_collect::<Vec<_>>().now_or_never();
        let mut paths: Vec<_> =
            listed.and_then(Result::ok).unwrap_or_default().iter().map(|o| o.location.to_string()).collect();
        paths.sort_unstable();
        paths
    }

    /// Counts how uncertain puts of entries were settled: something stands at each of these numbers.
    pub fn count_settled_puts(&self) {
        let log = self.log_history();
        let faulted = self.puts.faulted.lock().unwrap_or_else(PoisonError::into_inner);
        for (path, fault) in faulted.iter().filter(|(path, _)| log.contains_key(path)) {
            let _ = path;
            self.coverage.count(
                Area::UncertainPut,
                match fault {
                    PutFault::Refused => "refused",
                    PutFault::AppliedWithError => "applied, answered with an error",
                    PutFault::Floated => "applied late",
                },
            );
        }
    }

    async fn put_now(&self, path: &Path, payload: PutPayload, options: PutOptions) -> Result<PutResult> {
        let bytes = is_entry(path).then(|| Bytes::from(payload.clone()));
        let answer = self.inner.put_opts(path, payload, options).await?;
        if let Some(bytes) = bytes {
            self.state().log.insert(path.to_string(), bytes);
        }
        Ok(answer)
    }

    fn floats(&self, path: &Path, payload: &PutPayload, create: bool) -> bool {
        let mut state = self.state();
        if !state.rng.one_in(self.float_one_in) || self.calm.load(Ordering::Relaxed) {
            return false;
        }
        let due = self.clock.micros() + state.rng.below(AFLOAT_US_MAX);
        state.afloat.push(Afloat { due, path: path.clone(), payload: payload.clone(), create });
        self.coverage.count(Area::Injected, "put afloat");
        true
    }
}

/// The answer to a put that floats.
#[derive(Debug, thiserror::Error)]
#[error("no answer in time for {path}")]
struct NoAnswer {
    path: String,
}

impl fmt::Display for FloatingStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FloatingStore")
    }
}

#[async_trait]
impl ObjectStore for FloatingStore {
    async fn put_opts(&self, location: &Path, payload: PutPayload, opts: PutOptions) -> Result<PutResult> {
        if self.floats(location, &payload, matches!(opts.mode, PutMode::Create)) {
            let source = Box::new(NoAnswer { path: location.to_string() });
            return Err(Error::Generic { store: "floating", source });
        }
        self.put_now(location, payload, opts).await
    }

    async fn put_multipart_opts(
        &self,
        location: &Path,
        opts: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(location, opts).await
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> Result<GetResult> {
        self.inner.get_opts(location, options).await
    }

    async fn get_ranges(&self, location: &Path, ranges: &[Range<u64>]) -> Result<Vec<Bytes>> {
        self.inner.get_ranges(location, ranges).await
    }

    fn delete_stream(&self, locations: BoxStream<'static, Result<Path>>) -> BoxStream<'static, Result<Path>> {
        self.inner.delete_stream(locations)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}
