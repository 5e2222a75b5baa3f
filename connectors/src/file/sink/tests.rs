//! The promises of the file sink, each as a test. A crash is everything dropped and the folder looked at anew.

mod crashes;
mod jobs;
mod model;
mod parts;
mod refusals;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use tidegate_engine::api::{Committer, Prepared, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter};
use tidegate_engine::element::Batch;
use tidegate_engine::ids::{AttemptId, CheckpointId, Lineage};
use tidegate_engine::operator::{CommitOutcome, TransactionName, TransactionScope};
use tidegate_engine::parts::WrittenParts;

use super::*;
use crate::testing::{self, Bench};

type Sink = FileSink<u64, TextLines>;

struct Scene {
    bench: Bench,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { bench: Bench::new(), folder: tempfile::tempdir().unwrap() }
    }

    /// In memory where there is such a place: these tests sync many thousand times.
    fn in_memory() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        Self { bench: Bench::new(), folder }
    }

    fn out(&self) -> PathBuf {
        self.folder.path().join("out")
    }

    fn sink(&self) -> Sink {
        FileSink::text(self.out())
    }

    fn context(&self, name: TransactionName, parallelism: u32) -> TwoPhaseContext {
        TwoPhaseContext {
            connector: self.bench.context(),
            subtask: name.subtask,
            parallelism,
            name,
            places: 4,
            restored_attempt: AttemptId(0),
        }
    }

    async fn writer(&self, sink: &Sink) -> FileSinkWriter<u64, TextLines> {
        sink.open_writer(self.context(name(0, 1), 1)).await.unwrap()
    }

    async fn committer(&self) -> FileSinkCommitter {
        self.sink().open_committer(self.context(name(0, 1), 1)).await.unwrap()
    }

    /// Prepares one transaction and lets everything go.
    async fn prepared(&self, sink: &Sink, name: TransactionName, records: &[u64]) -> Prepared<WrittenParts> {
        let mut writer = self.writer(sink).await;
        writer.write(&name, Batch::of(records.to_vec())).await.unwrap();
        let committable = writer.prepare().await.unwrap().unwrap();
        Prepared { closed_by: CheckpointId(name.opened_after.0 + 1), name, committable }
    }

    async fn commit(&self, item: &Prepared<WrittenParts>) -> CommitOutcome {
        self.committer().await.commit(item).await.unwrap()
    }

    fn finished(&self) -> Vec<u64> {
        numbers(&self.out())
    }
}

/// Every file below a folder, with its content, by its path from there.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        let Ok(entries) = fs::read_dir(&next) else { continue };
        for path in entries.map(|entry| entry.unwrap().path()) {
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let content = fs::read(&path).unwrap();
                    found.insert(path.strip_prefix(folder).unwrap().to_owned(), content);
                }
            }
        }
    }
    found
}

/// Finished files: what a reader takes that leaves hidden folders alone.
fn finished_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = files_below(folder);
    files.retain(|path, _| !path.starts_with(".tidegate"));
    files
}

/// Open and pending files.
fn staged_files(folder: &Path) -> Vec<String> {
    let staged = files_below(&folder.join(".tidegate"));
    staged.into_keys().map(|path| path.file_name().unwrap().to_str().unwrap().to_owned()).collect()
}

/// The numbers in finished files, sorted.
fn numbers(folder: &Path) -> Vec<u64> {
    let files = finished_files(folder);
    let lines = files.values().flat_map(|content| {
        assert!(content.ends_with(b"\n"), "a finished file is never empty and never torn");
        std::str::from_utf8(content).unwrap().lines()
    });
    let mut numbers: Vec<u64> = lines.map(|line| line.parse().unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

fn name(opened_after: u64, attempt: u64) -> TransactionName {
    TransactionName {
        scope: TransactionScope {
            job: "numbers".into(),
            log_id: "0123456789abcdef0123456789abcdef".into(),
            lineage: Lineage(1),
            uid: "sink".into(),
        },
        subtask: 0,
        opened_after: CheckpointId(opened_after),
        attempt: AttemptId(attempt),
    }
}

#[test]
fn a_prepared_transaction_survives_a_crash_and_is_committed_by_the_next_process() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.sink(), name(0, 1), &[1, 2]).await;
        assert!(finished_files(&scene.out()).is_empty(), "nothing is visible before the commit");
        assert_eq!(staged_files(&scene.out()), ["1~0~0~1~0.pending"]);
        assert_eq!(scene.commit(&item).await, CommitOutcome::Committed);
        assert_eq!(scene.finished(), [1, 2]);
        assert!(staged_files(&scene.out()).is_empty());
        let files = finished_files(&scene.out());
        let path = "part~numbers~sink~0123456789abcdef0123456789abcdef~1~0~0~1~0.txt";
        assert_eq!(files.keys().collect::<Vec<_>>(), [Path::new(path)]);
    });
}

#[test]
fn a_second_commit_changes_nothing() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.sink(), name(0, 1), &[1, 2]).await;
        assert_eq!(scene.commit(&item).await, CommitOutcome::Committed);
        for _ in 0..3 {
            assert_eq!(scene.commit(&item).await, CommitOutcome::AlreadyCommitted);
        }
        assert_eq!(scene.finished(), [1, 2]);
    });
}

