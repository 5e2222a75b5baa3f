//! The protocol over a folder in memory: how parts are cut, and commits that meet somebody else between look and link. Crashes are
//! tried by the simulation and, on a real disk, by the file connector's tests.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::*;
use crate::api::{ConnectorError, Prepared};
use crate::clock::ManualClock;
use crate::ids::{AttemptId, CheckpointId, Lineage};
use crate::operator::{CommitOutcome, TransactionName, TransactionScope};
use crate::sim::file_system::{FileId, FileSystem};

type Hook = Box<dyn FnMut(&FileSystem) -> Option<Published> + Send>;

/// A folder in memory; `before_link` may do something, or answer, in place of each link.
#[derive(Clone, Default)]
struct Memory {
    files: FileSystem,
    before_link: Arc<Mutex<Option<Hook>>>,
}

impl PartFolder for Memory {
    type File = FileId;

    async fn create(&self, path: &str) -> Result<FileId, ConnectorError> {
        self.files.create(path).ok_or_else(|| ConnectorError::fatal("it is there already"))
    }

    async fn append(&self, file: &mut FileId, bytes: Vec<u8>) -> Result<(), ConnectorError> {
        self.files.append(*file, &bytes);
        Ok(())
    }

    async fn sync(&self, _file: FileId) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn rename(&self, from: &str, to: &str) -> Result<(), ConnectorError> {
        self.files.rename(from, to).then_some(()).ok_or_else(|| ConnectorError::transient("it is gone"))
    }

    async fn length(&self, path: &str) -> Result<Option<u64>, ConnectorError> {
        Ok(self.files.length(path))
    }

    async fn is_same(&self, one: &str, other: &str) -> Result<Option<bool>, ConnectorError> {
        Ok(self.files.is_same(one, other))
    }

    async fn publish(&self, pending: &str, finished: &str) -> Result<Published, ConnectorError> {
        let answer = self.before_link.lock().unwrap().as_mut().and_then(|hook| hook(&self.files));
        Ok(answer.unwrap_or_else(|| self.files.link(pending, finished)))
    }

    async fn settle(&self, _finished: &str) -> Result<(), ConnectorError> {
        Ok(())
    }

    async fn remove(&self, path: &str) -> Result<(), ConnectorError> {
        self.files.remove(path);
        Ok(())
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, ConnectorError> {
        Ok(self.files.list(folder))
    }
}

impl Memory {
    fn hooked(&self, hook: impl FnMut(&FileSystem) -> Option<Published> + Send + 'static) {
        *self.before_link.lock().unwrap() = Some(Box::new(hook));
    }

    fn writer(&self, limits: PartLimits) -> PartWriter<Self> {
        PartWriter::new(self.clone(), limits, "txt", ManualClock::shared())
    }

    fn commit(&self, item: &Prepared<WrittenParts>) -> Result<CommitOutcome, ConnectorError> {
        run(PartCommitter::new(self.clone(), item.name.scope.clone()).commit(item))
    }

    /// Two parts of one transaction.
    fn two_parts(&self) -> Prepared<WrittenParts> {
        let limits = PartLimits { part_bytes_max: 4, ..PartLimits::default() };
        let committable = run(async {
            let mut writer = self.writer(limits);
            writer.begin_batch(&name(1)).await.unwrap();
            for line in ["a", "b", "c", "d"] {
                writer.write_line("", line.as_bytes()).await.unwrap();
            }
            writer.prepare().await.unwrap().unwrap()
        });
        Prepared { name: name(1), closed_by: CheckpointId(1), committable }
    }

