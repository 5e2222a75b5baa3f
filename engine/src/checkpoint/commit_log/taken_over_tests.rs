//! Who asks whether its job was taken over hears of every claim that stands, and of nothing else.

use std::sync::Arc;

use futures::future::BoxFuture;
use object_store::memory::InMemory;
use object_store::path::Path;
use tidegate_state::CheckpointStorage;
use tidegate_state::storage::{FaultAction, FaultyStore, StoreFaults, StoreOp};

use super::client_tests::{append, checkpoint, claim, open, run};
use super::{ClaimBase, EntryBody, LogEntry, LogError, Nonce, Settled};
use crate::api::{ClaimError, ClaimWatch, ConnectorError};
use crate::ids::{AttemptId, EntryNumber};

#[test]
fn a_later_claim_is_seen_and_own_checkpoints_and_older_claims_are_not() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        claim(&client, ClaimBase::Latest, 2).await.unwrap();
        let own = claim(&client, ClaimBase::Latest, 3).await.unwrap();
        let watch = ClaimWatch::of(client.clone(), own.attempt);
        watch.check().await.unwrap();
        assert_eq!(append(&client, &own, 3, checkpoint(&own, 1, &[])).await, Settled::Ours);
        watch.check().await.unwrap();

        let later = claim(&client, ClaimBase::Latest, 4).await.unwrap();
        assert_eq!(append(&client, &later, 5, checkpoint(&later, 2, &[3])).await, Settled::Ours);
        assert_eq!(append(&client, &later, 6, EntryBody::Finished).await, Settled::Ours);
        let error = watch.check().await.unwrap_err();
        assert!(matches!(error, ClaimError::TakenOver { by: EntryNumber(4), .. }), "{error}");
        assert!(!error.is_away());
        let failure: ConnectorError = error.while_doing("writing");
        assert_eq!(failure.fenced_by, Some(EntryNumber(4)));
        assert!(failure.full_text().contains("job \"orders\" was taken over"), "{failure}");
        ClaimWatch::of(client, later.attempt).check().await.unwrap();
    });
}

#[test]
fn a_void_claim_takes_nothing_over() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let own = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        // Its claimant had listed the log before entry 2 was put and cleaned, and died before it claimed again.
        let body = EntryBody::Claim { base: ClaimBase::Latest, stores: Vec::new() };
        let void = LogEntry { attempt: AttemptId(2), nonce: Nonce(9), body };
        assert_eq!(client.append(EntryNumber(2), void).await, Settled::Ours);
        assert_eq!(client.taken_over(own.attempt).await.unwrap(), Some(EntryNumber(2)));
        assert_eq!(append(&client, &own, 3, checkpoint(&own, 2, &[])).await, Settled::Ours);
        assert_eq!(client.taken_over(own.attempt).await.unwrap(), None);
    });
}

#[test]
fn in_a_folder_that_was_replaced_no_claim_says_anything() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let own = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        storage.delete("log/id").await.unwrap();
        storage.delete(&super::path_of(EntryNumber(1))).await.unwrap();
        let other = open(&storage, "orders", 77).await.unwrap();
        claim(&other, ClaimBase::Latest, 3).await.unwrap();
        claim(&other, ClaimBase::Latest, 4).await.unwrap();
        let error = ClaimWatch::of(client, own.attempt).check().await.unwrap_err();
        assert!(
            matches!(&error, ClaimError::Unread { source } if matches!(**source, LogError::FolderReplaced { .. }))
        );
        assert!(!error.is_away() && error.while_doing("writing").fenced_by.is_none());
    });
}

/// Listings fail.
#[derive(Debug)]
struct Away;

impl StoreFaults for Away {
    fn before(&self, op: StoreOp, _path: &Path) -> BoxFuture<'static, FaultAction> {
        let action = if op == StoreOp::List { FaultAction::Fail } else { FaultAction::Proceed };
        Box::pin(async move { action })
    }
}

#[test]
fn a_store_that_is_away_says_neither_yes_nor_no() {
    let inner = Arc::new(InMemory::new());
    let storage = CheckpointStorage::over(inner.clone(), "memory://one");
    let away = CheckpointStorage::over(Arc::new(FaultyStore::new(inner, Arc::new(Away))), "memory://one");
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let own = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        let client = open(&away, "orders", 3).await.unwrap();
        let error = ClaimWatch::of(client, own.attempt).check().await.unwrap_err();
        assert!(error.is_away(), "{error}");
        let failure = error.while_doing("writing");
        assert!(failure.restartable && failure.fenced_by.is_none());
        assert!(failure.full_text().contains("checkpoint folder memory://one"), "{}", failure.full_text());
        ClaimWatch::unclaimed().check().await.unwrap();
    });
}
