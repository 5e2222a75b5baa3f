//! Rows that somebody else holds. Deadlocks that really happen: a session of the test's own and the sink take two rows in opposite order,
//! and the server rolls the sink back, which has changed fewer rows. And waits in vain, whose error names the holder.

use std::sync::Arc;
use std::time::Duration;

use tidegate::connectors::mysql::{Connection, ServerKind};
use tidegate::engine::api::{Committer, TwoPhaseSink};
use tidegate::engine::operator::CommitOutcome;
use tidegate::prelude::*;
use tidegate::state::CheckpointStorage;
use tidegate_tests::Ended;

use super::chain::{config, numbers, run_job, run_watched};
use super::scene::{Pair, Scene, on_both, settle};

const RECORDS: u64 = 400;
/// What the test's session holds beside the second row: it is the heavier one of the two.
const HEAVY: u64 = 500;
/// Within this a deadlock is found; a lock's wait would take longer.
const SOON: Duration = Duration::from_secs(4);

/// The rows 1 and 2, and many others.
async fn table(scene: &Scene) {
    scene.keyed_table().await;
    let heavy: Vec<String> = (1_000..1_000 + HEAVY).map(|key| format!("({key}, 0)")).collect();
    scene.sql(&format!("INSERT INTO s VALUES (1, 0), (2, 0), {}", heavy.join(", "))).await;
}

/// The transactions of this scene's sessions that wait for a lock. (The server's own text: the tables of its information schema are
/// copies, which are not renewed as long as somebody looks again within 100 ms.)
async fn waiting(scene: &Scene) -> Vec<String> {
    let sessions: Vec<(u64,)> =
        scene.ask("SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE()").await;
    let status: Vec<(String, String, String)> = scene.ask("SHOW ENGINE INNODB STATUS").await;
    let is_ours = |told: &&str| sessions.iter().any(|(id,)| told.contains(&format!(" thread id {id},")));
    let waits = status[0].2.split("---TRANSACTION ").filter(|told| told.contains("LOCK WAIT"));
    waits.filter(is_ours).map(|told| told.split(',').next().unwrap().to_owned()).collect()
}

/// Takes the second row (and more), and the first one as soon as the sink, which has that, waits for the second.
async fn cross(scene: Arc<Scene>, mut hand: Connection) {
    let mut looks = 0;
    let sinks = loop {
        if let Some(id) = waiting(&scene).await.pop() {
            break id;
        }
        looks += 1;
        assert!(looks < 2_000, "the sink never waited for the second row");
        scene.io.sleep(Duration::from_millis(10)).await;
    };
    let first = hand.run("closing the circle", "UPDATE s SET cents = cents + 1 WHERE user_id = 1");
    tokio::time::timeout(SOON, first).await.unwrap().unwrap();
    // The second row is still this session's: the sink's transaction has not come through, it is rolled back.
    assert!(!waiting(&scene).await.contains(&sinks), "the sink had not taken the first row");
    hand.run("letting go", "ROLLBACK").await.unwrap();
}

/// Runs a job that adds to, or writes, the rows 1 and 2 in turn, and loses in a deadlock.
async fn run_crossed(scene: &Arc<Scene>, build: impl FnOnce(DataStream<Pair>)) -> Ended {
    let mut hand = scene.connect().await;
    for sql in ["START TRANSACTION", "UPDATE s SET cents = cents + 1 WHERE user_id >= 2"] {
        hand.run("taking rows", sql).await.unwrap();
    }
    let crossing = tokio::spawn(cross(Arc::clone(scene), hand));
    let env = StreamEnvironment::new();
    build(numbers(&env, RECORDS, 1_000, |_| ()).map(|n| -> Pair { (1 + n % 2, 1) }));
    let ended = run_job(scene, env, 1, config(100));
    crossing.await.unwrap();
    ended
}

async fn rows(scene: &Scene) -> Vec<Pair> {
    let mut rows = scene.rows("s").await;
    assert!(rows.split_off(2).iter().all(|(_, cents)| *cents == 0), "rows of nobody's were changed");
    rows
}

