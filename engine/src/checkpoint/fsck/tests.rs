//! Folders laid out by hand, on disk and in memory, with one thing wrong in each.
//!
//! Owns: the cases. Does not own: what it tests. Runs on: the test's thread.

use bytes::Bytes;
use tempfile::TempDir;
use tidegate_state::{CheckpointStorage, KeyGroupRange, MaxParallelism, StateFileWriter};

use super::{Checked, CheckpointFolder, Finding, FsckError};
use crate::checkpoint::commit_log::{
    ClaimBase, EntryBody, LogClient, LogEntry, Nonce, NonceSource, path_of, sealed,
};
use crate::checkpoint::manifest::{KeyedStateHandle, Manifest, OperatorState, OperatorSubtaskState};
use crate::element::CheckpointKind;
use crate::ids::{AttemptId, CheckpointId, EntryNumber};
use crate::io::TokioIo;

const RANGE: KeyGroupRange = KeyGroupRange { start: 0, end: 128 };

/// A folder of attempt 4, after attempt 1: entries 1 (claim), 3 (checkpoint 2), 4 (claim), 5 (checkpoint 3, which retains 3), each
/// checkpoint with one file.
struct Scene {
    folder: TempDir,
    storage: CheckpointStorage,
    runtime: tokio::runtime::Runtime,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let storage = CheckpointStorage::open(folder.path().to_str().unwrap()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let scene = Self { folder, storage, runtime };
        let io = TokioIo::shared(scene.runtime.handle().clone());
        let mut nonces = NonceSource::new(7);
        let opened = LogClient::open(scene.storage.clone(), io, "orders".into(), &mut nonces);
        scene.runtime.block_on(opened).unwrap();
        scene.claim(1);
        scene.checkpoint(3, 2, 1, &[]);
        scene.claim(4);
        scene.checkpoint(5, 3, 4, &[3]);
        scene
    }

    fn put(&self, path: &str, bytes: impl Into<Bytes>) {
        self.runtime.block_on(self.storage.put(path, bytes.into())).unwrap();
    }

    /// What the store's own names do not reach.
    fn put_raw(&self, path: &str, bytes: &[u8]) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn entry(&self, number: u64, attempt: u64, body: EntryBody) {
        let entry = LogEntry { attempt: AttemptId(attempt), nonce: Nonce(number.into()), body };
        self.put(&path_of(EntryNumber(number)), sealed(&entry));
    }

    fn claim(&self, number: u64) {
        self.entry(number, number, EntryBody::Claim { base: ClaimBase::Latest, stores: Vec::new() });
    }

    fn checkpoint(&self, number: u64, id: u64, attempt: u64, retained: &[u64]) {
        let path = format!("{id}-{attempt}/total-0");
        let file = StateFileWriter::new("total", RANGE, MaxParallelism::new(128).unwrap()).finish();
        let manifest = manifest(id, attempt, &path, file.len() as u64);
        self.put(&path, file);
        let retained = retained.iter().map(|n| EntryNumber(*n)).collect();
        self.entry(number, attempt, EntryBody::Checkpoint { manifest, retained, committed: Vec::new() });
    }

    fn look(&self) -> CheckpointFolder {
        let looked = CheckpointFolder::look(self.storage.clone(), Some(self.folder.path()));
        self.runtime.block_on(looked).unwrap()
    }

    fn check(&self, alive: bool) -> Vec<Finding> {
        let folder = self.look();
        self.runtime.block_on(folder.check(alive)).unwrap().findings
    }

    fn verify(&self) -> Vec<Finding> {
        let folder = self.look();
        self.runtime.block_on(folder.verify()).unwrap().findings
    }

    fn delete(&self, alone: bool) -> Vec<String> {
        let folder = self.look();
        let findings = self.runtime.block_on(folder.check(false)).unwrap().findings;
        self.runtime.block_on(folder.delete(&findings, alone)).unwrap()
    }

    fn flip(&self, path: &str, at: usize) {
        let path = self.folder.path().join(path);
        let mut bytes = std::fs::read(&path).unwrap();
        let at = at.min(bytes.len() - 1);
        bytes[at] ^= 1;
        std::fs::write(path, bytes).unwrap();
    }
}