    fn bytes(&self, part: &WrittenPart) -> (Option<u64>, Option<u64>) {
        (self.files.length(&part.pending), self.files.length(&part.finished))
    }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

fn name(attempt: u64) -> TransactionName {
    let scope =
        TransactionScope { job: "j".into(), log_id: "1f".into(), lineage: Lineage(1), uid: "u".into() };
    TransactionName { scope, subtask: 0, opened_after: CheckpointId(0), attempt: AttemptId(attempt) }
}

#[test]
fn a_part_is_closed_by_size_and_the_least_recent_one_makes_room_for_another_bucket() {
    let folder = Memory::default();
    let limits = PartLimits { part_bytes_max: 6, open_parts_max: 2, ..PartLimits::default() };
    let parts = run(async {
        let mut writer = folder.writer(limits);
        writer.begin_batch(&name(1)).await.unwrap();
        for (bucket, line) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("a", "5"), ("b", "6")] {
            writer.write_line(bucket, line.as_bytes()).await.unwrap();
        }
        writer.prepare().await.unwrap().unwrap().parts
    });
    let cut: Vec<_> = parts.iter().map(|p| (p.finished.split('/').next().unwrap(), p.records)).collect();
    // `b` makes room for `c`; `a` is full; both that are left are closed by the barrier.
    assert_eq!(cut, [("b", 1), ("a", 3), ("b", 1), ("c", 1)]);
}

#[test]
fn bytes_are_held_back_until_there_are_enough_of_them() {
    let folder = Memory::default();
    let limits =
        PartLimits { held_bytes_max: 4, part_age_max: Duration::from_secs(9), ..PartLimits::default() };
    let open = PartName { transaction: name(1), part: 0 }.staged(PartStage::Open);
    run(async {
        let mut writer = folder.writer(limits);
        writer.begin_batch(&name(1)).await.unwrap();
        writer.write_line("", b"x").await.unwrap();
        assert_eq!(folder.files.length(&open), None);
        writer.write_line("", b"y").await.unwrap();
        assert_eq!(folder.files.length(&open), Some(4));
        writer.discard().await.unwrap();
        assert_eq!(folder.files.length(&open), None);
    });
}

#[test]
fn a_commit_that_another_one_overtakes_between_look_and_link_finds_it_committed() {
    let folder = Memory::default();
    let item = folder.two_parts();
    let (other, same) = (Memory { files: folder.files.clone(), ..Memory::default() }, item.clone());
    let mut done = false;
    folder.hooked(move |_| {
        if !std::mem::replace(&mut done, true) {
            assert_eq!(
                std::thread::scope(|s| s.spawn(|| other.commit(&same)).join()).unwrap().unwrap(),
                CommitOutcome::Committed
            );
        }
        None
    });
    assert_eq!(folder.commit(&item).unwrap(), CommitOutcome::AlreadyCommitted);
    assert!(item.committable.parts.iter().all(|part| folder.bytes(part) == (None, Some(4))));
}

#[test]
fn a_part_removed_between_look_and_link_is_lost() {
    let folder = Memory::default();
    let item = folder.two_parts();
    let pending = item.committable.parts[0].pending.clone();
    folder.hooked(move |files| {
        files.remove(&pending);
        None
    });
    assert!(matches!(folder.commit(&item).unwrap(), CommitOutcome::Lost { .. }));
    assert_eq!(folder.bytes(&item.committable.parts[1]), (Some(4), None), "nothing more is published");
}

#[test]
fn a_disk_without_room_for_the_second_name_is_asked_again_and_the_first_is_kept() {
    let folder = Memory::default();
    let item = folder.two_parts();
    let mut links = 0;
    folder.hooked(move |_| {
        links += 1;
        (links == 2).then(|| Published::NoRoom { reason: "full".to_owned() })
    });
    assert!(matches!(folder.commit(&item).unwrap(), CommitOutcome::RetryAfter { .. }));
    assert_eq!(
        folder.bytes(&item.committable.parts[0]),
        (Some(4), Some(4)),
        "no pending name goes before all are linked"
    );
    assert_eq!(folder.commit(&item).unwrap(), CommitOutcome::Committed);
    assert!(item.committable.parts.iter().all(|part| folder.bytes(part) == (None, Some(4))));
}

#[test]
fn a_link_that_is_refused_again_and_again_names_its_part() {
    let folder = Memory::default();
    let item = folder.two_parts();
    let mut links = 0;
    folder.hooked(move |_| {
        links += 1;
        (links > 1).then_some(Published::Taken)
    });
    let error = folder.commit(&item).unwrap_err();
    assert!(error.message.starts_with(&item.committable.parts[1].finished), "{}", error.message);
}