#[test]
fn an_xa_branch_that_loses_in_a_deadlock_is_written_anew_after_one_restart() {
    on_both(async |scene| {
        table(&scene).await;
        let sink = scene.sink("s").add_by("user_id");
        let ended = run_crossed(&scene, |stream| drop(stream.sink("out", sink))).await;
        ended.finished();
        assert_eq!(ended.restarts.len(), 1, "{ended:?}");
        assert!(ended.restarts[0].contains("rolled back in a deadlock"), "{ended:?}");
        let half = i64::try_from(RECORDS / 2).unwrap();
        assert_eq!(rows(&scene).await, [(1, half), (2, half)]);
        assert_eq!(scene.branches().await, Vec::<String>::new());
    });
}

#[test]
fn a_merge_that_loses_in_a_deadlock_is_repeated_without_a_restart() {
    on_both(async |scene| {
        table(&scene).await;
        let sink = scene.sink("s").add_by("user_id").staging();
        run_crossed(&scene, |stream| drop(stream.sink("out", sink))).await.unbroken();
        let half = i64::try_from(RECORDS / 2).unwrap();
        assert_eq!(rows(&scene).await, [(1, half), (2, half)]);
    });
}

#[test]
fn an_upsert_that_loses_in_a_deadlock_is_repeated_without_a_restart() {
    on_both(async |scene| {
        table(&scene).await;
        let sink = scene.sink("s").upsert_by("user_id");
        run_crossed(&scene, |stream| drop(stream.sink("out", sink))).await.unbroken();
        assert_eq!(rows(&scene).await, [(1, 1), (2, 1)]);
    });
}

/// A lock of one second: the shortest that servers know.
const SHORT_TIMEOUT: Duration = Duration::from_secs(3);

#[test]
fn a_merge_and_an_upsert_that_wait_for_a_row_in_vain_say_who_holds_it() {
    on_both(async |scene| {
        table(&scene).await;
        let mut hand = scene.connect().await;
        for sql in ["START TRANSACTION", "UPDATE s SET cents = cents + 1 WHERE user_id = 1"] {
            hand.run("taking a row", sql).await.unwrap();
        }
        let held = format!("a row stayed locked, held by connection {}", hand.id());

        let sink = scene.sink("s").add_by("user_id").staging();
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 1)]).await;
        let mut context = scene.context(scene.name(0, 1));
        context.connector.checkpoint_timeout = SHORT_TIMEOUT;
        let mut committer = sink.open_committer(context).await.unwrap();
        let CommitOutcome::RetryAfter { reason, .. } = committer.commit(&item).await.unwrap() else {
            panic!("it was merged over a locked row")
        };
        assert!(reason.contains(&named(&scene, &held)), "{reason}");

        let mut config = config(100);
        config.checkpoints.timeout_ms = u64::try_from(SHORT_TIMEOUT.as_millis()).unwrap();
        let env = StreamEnvironment::new();
        let one = numbers(&env, 1, 1_000, |_| ()).map(|_| -> Pair { (1, 7) });
        let _ = one.sink("out", scene.sink("s").upsert_by("user_id").max_retries(0));
        let mut hand = Some(hand);
        let runtime = tokio::runtime::Handle::current();
        let storage = CheckpointStorage::open("memory://").unwrap();
        let ended = run_watched(&scene, env, 1, config, storage, |_| {
            runtime.block_on(async { hand.take().unwrap().close().await });
        });
        ended.finished();
        assert!(ended.restarts[0].contains(&named(&scene, &held)), "{ended:?}");
        assert_eq!(rows(&scene).await, [(1, 7), (2, 0)]);
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
    });
}

/// What is said of a holder. MySQL tells it to those who may read its performance schema only.
fn named(scene: &Scene, held: &str) -> String {
    match scene.kind {
        ServerKind::MariaDb => held.to_owned(),
        ServerKind::MySql => "a row stayed locked, held by".to_owned(),
    }
}
