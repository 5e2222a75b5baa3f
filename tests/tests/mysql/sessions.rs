//! How the sinks' sessions are set up, how long they live, and when they end.

use std::time::Duration;

use tidegate::connectors::mysql::ServerKind;
use tidegate::engine::api::{Committer, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter};
use tidegate::engine::element::Batch;
use tidegate::engine::operator::CommitOutcome;
use tidegate_jobs::services::ServiceKind;

use super::chain::staging_tables;
use super::scene::{Scene, on, on_both};

/// The shortest that a job with these sinks may have: a silent session is closed after 1 s, a lock is waited for as long.
const SHORT_TIMEOUT: Duration = Duration::from_secs(2);
/// Longer than a session may be silent.
const SILENCE: Duration = Duration::from_millis(2_500);
/// Enough rows for a statement, so that a transaction is open.
const ROWS: usize = 1_200;

fn short(scene: &Scene) -> TwoPhaseContext {
    let mut context = scene.context(scene.name(0, 1));
    context.connector.checkpoint_timeout = SHORT_TIMEOUT;
    context
}

/// Sessions in this scene's database beside the one that asks.
async fn sessions(scene: &Scene) -> Vec<u64> {
    let sql = "SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE() AND ID <> CONNECTION_ID()";
    scene.ask::<(u64,)>(sql).await.into_iter().map(|(id,)| id).collect()
}

#[test]
fn a_session_reads_committed_rows_is_strict_and_in_utc_and_waits_less_than_a_checkpoint_may_take() {
    on_both(async |scene| {
        scene.table().await;
        let mut writer = scene.writer(&scene.sink("t"), 1).await;
        writer.write(&scene.name(0, 1), Batch::of(vec![(1, 1); ROWS])).await.unwrap();
        let isolation = "SELECT trx_isolation_level FROM information_schema.INNODB_TRX WHERE trx_mysql_thread_id IN \
                         (SELECT ID FROM information_schema.PROCESSLIST WHERE DB = DATABASE())";
        let mut looks = 0;
        let found = loop {
            // What is shown is a copy, which is not renewed as long as somebody looks again within 100 ms.
            match scene.ask::<(String,)>(isolation).await {
                none if none.is_empty() => looks += 1,
                found => break found,
            }
            assert!(looks < 40, "no transaction is open");
            scene.io.sleep(Duration::from_millis(200)).await;
        };
        assert_eq!(found, [("READ COMMITTED".to_owned(),)]);
        writer.discard().await.unwrap();
        let set = "SELECT @@SESSION.time_zone, @@SESSION.sql_mode, @@SESSION.innodb_lock_wait_timeout, \
                   @@SESSION.lock_wait_timeout, @@SESSION.wait_timeout";
        let (zone, mode, row_wait, table_wait, idle): (String, String, u64, u64, u64) =
            scene.ask(set).await.remove(0);
        assert_eq!((zone.as_str(), row_wait, table_wait, idle), ("+00:00", 3, 3, 6), "of a timeout of 8 s");
        assert!(mode.contains("STRICT_ALL_TABLES"), "{mode}");
    });
}

/// Both servers at the same time: what is tested is a span.
fn on_both_beside<F: Future<Output = ()>>(scenario: impl Fn(std::sync::Arc<Scene>) -> F + Sync) {
    std::thread::scope(|threads| {
        for kind in [ServiceKind::MariaDb, ServiceKind::MySql] {
            let scenario = &scenario;
            threads.spawn(move || on(kind, scenario));
        }
    });
}

#[test]
fn a_session_that_has_nothing_to_do_for_long_keeps_its_branch_open_and_prepared() {
    on_both_beside(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        drop(scene.committer(&sink, 1).await);
        let mut writer = sink.open_writer(short(&scene)).await.unwrap();
        writer.write(&scene.name(0, 1), Batch::of(vec![(1, 1); ROWS])).await.unwrap();
        scene.alone_but_for(1).await;
        // The oldest: the one that asked just before may still be ending.
        let own = sessions(&scene).await.into_iter().min().unwrap();
        scene.io.sleep(SILENCE).await;
        assert!(sessions(&scene).await.contains(&own), "the server has closed the silent session");
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(2, 2)]).await;
        scene.io.sleep(SILENCE).await;
        if scene.kind == ServerKind::MariaDb {
            assert!(sessions(&scene).await.contains(&own), "the branch has lost its session");
        }
        let mut committer = sink.open_committer(short(&scene)).await.unwrap();
        assert_eq!(committer.commit(&item).await.unwrap(), CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await.len(), ROWS + 1);
    });
}

#[test]
fn a_staging_writer_that_cannot_drop_its_table_ends_its_session_all_the_same() {
    on_both_beside(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").staging();
        drop(scene.committer(&sink, 1).await);
        let mut writer = sink.open_writer(short(&scene)).await.unwrap();
        writer.write(&scene.name(0, 1), Batch::of(vec![(1, 1); ROWS])).await.unwrap();
        let mut reader = scene.connect().await;
        let like = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
                    AND TABLE_NAME LIKE 'tidegate\\_staging%'";
        let (table,) = scene.ask::<(String,)>(like).await.remove(0);
        for sql in ["START TRANSACTION".to_owned(), format!("SELECT COUNT(*) FROM {table}")] {
            reader.run("reading a staging table", &sql).await.unwrap();
        }
        let said = writer.discard().await.unwrap_err().full_text();
        assert!(said.contains("dropping the staging table"), "{said}");
        let reads = reader.id();
        scene.alone_but_for(1).await;
        assert_eq!(sessions(&scene).await, [reads], "the writer's session lives");
        reader.close().await;
        // The next attempt's sweep takes the table.
        let mut committer = sink.open_committer(short(&scene)).await.unwrap();
        for name in committer.list().await.unwrap() {
            committer.roll_back(&name).await.unwrap();
        }
        assert_eq!(staging_tables(&scene).await, 0);
    });
}
