//! The life of a branch.

use std::time::Duration;

use tidegate::connectors::mysql::{ServerKind, ledger_entries};
use tidegate::engine::api::{Committer, TwoPhaseSink, TwoPhaseWriter};
use tidegate::engine::element::Batch;
use tidegate::engine::ids::CheckpointId;
use tidegate::engine::operator::CommitOutcome;

use tidegate_jobs::services::ServiceKind;

use super::scene::{Pair, Scene, on, on_both, settle};

#[test]
fn rows_are_seen_with_the_commit_and_not_before_and_the_ledger_says_so() {
    on_both(async |scene| {
        scene.table().await;
        let item = scene.prepared(0, &[(1, 10), (2, 20)]).await;
        assert_eq!((item.committable.rows, scene.rows("t").await), (2, vec![]));
        assert_eq!(scene.branches().await.len(), 1);
        let mut committer = scene.committer(&scene.sink("t"), 1).await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await, [(1, 10), (2, 20)]);
        let mut connection = scene.connect().await;
        let entries = ledger_entries(&mut connection, &item.name.scope).await.unwrap();
        assert_eq!((entries.len(), &entries[0].0), (1, &item.name));
        let entry = &entries[0].1;
        assert_eq!((entry.target.as_str(), entry.closed_by, entry.rows), ("t", CheckpointId(1), 2));
    });
}

#[test]
fn a_second_commit_changes_nothing_and_a_rolled_back_branch_is_lost_and_says_so() {
    on_both(async |scene| {
        scene.table().await;
        let (first, second) = (scene.prepared(0, &[(1, 10)]).await, scene.prepared(1, &[(2, 20)]).await);
        let mut committer = scene.committer(&scene.sink("t"), 1).await;
        assert_eq!(settle(&scene, &mut committer, &first).await, CommitOutcome::Committed);
        for _ in 0..2 {
            assert_eq!(committer.commit(&first).await.unwrap(), CommitOutcome::AlreadyCommitted);
        }
        committer.roll_back(&second.name).await.unwrap();
        committer.roll_back(&second.name).await.unwrap();
        let outcome = settle(&scene, &mut committer, &second).await;
        let CommitOutcome::Lost { reason } = outcome else { panic!("{outcome:?}") };
        assert!(reason.contains("neither lists it as prepared"), "{reason}");
        assert_eq!(scene.rows("t").await, [(1, 10)]);
    });
}

#[test]
fn a_branch_whose_preparing_session_lives_is_committed_by_ending_that_session() {
    on_both(async |scene| {
        scene.table().await;
        drop(scene.committer(&scene.sink("t"), 1).await);
        let name = scene.name(0, 1);
        let xid = tidegate::connectors::mysql::Xid::of(&name);
        // A session that does not end after PREPARE, as a client that hangs has it.
        let mut hanging = scene.connect().await;
        for sql in [
            format!("XA START {}", xid.sql()),
            "INSERT INTO t VALUES (1, 10)".to_owned(),
            format!(
                "INSERT INTO tidegate_ledger VALUES ('{}', '{}', 't', 1, 1, 0, NULL)",
                String::from_utf8_lossy(&xid.gtrid),
                String::from_utf8_lossy(&xid.bqual)
            ),
            format!("XA END {}", xid.sql()),
            format!("XA PREPARE {}", xid.sql()),
        ] {
            hanging.run("preparing by hand", &sql).await.unwrap();
        }
        let branch = tidegate::connectors::mysql::XaBranch {
            connection_id: hanging.id(),
            rows: 1,
            server: hanging.version().to_string(),
        };
        let item = tidegate::engine::api::Prepared { name, closed_by: CheckpointId(1), committable: branch };
        let mut committer = scene.committer(&scene.sink("t"), 2).await;
        let first = committer.commit(&item).await.unwrap();
        match scene.kind {
            ServerKind::MariaDb => assert!(matches!(first, CommitOutcome::RetryAfter { .. }), "{first:?}"),
            ServerKind::MySql => assert_eq!(first, CommitOutcome::Committed),
        }
        let settled = settle(&scene, &mut committer, &item).await;
        assert!(matches!(settled, CommitOutcome::Committed | CommitOutcome::AlreadyCommitted));
        assert_eq!(scene.rows("t").await, [(1, 10)]);
    });
}

#[test]
fn of_four_committers_one_commits_and_the_others_find_it_committed() {
    on_both(async |scene| {
        scene.table().await;
        for round in 0..5 {
            let item = scene.prepared(round, &[(round, 1)]).await;
            let tasks: Vec<_> = (0..4)
                .map(|_| {
                    let (scene, item) = (scene.clone(), item.clone());
                    tokio::spawn(async move {
                        let mut committer = scene.committer(&scene.sink("t"), 1).await;
                        settle(&scene, &mut committer, &item).await
                    })
                })
                .collect();
            let mut committed = 0;
            for task in tasks {
                match task.await.unwrap() {
                    CommitOutcome::Committed => committed += 1,
                    outcome => assert_eq!(outcome, CommitOutcome::AlreadyCommitted),
                }
            }
            assert_eq!(committed, 1);
        }
        assert_eq!(scene.rows("t").await.len(), 5);
    });
}

#[test]
fn an_epoch_without_records_makes_no_branch() {
    on_both(async |scene| {
        scene.table().await;
        let mut writer = scene.writer(&scene.sink("t"), 1).await;
        writer.write(&scene.name(0, 1), Batch::default()).await.unwrap();
        assert_eq!(writer.prepare().await.unwrap(), None);
        let item = scene.prepare(&mut writer, &scene.name(1, 1), &[(1, 1)]).await;
        assert_eq!(writer.prepare().await.unwrap(), None);
        assert_eq!(scene.branches().await.len(), 1);
        settle(&scene, &mut scene.committer(&scene.sink("t"), 1).await, &item).await;
    });
}

