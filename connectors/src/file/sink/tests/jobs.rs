//! Whole jobs over the file sink: a full disk, an orderly cancel, another parallelism, a part that somebody removed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_engine::api::{ConnectorError, StreamEnvironment};
use tidegate_engine::checkpoint::CheckpointConfig;
use tidegate_engine::error::EngineError;
use tidegate_engine::execution::{ExecutionConfig, ExecutionNotice, JobOutcome, LocalRunner, RestoreFrom};
use tidegate_engine::jobmanager::{MasterNotice, RestartStrategy};
use tidegate_engine::parts::{PartFolder, Published};
use tidegate_state::CheckpointStorage;

use super::*;
use crate::datagen::Datagen;

const RECORDS: u64 = 20_000;

/// What a run came to.
struct Run {
    outcome: Result<JobOutcome, EngineError>,
    restarts: u32,
    newest: CheckpointId,
}

/// Runs numbers into a sink until the end, or until so many checkpoints are complete.
fn run<S>(scene: &Scene, sink: S, parallelism: u32, until: Option<u32>) -> Run
where
    S: TwoPhaseSink<Record = u64>,
{
    run_from(scene, sink, parallelism, until, RestoreFrom::Latest)
}

fn run_from<S>(scene: &Scene, sink: S, parallelism: u32, until: Option<u32>, restore: RestoreFrom) -> Run
where
    S: TwoPhaseSink<Record = u64>,
{
    let env = StreamEnvironment::new();
    // Slow enough that several checkpoints fall into it; a run that is to be canceled must not be over before, also on a busy machine.
    let rate = if until.is_some() { 8_000 } else { 80_000 };
    let source = Datagen::new(|index| index).bounded(RECORDS).rate_per_second(rate);
    let _ = env.source("numbers", source).rebalance().sink("sink", sink);
    let graph = env.into_graph("numbers", parallelism, 16).unwrap();
    let checkpoints = CheckpointConfig { interval_ms: 15, ..CheckpointConfig::default() };
    let restart = RestartStrategy::ExponentialDelay { initial_ms: 5, max_ms: 50, reset_after_ms: 600_000 };
    let config =
        ExecutionConfig { checkpoints, restart, restore, threads: Some(2), ..ExecutionConfig::default() };
    let storage = CheckpointStorage::open(scene.folder.path().join("checkpoints").to_str().unwrap()).unwrap();
    let mut runner = LocalRunner::new(graph, config, Some(storage)).unwrap();
    let cancel = runner.cancel_handle();
    let (mut completed, mut restarts, mut newest) = (0, 0, CheckpointId(0));
    let outcome = runner.run(|notice| match notice {
        ExecutionNotice::Master(MasterNotice::CheckpointCompleted(stats)) => {
            completed += 1;
            newest = stats.id;
            if until == Some(completed) {
                cancel.cancel();
            }
        }
        ExecutionNotice::Restarting { .. } => restarts += 1,
        _ => {}
    });
    Run { outcome, restarts, newest }
}

fn check_end(scene: &Scene) {
    assert_eq!(scene.finished(), (0..RECORDS).collect::<Vec<_>>());
    assert!(staged_files(&scene.out()).is_empty());
}

/// A sink whose disk is full once, in the middle of a write, and whose disk has no room for a name once.
#[derive(Clone)]
struct Cramped {
    sink: Sink,
    /// Bytes until the disk is full, or for ever not.
    room: Arc<AtomicU64>,
    links_refused: Arc<AtomicU64>,
}

#[derive(Clone)]
struct CrampedFolder {
    disk: DiskFolder,
    of: Cramped,
}

impl TwoPhaseSink for Cramped {
    type Record = u64;
    type Committable = WrittenParts;
    type Writer = FileSinkWriter<u64, TextLines, CrampedFolder>;
    type Committer = FileSinkCommitter<CrampedFolder>;

    fn open_committer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self::Committer, ConnectorError>> + Send + use<> {
        let parts =
            tidegate_engine::parts::PartCommitter::new(self.folder(&context), context.name.scope.clone());
        std::future::ready(Ok(FileSinkCommitter::new(parts)))
    }

    fn open_writer(
        &self,
        context: TwoPhaseContext,
    ) -> impl Future<Output = Result<Self::Writer, ConnectorError>> + Send + use<> {
        std::future::ready(Ok(self.sink.writer_over(self.folder(&context), context)))
    }
}

impl Cramped {
    fn folder(&self, context: &TwoPhaseContext) -> CrampedFolder {
        CrampedFolder { disk: self.sink.folder(context), of: self.clone() }
    }
}

impl PartFolder for CrampedFolder {
    type File = Arc<fs::File>;

    async fn create(&self, path: &str) -> Result<Self::File, ConnectorError> {
        self.disk.create(path).await
    }

    async fn append(&self, file: &mut Self::File, bytes: Vec<u8>) -> Result<(), ConnectorError> {
        let room = self.of.room.load(Ordering::Relaxed);
        let fits = usize::try_from(room).unwrap();
        if fits >= bytes.len() {
            self.of.room.fetch_sub(bytes.len() as u64, Ordering::Relaxed);
            return self.disk.append(file, bytes).await;
        }
        self.of.room.store(u64::from(u32::MAX), Ordering::Relaxed);
        self.disk.append(file, bytes[..fits].to_vec()).await?;
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
        Err(FileSinkError::of(Path::new("/data/out"), "writing a part in", Path::new("/data/out"), full)
            .into())
    }

