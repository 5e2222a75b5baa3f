//! How long the rows of the ledger stay.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::future::BoxFuture;
use object_store::path::Path;
use tidegate::connectors::mysql::Xid;
use tidegate::engine::api::{ClaimWatch, TwoPhaseSink};
use tidegate::engine::checkpoint::commit_log::{
    ClaimBase, ClaimOutcome, EntryBody, LogClient, LogEntry, LogError, NonceSource, Settled,
};
use tidegate::engine::checkpoint::manifest::Manifest;
use tidegate::engine::clock::{Clock, ManualClock, SystemClock};
use tidegate::engine::element::CheckpointKind;
use tidegate::engine::ids::{CheckpointId, EntryNumber, JobName, Lineage};
use tidegate::engine::operator::CommitOutcome;
use tidegate::state::CheckpointStorage;
use tidegate::state::storage::{FaultAction, FaultyStore, StoreFaults, StoreOp};

use super::scene::{Scene, on_both, settle};

/// A log whose newest checkpoints, which a start could restore, know the scene's sink to be committed up to these.
async fn log_that_knows(scene: &Scene, committed: &[u64]) -> ClaimWatch {
    log_in(scene, CheckpointStorage::open("memory://").unwrap(), committed).await
}

async fn log_in(scene: &Scene, storage: CheckpointStorage, committed: &[u64]) -> ClaimWatch {
    let io = scene.io.clone();
    let mut nonces = NonceSource::new(1);
    let log = LogClient::open(storage, io, JobName::from("orders"), &mut nonces).await.unwrap();
    let claimed = log.claim_checked::<LogError>(ClaimBase::Latest, &mut nonces, |_| Ok(())).await.unwrap();
    let ClaimOutcome::Claimed(claimed) = claimed else { panic!("not claimed") };
    let attempt = claimed.attempt;
    for (number, up_to) in (attempt.0 + 1..).zip(committed) {
        let manifest = Manifest {
            job: JobName::from("orders"),
            log_id: log.log_id().clone(),
            lineage: Lineage(attempt.0),
            checkpoint: CheckpointId(1_000 + number),
            attempt,
            kind: CheckpointKind::Checkpoint,
            completed_at_ms: 0,
            operators: Vec::new(),
        };
        let committed = vec![("other".into(), CheckpointId(1)), ("sink".into(), CheckpointId(*up_to))];
        let body = EntryBody::Checkpoint { manifest, retained: Vec::new(), committed };
        let put = log.append(EntryNumber(number), LogEntry { attempt, nonce: nonces.draw(), body }).await;
        assert!(matches!(put, Settled::Ours), "{put:?}");
    }
    ClaimWatch::of(log, attempt)
}

async fn closed_by(scene: &Scene) -> Vec<u64> {
    let rows: Vec<(u64,)> = scene.ask("SELECT closed_by FROM tidegate_ledger ORDER BY closed_by").await;
    rows.into_iter().map(|(closed_by,)| closed_by).collect()
}

async fn goes<S>(scene: &Scene, sink: S, prepared_stays: bool)
where
    S: TwoPhaseSink<Record = super::scene::Pair>,
{
    let mut committer = scene.committer(&sink, 1).await;
    for after in [0, 1, 2, 3, 6] {
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(after, 1), &[(after, 1)]).await;
        drop(writer);
        assert_eq!(settle(scene, &mut committer, &item).await, CommitOutcome::Committed);
    }
    // Those that checkpoints 1, 2, 4 and 7 closed are old, that of 3 is not.
    scene.sql("UPDATE tidegate_ledger SET written_ms = 0 WHERE closed_by <> 3").await;
    // One of another sink of this job is old too.
    scene
        .sql(
            "INSERT INTO tidegate_ledger SELECT gtrid, REPLACE(bqual, 'sink', 'other'), target, closed_by, rows_written, \
             written_ms, note FROM tidegate_ledger WHERE closed_by = 2",
        )
        .await;
    assert_eq!(closed_by(scene).await, [1, 2, 2, 3, 4, 7]);
    // A left-over branch: its ledger row is locked, whoever scans would wait for it.
    let mut writer = scene.writer(&sink, 1).await;
    let left = scene.prepare(&mut writer, &scene.name(4, 1), &[(4, 1)]).await;
    drop(writer);

    // Of two checkpoints that can be restored one knows of 4, the other of 6.
    let mut context = scene.context(scene.name(2_000, 2));
    context.connector.claim = log_that_knows(scene, &[4, 6]).await;
    let mut committer = sink.open_committer(context).await.unwrap();
    let mut writer = scene.writer(&sink, 2).await;
    let item = scene.prepare(&mut writer, &scene.name(2_000, 2), &[(9, 1)]).await;
    drop(writer);
    assert_eq!(settle(scene, &mut committer, &item).await, CommitOutcome::Committed);
    assert_eq!(closed_by(scene).await, [2, 3, 7, 2_001], "gone: 1, 2 and 4 of this sink");
    if prepared_stays {
        assert_eq!(scene.branches().await.len(), 1);
    }
    assert_eq!(settle(scene, &mut committer, &left).await, CommitOutcome::Committed);
}