#[test]
fn several_branches_wait_prepared_while_commits_are_late_and_commit_in_order() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t");
        let mut writer = scene.writer(&sink, 1).await;
        let mut items = Vec::new();
        for epoch in 0..5_u64 {
            let rows: Vec<Pair> = (0..1_200).map(|n| (epoch * 10_000 + n, 1)).collect();
            items.push(scene.prepare(&mut writer, &scene.name(epoch, 1), &rows).await);
        }
        assert_eq!(scene.branches().await.len(), 5);
        let mut committer = sink.open_committer(scene.context(scene.name(0, 1))).await.unwrap();
        for (epoch, item) in items.iter().enumerate() {
            assert_eq!(scene.rows("t").await.len(), epoch * 1_200);
            let settled = settle(&scene, &mut committer, item).await;
            assert!(matches!(settled, CommitOutcome::Committed), "{settled:?}");
        }
        assert_eq!(scene.rows("t").await.len(), 6_000);
    });
}

#[test]
fn discarding_leaves_nothing() {
    on_both(async |scene| {
        scene.table().await;
        let mut writer = scene.writer(&scene.sink("t"), 1).await;
        writer.write(&scene.name(0, 1), Batch::of(vec![(1, 1); 1_100])).await.unwrap();
        writer.discard().await.unwrap();
        assert_eq!(writer.prepare().await.unwrap(), None);
        assert_eq!((scene.rows("t").await.len(), scene.branches().await.len()), (0, 0));
        // Its rows are unlocked.
        scene.sql("ALTER TABLE t ADD COLUMN x INT").await;
    });
}

#[test]
fn rows_are_overwritten_or_added_by_key_inside_the_branch() {
    on_both(async |scene| {
        scene.keyed_table().await;
        for (sink, expected) in [
            (scene.sink("s").add_by("user_id"), [(1, 18), (2, 20)]),
            (scene.sink("s").overwrite_by("user_id"), [(1, 3), (2, 20)]),
        ] {
            assert!(sink.holds_locks());
            scene.sql("DELETE FROM s; INSERT INTO s VALUES (1, 5)").await;
            let mut writer = scene.writer(&sink, 1).await;
            let after = u64::try_from(expected[0].1).unwrap();
            let item = scene.prepare(&mut writer, &scene.name(after, 1), &[(1, 10), (2, 20), (1, 3)]).await;
            settle(&scene, &mut scene.committer(&sink, 1).await, &item).await;
            assert_eq!(scene.rows("s").await, expected);
        }
    });
}

#[test]
fn whoever_waits_for_a_row_is_told_who_holds_it() {
    on_both(async |scene| {
        scene.keyed_table().await;
        let sink = scene.sink("s").add_by("user_id");
        let mut writer = scene.writer(&sink, 1).await;
        let held = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 10)]).await;
        writer.write(&scene.name(1, 1), Batch::of(vec![(1, 1)])).await.unwrap();
        let error = writer.prepare().await.unwrap_err();
        let said = error.full_text();
        assert!(error.restartable && said.contains("a row stayed locked"), "{said}");
        // MariaDB: the session that is kept for the branch. MySQL: nobody's session, and the branches are named.
        match scene.kind {
            ServerKind::MariaDb => assert!(said.contains("held by connection"), "{said}"),
            ServerKind::MySql => assert!(said.contains("/1.sink.0.0.1"), "{said}"),
        }
        settle(&scene, &mut scene.committer(&sink, 2).await, &held).await;
    });
}

/// Rows that are in the table, committed or not, once there are as many.
async fn rows_on_the_server(scene: &Scene, expected: u64) {
    let mut connection = scene.connect().await;
    connection.run("looking", "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED").await.unwrap();
    for _ in 0..2_000 {
        let rows = connection.rows("looking", "SELECT COUNT(*) FROM t", Vec::new()).await.unwrap();
        let (count,): (u64,) = mysql_async::from_row(rows.into_iter().next().unwrap());
        if count == expected {
            return connection.close().await;
        }
        assert!(count < expected, "{count} rows of {expected}");
        scene.io.sleep(Duration::from_millis(5)).await;
    }
    panic!("never {expected} rows");
}

#[test]
fn batches_by_number_and_by_time_are_steps_inside_the_branch() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").batch_rows(10).flush_interval(Duration::from_millis(50));
        let mut writer = scene.writer(&sink, 1).await;
        assert_eq!(writer.due(), None);
        let rows: Vec<Pair> = (0..25).map(|n| (n, 1)).collect();
        writer.write(&scene.name(0, 1), Batch::of(rows)).await.unwrap();
        // Two statements of ten went out; five rows wait.
        rows_on_the_server(&scene, 20).await;
        assert!(writer.due().is_some());
        writer.on_due().await.unwrap();
        rows_on_the_server(&scene, 25).await;
        assert_eq!((writer.due(), scene.rows("t").await.len()), (None, 0));
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(25, 1)]).await;
        assert_eq!((item.committable.rows, scene.rows("t").await.len()), (26, 0));
        let mut committer = scene.committer(&sink, 1).await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("t").await.len(), 26);
    });
}

#[test]
fn a_batch_of_no_rows_or_no_time_is_refused() {
    on(ServiceKind::MariaDb, async |scene| {
        for sink in [scene.sink("t").batch_rows(0), scene.sink("t").flush_interval(Duration::ZERO)] {
            let said = sink.validate().unwrap_err().full_text();
            assert!(said.contains("batch_rows") || said.contains("flush_interval"), "{said}");
        }
    });
}
