//! The staging-table sink.

use tidegate::engine::api::{Committer, TwoPhaseWriter};
use tidegate::engine::element::Batch;
use tidegate::engine::operator::CommitOutcome;

use super::scene::{Pair, Scene, on_both, settle};

async fn staging_tables(scene: &Scene) -> usize {
    let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = DATABASE() \
               AND TABLE_NAME LIKE 'tidegate\\_staging%'";
    scene.ask::<(String,)>(sql).await.len()
}

#[test]
fn staged_rows_are_merged_once_and_their_table_goes() {
    on_both(async |scene| {
        scene.keyed_table().await;
        scene.sql("INSERT INTO s VALUES (1, 5)").await;
        let sink = scene.sink("s").add_by("user_id").staging();
        let mut writer = scene.writer(&sink, 1).await;
        let rows: Vec<Pair> = (0..1_200).map(|n| (n % 3, 1)).collect();
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &rows).await;
        assert_eq!((item.committable.rows, scene.rows("s").await), (1_200, vec![(1, 5)]));
        assert_eq!(staging_tables(&scene).await, 1);
        let mut committer = scene.committer(&sink, 1).await;
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows("s").await, [(0, 400), (1, 405), (2, 400)]);
        assert_eq!(settle(&scene, &mut committer, &item).await, CommitOutcome::AlreadyCommitted);
        assert_eq!((scene.rows("s").await[0], staging_tables(&scene).await), ((0, 400), 0));
    });
}

#[test]
fn the_last_row_of_a_key_wins_when_staged_rows_overwrite() {
    on_both(async |scene| {
        scene.keyed_table().await;
        let sink = scene.sink("s").overwrite_by("user_id").staging();
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 10), (2, 20), (1, 30)]).await;
        settle(&scene, &mut scene.committer(&sink, 1).await, &item).await;
        assert_eq!(scene.rows("s").await, [(1, 30), (2, 20)]);
    });
}

#[test]
fn of_four_committers_one_merges_and_the_others_find_it_merged() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").staging();
        let mut writer = scene.writer(&sink, 1).await;
        let item = scene.prepare(&mut writer, &scene.name(0, 1), &[(1, 10)]).await;
        let tasks: Vec<_> = (0..4)
            .map(|_| {
                let (scene, item, sink) = (scene.clone(), item.clone(), sink.clone());
                tokio::spawn(async move {
                    let mut committer = scene.committer(&sink, 1).await;
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
        assert_eq!((committed, scene.rows("t").await), (1, vec![(1, 10)]));
    });
}

#[test]
fn a_discarded_or_rolled_back_table_is_gone_and_lost_and_one_with_rows_missing_is_not_merged() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").staging();
        let mut writer = scene.writer(&sink, 1).await;
        writer.write(&scene.name(0, 1), Batch::of(vec![(1, 1); 1_200])).await.unwrap();
        writer.discard().await.unwrap();
        assert_eq!(staging_tables(&scene).await, 0);
        let item = scene.prepare(&mut writer, &scene.name(1, 1), &[(1, 1), (2, 2)]).await;
        let short = scene.prepare(&mut writer, &scene.name(2, 1), &[(1, 1), (2, 2)]).await;
        scene.sql(&format!("DELETE FROM {} LIMIT 1", short.committable.table)).await;
        let mut committer = scene.committer(&sink, 2).await;
        assert_eq!(committer.list().await.unwrap(), [item.name.clone(), short.name.clone()]);
        committer.roll_back(&item.name).await.unwrap();
        for (item, expected) in
            [(&item, "neither a staging table nor a ledger row"), (&short, "holds 1 rows of 2")]
        {
            let outcome = settle(&scene, &mut committer, item).await;
            let CommitOutcome::Lost { reason } = outcome else { panic!("{outcome:?}") };
            assert!(reason.contains(expected), "{reason}");
        }
        assert_eq!(scene.rows("t").await, []);
    });
}

#[test]
fn a_staging_table_that_is_there_already_is_never_taken_over() {
    on_both(async |scene| {
        scene.table().await;
        let sink = scene.sink("t").staging();
        let mut writer = scene.writer(&sink, 1).await;
        let name = scene.name(0, 1);
        scene.prepare(&mut writer, &name, &[(1, 1)]).await;
        writer.write(&name, Batch::of(vec![(2, 2)])).await.unwrap();
        let error = writer.prepare().await.unwrap_err().full_text();
        assert!(error.contains("1050"), "{error}");
    });
}
