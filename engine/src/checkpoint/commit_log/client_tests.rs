//! The client over real stores: a folder on disk and one in memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidegate_state::CheckpointStorage;

use super::listing::tests::manifest;
use super::store::{LogStore, PutResult, StoreError};
use super::{
    ClaimBase, ClaimOutcome, Claimed, EntryBody, LogClient, LogEntry, LogError, Nonce, NonceSource, Settled,
};
use crate::ids::{AttemptId, CheckpointId, EntryNumber, Lineage};
use crate::io::{BoxFuture, Io, SharedIo, SpawnedIo};

/// Waits are over at once; no clock is asked.
struct NoPause;

impl Io for NoPause {
    fn spawn(&self, _name: &'static str, _future: BoxFuture<()>) -> Box<dyn SpawnedIo> {
        unreachable!("the log client starts no future")
    }

    fn sleep(&self, _span: Duration) -> BoxFuture<()> {
        Box::pin(std::future::ready(()))
    }

    fn run_blocking(&self, _work: Box<dyn FnOnce() + Send + 'static>) -> BoxFuture<()> {
        unreachable!("the log client does not block")
    }
}

pub(super) fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(future)
}

pub(super) fn io() -> SharedIo {
    Arc::new(NoPause)
}

pub(super) async fn open(storage: &CheckpointStorage, job: &str, seed: u128) -> Result<LogClient, LogError> {
    LogClient::open(storage.clone(), io(), job.into(), &mut NonceSource::new(seed)).await
}

pub(super) async fn claim(client: &LogClient, base: ClaimBase, seed: u128) -> Result<Claimed, LogError> {
    let mut nonces = NonceSource::new(seed);
    match client.claim_checked::<LogError>(base, &mut nonces, |_| Ok(())).await? {
        ClaimOutcome::Claimed(claimed) => Ok(*claimed),
        other => panic!("{other:?}"),
    }
}

pub(super) async fn append(client: &LogClient, by: &Claimed, number: u64, body: EntryBody) -> Settled {
    let nonce = by.nonce.of_entry(EntryNumber(number));
    client.append(EntryNumber(number), LogEntry { attempt: by.attempt, nonce, body }).await
}

pub(super) fn checkpoint(by: &Claimed, id: u64, retained: &[u64]) -> EntryBody {
    let manifest = crate::checkpoint::manifest::Manifest {
        log_id: by.log_id.clone(),
        lineage: by.lineage,
        ..manifest(id, by.attempt.0)
    };
    let retained = retained.iter().map(|n| EntryNumber(*n)).collect();
    EntryBody::Checkpoint { manifest, retained, committed: vec![("sink".into(), CheckpointId(id - 1))] }
}

#[test]
fn a_second_attempt_restores_what_the_first_completed_and_fences_it() {
    let folder = tempfile::tempdir().unwrap();
    let storage = CheckpointStorage::open(folder.path().to_str().unwrap()).unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let a = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        assert_eq!((a.attempt, a.lineage, a.next_checkpoint), (AttemptId(1), Lineage(1), CheckpointId(1)));
        assert_eq!(append(&client, &a, 2, checkpoint(&a, 1, &[])).await, Settled::Ours);
        assert_eq!(append(&client, &a, 3, checkpoint(&a, 2, &[2])).await, Settled::Ours);

        let client = open(&storage, "orders", 3).await.unwrap();
        let b = claim(&client, ClaimBase::Latest, 4).await.unwrap();
        assert_eq!((b.attempt, b.lineage, b.next_checkpoint), (AttemptId(4), Lineage(1), CheckpointId(3)));
        assert_eq!(b.restored.as_ref().map(|c| c.number), Some(EntryNumber(3)));
        assert_eq!(b.retained.iter().map(|c| c.number).collect::<Vec<_>>(), [EntryNumber(2)]);
        assert_eq!(b.committed, [("sink".into(), CheckpointId(1))]);
        assert_eq!(append(&client, &a, 4, checkpoint(&a, 3, &[3])).await, Settled::Fenced);
        assert_eq!(append(&client, &b, 5, checkpoint(&b, 3, &[3])).await, Settled::Ours);
        assert_eq!(
            append(&client, &b, 5, checkpoint(&b, 3, &[3])).await,
            Settled::Ours,
            "its own is no foreign one"
        );
    });
}

#[test]
fn a_folder_belongs_to_one_job() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        open(&storage, "orders", 1).await.unwrap();
        let refused = open(&storage, "canary", 2).await.map(|_| ()).unwrap_err();
        assert!(matches!(&refused, LogError::WrongJob { owner, .. } if owner.as_str() == "orders"));
        assert!(refused.to_string().contains("\"canary\"") && refused.to_string().contains("--checkpoints"));
        storage.delete("log/id").await.unwrap();
        storage.create("log/00000000000000000001", b"x".as_slice().into()).await.unwrap();
        assert!(matches!(open(&storage, "orders", 3).await.map(|_| ()), Err(LogError::NoIdentity { .. })));
    });
}