    async fn sync(&self, file: Self::File) -> Result<(), ConnectorError> {
        self.disk.sync(file).await
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), ConnectorError> {
        self.disk.rename(from, to).await
    }

    async fn length(&self, path: &str) -> Result<Option<u64>, ConnectorError> {
        self.disk.length(path).await
    }

    async fn is_same(&self, one: &str, other: &str) -> Result<Option<bool>, ConnectorError> {
        self.disk.is_same(one, other).await
    }

    async fn publish(&self, pending: &str, finished: &str) -> Result<Published, ConnectorError> {
        if self.of.links_refused.fetch_add(1, Ordering::Relaxed) == 2 {
            return Ok(Published::NoRoom { reason: "no room for a name".to_owned() });
        }
        self.disk.publish(pending, finished).await
    }

    async fn settle(&self, finished: &str) -> Result<(), ConnectorError> {
        self.disk.settle(finished).await
    }

    async fn remove(&self, path: &str) -> Result<(), ConnectorError> {
        self.disk.remove(path).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, ConnectorError> {
        self.disk.list(folder).await
    }
}

#[test]
fn a_disk_that_is_full_in_the_middle_of_a_write_restarts_the_job_and_nothing_is_lost_or_doubled() {
    for parallelism in [1, 3] {
        let scene = Scene::new();
        let (room, links_refused) = (Arc::new(AtomicU64::new(50_000)), Arc::new(AtomicU64::new(0)));
        let sink = Cramped { sink: scene.sink(), room: Arc::clone(&room), links_refused };
        let run = run(&scene, sink, parallelism, None);
        assert_eq!((run.outcome.unwrap(), run.restarts), (JobOutcome::Finished, 1));
        check_end(&scene);
    }
}

#[test]
fn a_full_disk_without_restarts_names_the_folder_and_the_remedy() {
    let full = std::io::Error::from(std::io::ErrorKind::StorageFull);
    let error: ConnectorError =
        FileSinkError::of(Path::new("/data/out"), "writing a part in", Path::new("/data/out"), full).into();
    assert!(error.restartable);
    let text = error.full_text();
    assert!(text.contains("writing a part in /data/out failed: the disk is full; make room"), "{text}");
}

#[test]
fn field_case_101_a_job_ends_with_its_tail_finished_and_no_empty_file_though_no_interval_has_passed() {
    let scene = Scene::new();
    let env = StreamEnvironment::new();
    let _ = env.source("numbers", Datagen::new(|index| index).bounded(10)).sink("sink", scene.sink());
    let graph = env.into_graph("numbers", 3, 16).unwrap();
    let checkpoints = CheckpointConfig { interval_ms: 600_000, ..CheckpointConfig::default() };
    let config = ExecutionConfig { checkpoints, threads: Some(2), ..ExecutionConfig::default() };
    let storage = CheckpointStorage::open(scene.folder.path().join("checkpoints").to_str().unwrap()).unwrap();
    let outcome = LocalRunner::new(graph, config, Some(storage)).unwrap().run(|_| {}).unwrap();
    assert_eq!(outcome, JobOutcome::Finished);
    assert_eq!(scene.finished(), (0..10).collect::<Vec<_>>());
    assert!(finished_files(&scene.out()).values().all(|content| !content.is_empty()));
    assert!(staged_files(&scene.out()).is_empty());
}

#[test]
fn canceled_in_order_and_started_again_with_other_parallelism_it_is_exactly_once() {
    let scene = Scene::new();
    let sink = || scene.sink().bucket_by(|n| format!("b{}", n % 3)).roll_at_bytes(1_000);
    for (parallelism, until) in [(1, Some(3)), (4, Some(3)), (3, None)] {
        let outcome = run(&scene, sink(), parallelism, until).outcome.unwrap();
        let expected = if until.is_some() { JobOutcome::Canceled } else { JobOutcome::Finished };
        assert_eq!(outcome, expected);
        assert!(staged_files(&scene.out()).is_empty(), "an orderly end leaves nothing staged");
        let numbers = scene.finished();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "twice");
    }
    check_end(&scene);
}

#[test]
fn field_case_97_after_a_rewind_no_part_is_missing_and_only_what_it_passes_over_is_there_twice() {
    let scene = Scene::new();
    let first = run(&scene, scene.sink(), 2, Some(5));
    assert_eq!(first.outcome.unwrap(), JobOutcome::Canceled);
    let before = finished_files(&scene.out());
    let published = scene.finished();
    let older = CheckpointId(first.newest.0 - 1);
    let second = run_from(&scene, scene.sink(), 3, None, RestoreFrom::Rewind(older));
    assert_eq!(second.outcome.unwrap(), JobOutcome::Finished);
    let now = finished_files(&scene.out());
    assert!(before.iter().all(|(path, content)| now.get(path) == Some(content)), "an older part has changed");
    let numbers = scene.finished();
    let mut distinct = numbers.clone();
    distinct.dedup();
    assert_eq!(distinct, (0..RECORDS).collect::<Vec<_>>());
    let twice: Vec<u64> = numbers.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]).collect();
    let was_published = |number: &u64| published.binary_search(number).is_ok();
    assert!(!twice.is_empty() && twice.iter().all(was_published), "{} numbers twice", twice.len());
    assert_eq!(numbers.len(), distinct.len() + twice.len(), "nothing is there three times");
    assert!(staged_files(&scene.out()).is_empty());
}
