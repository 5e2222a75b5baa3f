//! The decision to go on without a transaction, over a store in memory.

use tidegate_state::{CheckpointStorage, Redistribution, encode_list};

use super::client_tests::{append, claim, open, run};
use super::listing::tests::manifest;
use super::{ClaimBase, Claimed, EntryBody, ForgetError, LogClient, NonceSource, Settled};
use crate::api::Prepared;
use crate::checkpoint::manifest::{ListStateHandle, OperatorState, OperatorSubtaskState, StateBlob};
use crate::ids::{AttemptId, CheckpointId, EntryNumber, Lineage};
use crate::operator::sink_operator::{COMMITTABLES, StoredCommittable};
use crate::operator::{TransactionName, TransactionScope};

/// The transaction that the barrier of checkpoint `closed_by` closed.
fn pending(closed_by: u64) -> Prepared<u64> {
    let scope = TransactionScope {
        job: "orders".into(),
        log_id: "feed".into(),
        lineage: Lineage(1),
        uid: "sink".into(),
    };
    let opened_after = CheckpointId(closed_by - 1);
    let name = TransactionName { scope, subtask: 0, opened_after, attempt: AttemptId(1) };
    Prepared { name, closed_by: CheckpointId(closed_by), committable: 7 }
}

/// Checkpoint `id`, which lists these transactions; everything up to 1 is known to be committed.
fn checkpoint(by: &Claimed, id: u64, listed: &[u64]) -> EntryBody {
    let stored: Vec<_> = listed.iter().map(|id| StoredCommittable::from(pending(*id))).collect();
    let list = ListStateHandle {
        name: COMMITTABLES.to_owned(),
        redistribution: Redistribution::Union,
        blob: StateBlob::Inline(encode_list(&stored)),
    };
    let subtask =
        OperatorSubtaskState { uid: "sink".into(), lists: vec![list], ..OperatorSubtaskState::default() };
    let sink = OperatorState {
        uid: "sink".into(),
        max_parallelism: 128,
        two_phase: true,
        has_on_end: false,
        subtasks: vec![subtask],
        ended: vec![false],
        upstream: Vec::new(),
        enumerator: None,
    };
    let manifest = crate::checkpoint::manifest::Manifest {
        log_id: by.log_id.clone(),
        lineage: by.lineage,
        operators: vec![sink],
        ..manifest(id, by.attempt.0)
    };
    let committed = vec![("sink".into(), CheckpointId(1))];
    EntryBody::Checkpoint { manifest, retained: Vec::new(), committed }
}

async fn forget(client: &LogClient, wanted: &str, seed: u128) -> Result<super::Forgotten, ForgetError> {
    client.forget(wanted, &mut NonceSource::new(seed)).await
}

#[test]
fn what_was_given_up_stands_in_the_log_and_the_next_start_restores_the_same_checkpoint() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let a = claim(&client, ClaimBase::Latest, 2).await.unwrap();
        assert_eq!(append(&client, &a, 2, checkpoint(&a, 3, &[1, 2, 3])).await, Settled::Ours);
        let name = pending(2).name;
        let found = forget(&client, &name.to_string(), 3).await.unwrap();
        assert_eq!((found.checkpoint, found.entry), (CheckpointId(3), Some(EntryNumber(4))));
        assert_eq!(found.transaction.closed_by, CheckpointId(2));
        // Whoever still runs completes nothing more.
        assert_eq!(append(&client, &a, 3, checkpoint(&a, 4, &[4])).await, Settled::Fenced);
        // Once is enough.
        let again = forget(&client, &name.to_string(), 4).await.unwrap();
        assert_eq!(again.entry, None);
        let b = claim(&client, ClaimBase::Latest, 5).await.unwrap();
        assert_eq!((b.attempt, b.lineage), (AttemptId(5), Lineage(1)));
        assert_eq!(b.restored.map(|c| c.number), Some(EntryNumber(2)));
        assert_eq!(b.forgotten, [name]);
    });
}

#[test]
fn only_what_the_newest_checkpoint_waits_for_can_be_given_up() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let client = open(&storage, "orders", 1).await.unwrap();
        let wanted = pending(2).name.to_string();
        let nothing = forget(&client, &wanted, 2).await.unwrap_err();
        assert!(matches!(nothing, ForgetError::NothingRestored { .. }), "{nothing}");
        let a = claim(&client, ClaimBase::Latest, 3).await.unwrap();
        assert_eq!(append(&client, &a, 2, checkpoint(&a, 3, &[1, 3])).await, Settled::Ours);
        // The first is known to be committed.
        for wanted in [wanted, pending(1).name.to_string(), String::new()] {
            let refused = forget(&client, &wanted, 4).await.unwrap_err();
            let text = refused.to_string();
            assert!(matches!(refused, ForgetError::NotListed { .. }), "{text}");
            assert!(text.contains(&pending(3).name.to_string()), "{text}");
        }
        assert_eq!(client.listing(None).await.unwrap().highest(), EntryNumber(2), "nothing was claimed");
    });
}

#[test]
fn a_folder_without_a_log_is_left_as_it_is() {
    let storage = CheckpointStorage::open("memory://").unwrap();
    run(async {
        let io = super::client_tests::io();
        let refused = LogClient::open_existing(storage.clone(), io).await.map(|_| ()).unwrap_err();
        assert!(matches!(refused, ForgetError::NoLog { .. }), "{refused}");
        assert_eq!(storage.list("").await.unwrap(), [""; 0]);
    });
}