#[test]
fn old_rows_go_once_no_checkpoint_can_ask_for_them_and_never_wait_for_a_prepared_branch() {
    on_both(async |scene| {
        scene.table().await;
        goes(&scene, scene.sink("t"), true).await;
        assert_eq!(scene.rows("t").await.len(), 7);
    });
}

#[test]
fn the_staging_sink_prunes_by_the_same_rule() {
    on_both(async |scene| {
        scene.table().await;
        goes(&scene, scene.sink("t").staging(), false).await;
        assert_eq!(scene.rows("t").await.len(), 7);
    });
}

#[test]
fn a_log_without_a_checkpoint_that_knows_of_the_sink_keeps_every_row() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut context = scene.context(scene.name(0, 1));
        context.connector.claim = log_that_knows(&scene, &[]).await;
        let mut committer = sink.open_committer(context).await.unwrap();
        for after in [0, 1] {
            let mut writer = scene.writer(&sink, 1).await;
            let item = scene.prepare(&mut writer, &scene.name(after, 1), &[(after, 1)]).await;
            drop(writer);
            scene.sql("UPDATE tidegate_ledger SET written_ms = 0").await;
            assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        }
        assert_eq!(closed_by(&scene).await, [1, 2]);
    });
}

/// An old row, as an earlier attempt has left it.
async fn old_row(scene: &Scene, opened_after: u64) {
    let xid = Xid::of(&scene.name(opened_after, 1));
    let (gtrid, bqual) = (String::from_utf8_lossy(&xid.gtrid), String::from_utf8_lossy(&xid.bqual));
    let closed_by = opened_after + 1;
    scene
        .sql(&format!(
            "INSERT INTO tidegate_ledger VALUES ('{gtrid}', '{bqual}', 't', {closed_by}, 1, 0, NULL)"
        ))
        .await;
}

/// Where each branch is committed in its own session, nobody asks the committer's.
#[test]
fn pruning_goes_on_after_the_server_has_closed_the_committers_connection() {
    on_both(async |scene| {
        scene.table().await;
        let (sink, clock) = (scene.sink("t"), ManualClock::shared());
        clock.advance(Duration::from_millis(SystemClock::new().wall_ms().unsigned_abs()));
        let mut context = scene.context(scene.name(2_000, 2));
        context.connector.clock = clock.clone();
        context.connector.claim = log_that_knows(&scene, &[1_000]).await;
        let mut committer = sink.open_committer(context).await.unwrap();
        for (round, after) in [2_000, 2_001].into_iter().enumerate() {
            old_row(&scene, round as u64).await;
            scene.end_others().await;
            let mut writer = sink.open_writer(scene.context(scene.name(after, 2))).await.unwrap();
            let item = scene.prepare(&mut writer, &scene.name(after, 2), &[(after, 1)]).await;
            drop(writer);
            assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
            assert!(
                !closed_by(&scene).await.contains(&(round as u64 + 1)),
                "round {round}: the old row is gone"
            );
            clock.advance(Duration::from_secs(601));
        }
    });
}

/// Does not answer any more, once it is told so.
#[derive(Debug, Default)]
struct Hangs(AtomicBool);

impl StoreFaults for Hangs {
    fn before(&self, _: StoreOp, _: &Path) -> BoxFuture<'static, FaultAction> {
        match self.0.load(Ordering::Relaxed) {
            true => Box::pin(std::future::pending()),
            false => Box::pin(std::future::ready(FaultAction::Proceed)),
        }
    }
}

#[test]
fn a_commit_is_answered_although_the_commit_log_that_pruning_asks_hangs() {
    on_both(async |scene| {
        scene.table().await;
        let (sink, hangs) = (scene.sink("t"), Arc::new(Hangs::default()));
        let store = CheckpointStorage::open("memory://").unwrap().object_store().clone();
        let store = FaultyStore::new(store, Arc::clone(&hangs) as Arc<dyn StoreFaults>);
        let storage = CheckpointStorage::over(Arc::new(store), "memory://");
        let mut context = scene.context(scene.name(2_000, 2));
        context.connector.claim = log_in(&scene, storage, &[1_000]).await;
        let mut committer = sink.open_committer(context).await.unwrap();
        hangs.0.store(true, Ordering::Relaxed);
        let mut writer = sink.open_writer(scene.context(scene.name(2_000, 2))).await.unwrap();
        let item = scene.prepare(&mut writer, &scene.name(2_000, 2), &[(1, 1)]).await;
        drop(writer);
        let clock = SystemClock::new();
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        assert!(clock.now() < Duration::from_secs(6), "{:?}", clock.now());
    });
}