fn manifest(id: u64, attempt: u64, path: &str, size_bytes: u64) -> Manifest {
    let keyed = KeyedStateHandle { path: path.to_owned(), size_bytes, range: RANGE };
    let subtask =
        OperatorSubtaskState { uid: "total".into(), keyed: Some(keyed), lists: Vec::new(), ended: false };
    Manifest {
        job: "orders".into(),
        log_id: "feed".into(),
        lineage: Default::default(),
        checkpoint: CheckpointId(id),
        attempt: AttemptId(attempt),
        kind: CheckpointKind::Checkpoint,
        completed_at_ms: 0,
        operators: vec![OperatorState {
            uid: "total".into(),
            max_parallelism: 128,
            two_phase: false,
            has_on_end: false,
            subtasks: vec![subtask],
            ended: vec![false],
            upstream: Vec::new(),
            enumerator: None,
        }],
    }
}

#[test]
fn a_folder_in_order_has_no_findings() {
    let scene = Scene::new();
    let folder = scene.look();
    let checked = scene.runtime.block_on(folder.check(false)).unwrap();
    assert_eq!(checked.findings, []);
    assert_eq!((checked.files, checked.checkpoints.len()), (2, 2));
    assert_eq!(folder.owner.as_ref().unwrap().0.as_str(), "orders");
    assert_eq!(folder.foreign(), Vec::<&str>::new());
    // The same by the store's own listing, which other stores are looked at with.
    let listed = scene.runtime.block_on(CheckpointFolder::look(scene.storage.clone(), None)).unwrap();
    let paths = |folder: &CheckpointFolder| folder.files.iter().map(|f| f.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&listed), paths(&folder));
}

#[test]
fn empty_torn_and_changed_entries_are_told_apart() {
    let scene = Scene::new();
    let entry = |number| path_of(EntryNumber(number));
    let whole = std::fs::read(scene.folder.path().join(entry(5))).unwrap();
    for (bytes, expected) in [(&[][..], "empty_entry"), (&whole[..40], "torn_entry")] {
        scene.put_raw(&entry(6), bytes);
        let json = serde_json::to_value(scene.check(false)).unwrap();
        assert_eq!(json[0]["finding"], expected, "{json}");
        assert_eq!(json[0]["path"], entry(6).as_str());
    }
    scene.put_raw(&entry(6), &whole);
    scene.flip(&entry(6), 60);
    assert!(matches!(scene.check(false)[0], Finding::DamagedEntry { .. }));
    std::fs::remove_file(scene.folder.path().join("log/id")).unwrap();
    assert!(scene.check(false).contains(&Finding::NoLogId));
}

#[test]
fn missing_torn_and_changed_state_names_its_checkpoints() {
    let scene = Scene::new();
    std::fs::remove_file(scene.folder.path().join("2-1/total-0")).unwrap();
    let checkpoints = vec![CheckpointId(2)];
    let missing = Finding::MissingFile { path: "2-1/total-0".into(), checkpoints };
    assert_eq!(scene.check(false), [missing]);

    let scene = Scene::new();
    scene.flip("3-4/total-0", 30);
    let findings = scene.check(false);
    assert!(matches!(&findings[..], [Finding::DamagedState { .. }]), "{findings:?}");
    assert!(findings[0].to_string().contains("checkpoint 3 names it"), "{}", findings[0]);

    let scene = Scene::new();
    scene.put_raw("3-4/total-0", b"");
    let findings = scene.check(false);
    assert!(matches!(&findings[..], [Finding::TornFile { is_bytes: 0, .. }]), "{findings:?}");
}

#[test]
fn an_entry_that_the_newest_one_retains_is_missed() {
    let scene = Scene::new();
    std::fs::remove_file(scene.folder.path().join(path_of(EntryNumber(3)))).unwrap();
    let findings = scene.check(false);
    let missing = |finding: &&Finding| {
        matches!(finding, Finding::MissingEntry { entry: EntryNumber(3), named_by: EntryNumber(5), .. })
    };
    let found = findings.iter().find(missing).unwrap();
    assert!(found.to_string().contains("help: ") && found.to_string().contains("--restore"), "{found}");
    assert!(scene.verify().iter().any(|finding| missing(&finding)), "a start would refuse");
    // Its files are no left-overs: the entry may come back from a copy.
    assert_eq!(scene.delete(true), Vec::<String>::new());
    assert!(scene.folder.path().join("2-1/total-0").is_file());
}

