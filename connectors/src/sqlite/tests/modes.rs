//! What becomes of rows: append, overwrite, add, and every type of value.

use super::*;

#[test]
fn appending_without_a_key_keeps_every_row_in_order() {
    testing::run(async {
        let scene = Scene::new();
        let rows: Vec<Pair> = (0..3_000).map(|i| (i % 7, i64::try_from(i).unwrap())).collect();
        let mut writer = scene.writer(&scene.log()).await;
        for batch in rows.chunks(700) {
            writer.write(&name(0, 1), Batch::of(batch.to_vec())).await.unwrap();
        }
        let committable = writer.prepare().await.unwrap().unwrap();
        assert_eq!(committable.rows, 3_000);
        let item = Prepared { name: name(0, 1), closed_by: CheckpointId(1), committable };
        scene.commit(&scene.log(), &item).await;
        assert_eq!(scene.rows(), rows);
    });
}

#[test]
fn the_last_of_a_transaction_overwrites() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().overwrite_by("user_id");
        for (after, rows) in [[(1, 10), (2, 20), (1, 11)], [(2, 21), (1, 12), (2, 19)]].iter().enumerate() {
            let item = scene.prepared(&sink, after as u64, rows).await;
            scene.commit(&sink, &item).await;
        }
        assert_eq!(scene.rows(), [(1, 12), (2, 19)]);
    });
}

#[test]
fn adding_adds_within_and_over_transactions() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().add_by("user_id");
        for (after, rows) in [vec![(1, 10), (2, 20), (1, 1)], vec![(1, 100)]].iter().enumerate() {
            let item = scene.prepared(&sink, after as u64, rows).await;
            scene.commit(&sink, &item).await;
        }
        assert_eq!(scene.rows(), [(1, 111), (2, 20)]);
    });
}

#[test]
fn adding_above_the_largest_number_fails_and_does_not_become_a_float() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().add_by("user_id");
        let item = scene.prepared(&sink, 0, &[(1, i64::MAX), (1, i64::MAX)]).await;
        let error = scene.committer(&sink).await.commit(&item).await.unwrap_err();
        assert!(!error.restartable, "{}", text(error));
        assert!(scene.rows().is_empty());
    });
}

#[test]
fn a_key_that_comes_twice_when_appending_is_fatal_and_named() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().primary_key("user_id");
        let first = scene.prepared(&sink, 0, &[(7, 1)]).await;
        scene.commit(&sink, &first).await;
        for (after, rows) in [(1, vec![(8, 1), (7, 2)]), (2, vec![(9, 1), (9, 2)])] {
            let item = scene.prepared(&sink, after, &rows).await;
            let error = scene.committer(&sink).await.commit(&item).await.unwrap_err();
            assert!(!error.restartable);
            let wanted =
                format!("already has a row with the key user_id = {}", if after == 1 { 7 } else { 9 });
            let error = text(error);
            assert!(error.contains(&wanted) && error.contains("table t in"), "{error}");
        }
        assert_eq!(scene.rows(), [(7, 1)], "a failed merge leaves nothing");
        assert_eq!(staging_tables(&scene.file()), 2, "and keeps what was staged");
    });
}

#[test]
fn all_types_arrive_and_names_may_be_odd() {
    testing::run(async {
        let scene = Scene::new();
        let sink =
            SqliteSink::table(scene.file(), "select \"it\"").columns(|columns: Columns<(String, f64)>| {
                columns
                    .text("from", |r| &r.0)
                    .column("a b", |r: &(String, f64)| r.1)
                    .column("flag", |_| true)
                    .column("bytes", |_| vec![1_u8, 2])
                    .column("none", |_| None::<i32>)
            });
        let mut writer = sink.open_writer(scene.context(name(0, 1))).await.unwrap();
        writer.write(&name(0, 1), Batch::of(vec![("it's".to_owned(), 0.5)])).await.unwrap();
        let committable = writer.prepare().await.unwrap().unwrap();
        let item = Prepared { name: name(0, 1), closed_by: CheckpointId(1), committable };
        let mut committer = sink.open_committer(scene.context(name(0, 1))).await.unwrap();
        assert_eq!(committer.commit(&item).await.unwrap(), CommitOutcome::Committed);
        let sql = "SELECT \"from\", \"a b\", flag, bytes, \"none\" FROM \"select \"\"it\"\"\"";
        let row: (String, f64, bool, Vec<u8>, Option<i32>) = Connection::open(scene.file())
            .unwrap()
            .query_row(sql, [], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))
            .unwrap();
        assert_eq!(row, ("it's".to_owned(), 0.5, true, vec![1, 2], None));
    });
}