#[test]
fn an_entry_that_is_empty_torn_or_changed_is_named() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        claim(&client, ClaimBase::Latest, 2).await.unwrap();
        let path = "log/00000000000000000001";
        let whole = storage.get(path).await.unwrap().unwrap();
        let mut flipped = whole.to_vec();
        flipped[40] ^= 1;
        for damaged in [Vec::new(), whole[..whole.len() - 1].to_vec(), flipped] {
            storage.put(path, damaged.into()).await.unwrap();
            let refused = claim(&client, ClaimBase::Latest, 3).await.unwrap_err();
            assert!(matches!(&refused, LogError::Unreadable { path: is, .. } if is == path), "{refused}");
            assert_eq!(storage.list("log").await.unwrap().len(), 2, "nothing was claimed");
        }
    });
}

#[test]
fn a_start_on_a_finished_job_says_so_and_one_without_restore_begins_anew() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let a = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        append(&client, &a, 2, checkpoint(&a, 1, &[])).await;
        append(&client, &a, 3, EntryBody::Finished).await;
        let refused = claim(&client, ClaimBase::Latest, 3).await.unwrap_err();
        assert!(matches!(refused, LogError::AlreadyFinished { entry: EntryNumber(3), .. }));
        let anew = claim(&client, ClaimBase::None, 4).await.unwrap();
        assert_eq!((anew.attempt, anew.lineage), (AttemptId(4), Lineage(4)));
        assert_eq!((anew.restored, anew.next_checkpoint, anew.left_over.len()), (None, CheckpointId(2), 1));
    });
}

#[test]
fn a_refusal_leaves_the_log_as_it_was() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let a = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        append(&client, &a, 2, checkpoint(&a, 1, &[])).await;
        let refuse = |_: Option<&_>| Err(client_error());
        let refused = client.claim_checked(ClaimBase::Latest, &mut NonceSource::new(3), refuse).await;
        assert!(refused.is_err());
        assert!(client.survey_rewind(CheckpointId(7)).await.is_err());
        assert_eq!(client.listing(None).await.unwrap().highest(), EntryNumber(2));
    });
}

fn client_error() -> LogError {
    LogError::NoIdentity { folder: String::new() }
}

#[test]
fn a_start_whose_survey_is_old_meets_the_faster_one_and_claims_above_it() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let slow = client.survey(ClaimBase::Latest).await.unwrap();
        let fast = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        assert!(matches!(client.claim(&slow, Nonce(3)).await.unwrap(), ClaimOutcome::Again));
        let slow = claim(&client, ClaimBase::Latest, 4).await.unwrap();
        assert!(slow.attempt > fast.attempt);
    });
}

/// Entries 1 (claim), 4 to 6 (checkpoints 3 to 5; 2 and 3 are cleaned), each keeping two.
async fn cleaned(storage: &CheckpointStorage) -> (LogClient, Claimed) {
    let client = open(storage, "orders", 1).await.unwrap();
    let a = claim(&client, ClaimBase::Latest, 2).await.unwrap();
    for (number, kept) in [(2, vec![]), (3, vec![2]), (4, vec![2, 3]), (5, vec![3, 4]), (6, vec![4, 5])] {
        assert_eq!(append(&client, &a, number, checkpoint(&a, number - 1, &kept)).await, Settled::Ours);
    }
    for cleaned in [2, 3] {
        storage.delete(&super::path_of(EntryNumber(cleaned))).await.unwrap();
    }
    (client, a)
}

#[test]
fn a_start_does_not_go_back_silently_when_the_newest_entry_is_gone() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let (client, _) = cleaned(&storage).await;
        assert_eq!(client.survey(ClaimBase::Latest).await.unwrap().restored.unwrap().number, EntryNumber(6));
        storage.delete(&super::path_of(EntryNumber(6))).await.unwrap();
        let refused = claim(&client, ClaimBase::Latest, 3).await.unwrap_err();
        assert!(matches!(refused, LogError::NotWhole { newest: Some(CheckpointId(4)), .. }), "{refused}");
        assert!(refused.to_string().contains("--restore 'memory://#4' --rewind"), "{refused}");
        assert_eq!(client.listing(None).await.unwrap().highest(), EntryNumber(5), "nothing was claimed");
        // Who knows what that costs goes on, and whoever comes after is not asked again.
        let (survey, _) = client.survey_rewind(CheckpointId(4)).await.unwrap();
        assert!(matches!(client.claim(&survey, Nonce(9)).await.unwrap(), ClaimOutcome::Claimed(_)));
        let next = claim(&client, ClaimBase::Latest, 4).await.unwrap();
        assert_eq!((next.attempt, next.restored.unwrap().number), (AttemptId(7), EntryNumber(5)));
    });
}