#[test]
fn a_part_that_was_linked_and_not_unlinked_is_committed_and_tidied_up() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.sink(), name(0, 1), &[1, 2]).await;
        let part = &item.committable.parts[0];
        fs::hard_link(scene.out().join(&part.pending), scene.out().join(&part.finished)).unwrap();
        assert_eq!(scene.commit(&item).await, CommitOutcome::AlreadyCommitted);
        assert!(staged_files(&scene.out()).is_empty());
        assert_eq!(scene.finished(), [1, 2]);
    });
}

#[test]
fn a_part_removed_by_hand_between_prepare_and_commit_is_lost_and_none_of_its_transaction_is_published() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.sink().roll_at_bytes(4);
        let item = scene.prepared(&sink, name(0, 1), &[1, 2, 3, 4]).await;
        assert_eq!(item.committable.parts.len(), 2);
        fs::remove_file(scene.out().join(&item.committable.parts[1].pending)).unwrap();
        let CommitOutcome::Lost { reason } = scene.commit(&item).await else { panic!("not lost") };
        assert!(reason.contains("~1~0~0~1~1.txt with 2 records is neither pending nor finished"), "{reason}");
        assert!(finished_files(&scene.out()).is_empty());
        let other = Scene::new();
        assert!(matches!(other.commit(&item).await, CommitOutcome::Lost { .. }), "another folder");
    });
}

#[test]
fn a_pending_part_that_was_changed_is_lost_and_not_published() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.sink(), name(0, 1), &[10, 20]).await;
        fs::write(scene.out().join(&item.committable.parts[0].pending), "10\n").unwrap();
        let CommitOutcome::Lost { reason } = scene.commit(&item).await else { panic!("not lost") };
        assert!(reason.contains("its pending file has 3 bytes, and had 6"), "{reason}");
        assert!(finished_files(&scene.out()).is_empty());
    });
}

#[test]
fn what_has_the_name_of_a_finished_file_is_never_overwritten() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.sink(), name(0, 1), &[1, 2]).await;
        let finished = scene.out().join(&item.committable.parts[0].finished);
        fs::write(&finished, "mine").unwrap();
        let error = scene.committer().await.commit(&item).await.unwrap_err();
        assert!(!error.restartable);
        assert!(error.message.contains("a finished file is never overwritten"), "{}", error.message);
        assert_eq!(fs::read(&finished).unwrap(), b"mine");
        // A copy of the pending file, as a restored backup leaves it, is the file itself.
        fs::write(&finished, "1\n2\n").unwrap();
        assert_eq!(scene.commit(&item).await, CommitOutcome::AlreadyCommitted);
        assert!(staged_files(&scene.out()).is_empty());
    });
}

#[test]
fn a_folder_that_has_the_name_of_a_finished_file_is_an_error_and_not_a_commit() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.sink(), name(0, 1), &[1, 2]).await;
        fs::create_dir(scene.out().join(&item.committable.parts[0].finished)).unwrap();
        let error = scene.committer().await.commit(&item).await.unwrap_err();
        assert!(error.message.contains("move the one that is in the way"), "{}", error.message);
        assert_eq!(staged_files(&scene.out()).len(), 1);
    });
}

#[test]
fn listing_finds_left_overs_of_any_attempt_and_only_of_this_sink() {
    testing::run(async {
        let scene = Scene::new();
        let mut names = vec![name(3, 1), name(3, 2), name(9, 1)];
        names[2].scope.lineage = Lineage(2);
        names[2].subtask = 5;
        let mut foreign = vec![name(3, 1); 3];
        foreign[0].scope.uid = "sink2".into();
        foreign[1].scope.job = "numbers2".into();
        foreign[2].scope.log_id = "0123".into();
        for name in names.iter().chain(&foreign) {
            scene.prepared(&scene.sink(), name.clone(), &[1]).await;
        }
        let mut committer = scene.committer().await;
        assert_eq!(committer.list().await.unwrap(), names);
        committer.roll_back(&names[0]).await.unwrap();
        committer.roll_back(&names[0]).await.unwrap();
        assert_eq!(committer.list().await.unwrap(), names[1..]);
        assert_eq!(staged_files(&scene.out()).len(), 5);
    });
}

#[test]
fn the_clean_up_of_1_spares_11_and_what_is_no_part() {
    testing::run(async {
        let scene = Scene::new();
        let (one, eleven) = (name(1, 1), name(1, 11));
        let mut other = name(1, 1);
        other.subtask = 11;
        for name in [&one, &eleven, &other] {
            scene.prepared(&scene.sink(), name.clone(), &[1]).await;
        }
        let staging = scene.out().join(".tidegate/numbers/0123456789abcdef0123456789abcdef/sink");
        for foreign in ["notes.txt", "1~0~1~1~0.pending.bak", "1~0~1~1.pending"] {
            fs::write(staging.join(foreign), "x").unwrap();
        }
        scene.committer().await.roll_back(&one).await.unwrap();
        let mut left = staged_files(&scene.out());
        left.sort();
        let spared = [
            "1~0~1~1.pending",
            "1~0~1~11~0.pending",
            "1~0~1~1~0.pending.bak",
            "1~11~1~1~0.pending",
            "notes.txt",
        ];
        assert_eq!(left, spared);
    });
}

#[test]
fn a_roll_back_never_touches_a_finished_file() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.sink(), name(0, 1), &[1, 2]).await;
        let part = &item.committable.parts[0];
        fs::hard_link(scene.out().join(&part.pending), scene.out().join(&part.finished)).unwrap();
        scene.committer().await.roll_back(&item.name).await.unwrap();
        assert_eq!((scene.finished(), staged_files(&scene.out())), (vec![1, 2], Vec::new()));
    });
}