#[test]
fn the_newest_entry_is_missed_by_what_was_cleaned_for_it() {
    let scene = Scene::new();
    scene.checkpoint(6, 4, 4, &[5]);
    let newest = scene.folder.path().join(path_of(EntryNumber(6)));
    for cleaned in [path_of(EntryNumber(3)), "2-1/total-0".to_owned()] {
        std::fs::remove_file(scene.folder.path().join(cleaned)).unwrap();
    }
    assert_eq!(scene.check(false), []);
    std::fs::remove_file(newest).unwrap();
    let gap = |finding: &Finding| matches!(finding, Finding::MissingEntry { entry: EntryNumber(3), .. });
    assert!(scene.check(false).iter().any(gap) && scene.verify().iter().any(gap));
    assert_eq!(scene.delete(true), Vec::<String>::new(), "the files of checkpoint 4 wait for its entry");
    // An entry that stands and cannot be read is one fault, not two.
    scene.put_raw(&path_of(EntryNumber(6)), b"");
    assert!(matches!(&scene.check(false)[..], [Finding::EmptyEntry { .. }, Finding::Orphan { .. }]));
}

#[test]
fn a_claim_is_missed_by_what_its_attempt_wrote() {
    let scene = Scene::new();
    for number in [1, 4] {
        std::fs::remove_file(scene.folder.path().join(path_of(EntryNumber(number)))).unwrap();
        // What is no file is no entry.
        std::fs::create_dir(scene.folder.path().join(path_of(EntryNumber(number)))).unwrap();
    }
    let findings = scene.verify();
    let claims = findings.iter().map(|finding| match finding {
        Finding::MissingClaim { entry, .. } => entry.0,
        other => panic!("{other}"),
    });
    assert_eq!(claims.collect::<Vec<_>>(), [1, 4]);
    let scene = Scene::new();
    scene.put("9-9/total-0", "left");
    let findings = scene.check(false);
    assert!(
        findings.iter().any(|f| matches!(f, Finding::MissingClaim { entry: EntryNumber(9), .. })),
        "{findings:?}"
    );
    assert_eq!(scene.delete(true), Vec::<String>::new());
}

#[test]
fn verify_reads_only_what_is_retained() {
    let scene = Scene::new();
    scene.checkpoint(6, 4, 4, &[5]);
    scene.flip("2-1/total-0", 30);
    let folder = scene.look();
    let Checked { findings, files, checkpoints, .. } = scene.runtime.block_on(folder.verify()).unwrap();
    assert_eq!((findings.len(), files), (0, 2));
    assert_eq!(checkpoints, [CheckpointId(3), CheckpointId(4)]);
    assert_eq!(scene.check(false).len(), 1, "checkpoint 2 still stands in the log");
}

#[test]
fn only_left_overs_of_attempts_that_are_over_are_deleted() {
    let scene = Scene::new();
    let left = ["9-1/total-0", "9-4/total-0", "preflight/0"];
    left.iter().for_each(|path| scene.put(path, "left"));
    let half = ["3-4/total-0#1", "log/00000000000000000006#1"];
    half.iter().for_each(|path| scene.put_raw(path, b"half"));
    scene.put("notes.txt", "mine");
    let found: Vec<_> = scene.check(false).iter().filter_map(|f| f.path().map(str::to_owned)).collect();
    assert_eq!(found, [half[0], left[0], left[1], half[1], left[2]]);
    assert_eq!(scene.look().foreign(), ["notes.txt"]);
    // While the job lives, what its attempt has under way is no finding.
    let alive: Vec<_> = scene.check(true).iter().filter_map(|f| f.path().map(str::to_owned)).collect();
    assert_eq!(alive, [left[0]]);

    assert_eq!(scene.delete(false), [left[0]], "attempt 4 may be alive somewhere else");
    assert_eq!(scene.delete(true), [half[0], left[1], half[1], left[2]]);
    assert_eq!(scene.check(false), []);
    for kept in ["2-1/total-0", "3-4/total-0", "notes.txt"] {
        assert!(scene.folder.path().join(kept).is_file(), "{kept}");
    }
    assert!(!scene.folder.path().join("9-1").exists(), "emptied folders go too");
}

#[test]
fn nothing_of_an_attempt_is_deleted_while_an_entry_cannot_be_read() {
    let scene = Scene::new();
    scene.put("9-1/total-0", "left");
    scene.put_raw(&path_of(EntryNumber(6)), b"");
    assert_eq!(scene.delete(true), Vec::<String>::new());
    assert_eq!(scene.check(false).len(), 2);
}

#[test]
fn a_folder_without_a_log_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let storage = CheckpointStorage::open(folder.path().to_str().unwrap()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let looked = runtime.block_on(CheckpointFolder::look(storage, Some(folder.path())));
    assert!(matches!(looked, Err(FsckError::NoFolder { .. })));
}