#[test]
fn a_rewind_does_not_pass_a_claim_that_is_gone() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let (client, _) = cleaned(&storage).await;
        storage.delete(&super::path_of(EntryNumber(1))).await.unwrap();
        assert!(client.survey_rewind(CheckpointId(5)).await.is_ok(), "the newest one is on every line");
        let refused = client.survey_rewind(CheckpointId(4)).await.unwrap_err();
        assert!(matches!(refused, LogError::NotWhole { .. }), "{refused}");
    });
}

#[test]
fn files_of_an_attempt_above_the_log_keep_its_number_from_being_given_again() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let (client, _) = cleaned(&storage).await;
        for (path, fits) in [("5-1/a", true), ("6-7/a", false)] {
            storage.put(path, b"left".as_slice().into()).await.unwrap();
            let files = client.files().await.unwrap();
            let survey = client.survey(ClaimBase::Latest).await.unwrap();
            assert_eq!(client.check_files(&survey, &files).is_ok(), fits, "{path}");
        }
    });
}

#[test]
fn an_entry_in_a_folder_that_was_deleted_or_replaced_completes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ck");
    let storage = CheckpointStorage::open(path.to_str().unwrap()).unwrap();
    run(async {
        let (client, a) = cleaned(&storage).await;
        std::fs::remove_dir_all(&path).unwrap();
        let gone = append(&client, &a, 7, checkpoint(&a, 6, &[5, 6])).await;
        assert_eq!(gone, Settled::Replaced { found: "is gone" });
        assert!(!path.join("log").exists(), "nothing is made anew");
        let other = open(&storage, "orders", 77).await.unwrap();
        let replaced = append(&client, &a, 7, checkpoint(&a, 6, &[5, 6])).await;
        assert!(matches!(replaced, Settled::Replaced { .. }), "{replaced:?}");
        assert_eq!(other.listing(None).await.unwrap().highest(), EntryNumber(0), "nothing in another's log");
        let io: SharedIo = Arc::new(NoPause);
        let (job, log_id) = (client.job.clone(), client.log_id.clone());
        let restart = LogClient::reopen(storage.clone(), io, job, log_id).await.map(|_| ()).unwrap_err();
        assert!(matches!(restart, LogError::FolderReplaced { .. }), "{restart}");
    });
}

#[test]
fn an_entry_whose_put_made_the_deleted_folder_anew_completes_nothing() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let (client, a) = cleaned(&storage).await;
        let (io, log_id, job) = (Arc::clone(&client.io), client.log_id.clone(), client.job.clone());
        let deleting = LogClient { store: DeletedUnderPuts(storage.clone()), io, job, log_id };
        let number = EntryNumber(7);
        let entry = LogEntry {
            attempt: a.attempt,
            nonce: a.nonce.of_entry(number),
            body: checkpoint(&a, 6, &[5, 6]),
        };
        assert_eq!(deleting.append(number, entry).await, Settled::Replaced { found: "is gone" });
    });
}

/// A store whose folder is deleted just before each put.
#[derive(Clone)]
struct DeletedUnderPuts(CheckpointStorage);

impl LogStore for DeletedUnderPuts {
    fn url(&self) -> &str {
        LogStore::url(&self.0)
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<PutResult, StoreError> {
        for path in LogStore::list(&self.0, "").await? {
            LogStore::delete(&self.0, &path).await?;
        }
        LogStore::create(&self.0, path, bytes).await
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        LogStore::get(&self.0, path).await
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        LogStore::list(&self.0, folder).await
    }

    async fn delete(&self, path: &str) -> Result<(), StoreError> {
        LogStore::delete(&self.0, path).await
    }
}

/// A store in which every entry is cleaned between its listing and its reading, because others come all the time.
#[derive(Clone)]
struct Restless(CheckpointStorage);

impl LogStore for Restless {
    fn url(&self) -> &str {
        LogStore::url(&self.0)
    }

    async fn create(&self, path: &str, bytes: Bytes) -> Result<PutResult, StoreError> {
        LogStore::create(&self.0, path, bytes).await
    }

    async fn get(&self, path: &str) -> Result<Option<Bytes>, StoreError> {
        match path.starts_with("log/0") {
            true => Ok(None),
            false => LogStore::get(&self.0, path).await,
        }
    }

    async fn list(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        LogStore::list(&self.0, folder).await
    }

    async fn delete(&self, path: &str) -> Result<(), StoreError> {
        LogStore::delete(&self.0, path).await
    }
}

#[test]
fn a_log_that_changes_faster_than_it_is_read_does_not_pass_for_an_empty_one() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let a = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        assert_eq!(append(&client, &a, 2, checkpoint(&a, 1, &[])).await, Settled::Ours);
        let (io, log_id, job) = (Arc::clone(&client.io), client.log_id.clone(), client.job.clone());
        let restless = LogClient { store: Restless(storage.clone()), io, job, log_id };
        let survey = restless.survey(ClaimBase::Latest).await;
        assert!(matches!(survey, Err(LogError::Restless { .. })), "{survey:?}");
    });
}
