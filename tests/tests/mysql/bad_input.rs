//! What is wrong is told before the job runs where it can be known, and otherwise with the row or column; nothing is written.

use tidegate::connectors::mysql::{Decimal, MysqlSink, MysqlUrl};
use tidegate::engine::api::{ConnectorError, Sink, TwoPhaseSink, TwoPhaseWriter, Writer};
use tidegate::engine::element::Batch;
use tidegate::prelude::*;

use super::scene::{Scene, on_both};

async fn refused<S: TwoPhaseSink>(scene: &Scene, sink: &S) -> String {
    let refused = match sink.validate() {
        Ok(()) => sink.preflight(scene.preflight(1)).await.unwrap_err(),
        Err(error) => error,
    };
    refused.full_text()
}

#[test]
fn wrong_logins_tables_and_columns_are_refused_at_submit() {
    on_both(async |scene| {
        scene.table().await;
        let at = |url: MysqlUrl| MysqlSink::table(url, "t").column("user_id", |n: &u64| *n);
        let url = || scene.url.clone();
        let cases = [
            (at(url().with_login("tidegate", "wrong-secret")), "refuses user \"tidegate\""),
            (at(url().with_database("tidegate_no_such")), "1049"),
            (at(url().with_address("127.0.0.1", 1)), "connecting to 127.0.0.1:1/"),
            (MysqlSink::table(url(), "no_such").column("user_id", |n: &u64| *n), "CREATE"),
            (
                MysqlSink::table(url(), "no_such").column("user_id", |n: &u64| *n),
                "`user_id` bigint unsigned NOT NULL",
            ),
            (MysqlSink::table(url(), "t").column("x", |n: &u64| *n), "the table has user_id, cents"),
            (at(url()), "the column \"cents\" is NOT NULL without a default"),
            (at(url()).column("cents", |n| Some(*n)), "may write NULL"),
            (at(url()).column("cents", |n| n.to_string()), "the column \"cents\" is bigint"),
            (at(url()).column("cents", |n| *n).add_by("user_id"), "neither its primary key nor a unique key"),
            (MysqlSink::table("mysql://u:secret@h", "t").column("x", |n: &u64| *n), "has no database"),
        ];
        for (sink, expected) in cases {
            let said = refused(&scene, &sink).await;
            assert!(said.to_lowercase().contains(&expected.to_lowercase()), "{expected}: {said}");
            assert!(!said.contains("secret"), "{said}");
        }
        let plain = at(scene.url.clone()).plain();
        let said = plain.preflight(scene.preflight(1)).await.unwrap_err().full_text();
        assert!(said.contains("NOT NULL without a default"), "{said}");
    });
}

#[test]
fn a_sink_that_merges_rows_in_several_subtasks_without_a_key_in_front_of_it_is_refused() {
    fn sums() -> MysqlSink<(u64, i64)> {
        MysqlSink::table("mysql://u:p@127.0.0.1:1/d", "s")
            .column("user_id", |pair: &(u64, i64)| pair.0)
            .column("cents", |pair| pair.1)
    }
    fn keyed(pairs: &DataStream<(u64, i64)>) -> DataStream<(u64, i64)> {
        pairs.key_by(|pair| pair.0).process(
            "keyed",
            value::<u64>("seen"),
            |pair: (u64, i64), _seen, _context, out: &mut Output<(u64, i64)>| {
                out.emit(pair);
                Ok(())
            },
        )
    }
    type Pairs = DataStream<(u64, i64)>;
    type Build = Box<dyn Fn(&Pairs)>;
    let check = |parallelism, build: &dyn Fn(&Pairs)| {
        let env = StreamEnvironment::new();
        build(&env.source("pairs", Datagen::new(|n| (n, 1_i64)).bounded(1)));
        env.into_graph("sums", parallelism, 128).map(drop).map_err(|error| tidegate::error_text(&error))
    };
    let refused: [Build; 4] = [
        Box::new(|pairs| drop(pairs.sink("s", sums().add_by("user_id")))),
        Box::new(|pairs| drop(pairs.sink("s", sums().overwrite_by("user_id").staging()))),
        Box::new(|pairs| drop(pairs.rebalance().map(|pair| pair).sink("s", sums().add_by("user_id")))),
        // Only one of two inputs is keyed.
        Box::new(|pairs| {
            drop(keyed(pairs).union(&pairs.map(|pair| pair)).sink("s", sums().add_by("user_id")));
        }),
    ];
    for (index, build) in refused.iter().enumerate() {
        let said = check(2, build.as_ref()).unwrap_err();
        assert!(
            said.contains("no key_by stands in front of it") && said.contains("\"s\""),
            "{index}: {said}"
        );
        check(1, build.as_ref()).unwrap();
    }
    let taken: [Build; 3] = [
        Box::new(|pairs| drop(pairs.key_by(|pair| pair.0).sink("s", sums().add_by("user_id")))),
        Box::new(|pairs| {
            drop(keyed(pairs).map(|pair| pair).sink("s", sums().add_by("user_id").staging()));
        }),
        Box::new(|pairs| drop(pairs.sink("s", sums()))),
    ];
    for build in &taken {
        check(2, build.as_ref()).unwrap();
    }
}

/// Writes one row and prepares; the error.
async fn written(scene: &Scene, column: &str, sink: MysqlSink<u64>) -> ConnectorError {
    scene.sql(&format!("DROP TABLE IF EXISTS v; CREATE TABLE v ({column})")).await;
    let mut writer = scene.writer(&sink, 1).await;
    writer.write(&scene.name(0, 1), Batch::of(vec![7])).await.unwrap();
    let error = writer.prepare().await.unwrap_err();
    assert_eq!(scene.ask::<(u64,)>("SELECT COUNT(*) FROM v").await, [(0,)]);
    error
}

#[test]
fn a_value_that_does_not_fit_is_named_with_its_column_and_no_restart_is_tried() {
    on_both(async |scene| {
        let v = || MysqlSink::<u64>::table(&scene.url, "v");
        let cases = [
            ("x VARCHAR(3)", v().column("x", |_| "abcd".to_owned()), "'x'"),
            ("x TINYINT", v().column("x", |_| 300_i64), "'x'"),
            ("x BIGINT UNSIGNED", v().column("x", |_| -1_i64), "'x'"),
            ("x BIGINT", v().column("x", |_| u64::MAX), "'x'"),
            ("x DECIMAL(4,2)", v().column("x", |_| Decimal { unscaled: 12_345, scale: 2 }), "'x'"),
            ("x DECIMAL(4,1)", v().column("x", |_| Decimal { unscaled: 123, scale: 2 }), "'x'"),
            ("x INT NOT NULL", v().column("x", |_| None::<i32>), "'x'"),
        ];
        for (column, sink, expected) in cases {
            let error = written(&scene, column, sink).await;
            let said = error.full_text();
            assert!(!error.restartable && said.contains(expected), "{column}: {said}");
            assert!(said.contains("writing rows into the table v"), "{column}: {said}");
        }
        let mut writer = scene.writer(&v().column("x", |_| f64::NAN), 1).await;
        let error = writer.write(&scene.name(0, 1), Batch::of(vec![7])).await.unwrap_err();
        assert!(
            !error.restartable && error.message.contains("row 1 for the table v: column \"x\""),
            "{error}"
        );
    });
}

#[test]
fn a_value_that_is_too_long_or_out_of_range_is_told_with_its_row() {
    on_both(async |scene| {
        // The bad row stands in the second statement, which is written at the barrier.
        let rows = |bad: i64| -> Vec<(u64, i64)> {
            (1..=1_300).map(|id| if id == 1_103 { (id, bad) } else { (id, 1) }).collect()
        };
        let sums = || {
            MysqlSink::table(&scene.url, "k")
                .column("cents", |row: &(u64, i64)| row.1)
                .column("user_id", |row| row.0)
        };
        let log = || MysqlSink::table(&scene.url, "l").column("user_id", |row: &(u64, i64)| row.0);
        let log = || log().column("name", |row| "x".repeat(usize::try_from(row.1).unwrap()));
        scene
            .sql("CREATE TABLE k (user_id BIGINT UNSIGNED NOT NULL PRIMARY KEY, cents TINYINT NOT NULL)")
            .await;
        scene.sql("CREATE TABLE l (user_id BIGINT UNSIGNED NOT NULL, name VARCHAR(3) NOT NULL)").await;
        let said = |error: ConnectorError, row: &str, column: &str| {
            let said = error.full_text();
            assert!(!error.restartable && said.contains(row) && said.contains(column), "{row}: {said}");
        };
        let by_key = "row 1103 (user_id = 1103) does not fit";
        let mut writer = scene.writer(&sums().overwrite_by("user_id"), 1).await;
        said(written_rows(&scene, &mut writer, 1, rows(300)).await, by_key, "'cents'");
        drop(writer);
        let mut writer = scene.writer(&sums().overwrite_by("user_id").staging(), 2).await;
        said(written_rows(&scene, &mut writer, 2, rows(300)).await, by_key, "'cents'");
        drop(writer);
        let mut writer = scene.writer(&log(), 3).await;
        let without_key = "row 1103 (user_id = 1103, name = 'xxxxxx') does not fit";
        said(written_rows(&scene, &mut writer, 3, rows(6)).await, without_key, "'name'");
        let mut plain = log().plain().open(scene.connector(), 0).await.unwrap();
        let error = plain.write(Batch::of(rows(6))).await.unwrap_err();
        said(error, without_key, "'name'");
        for table in ["k", "l"] {
            assert_eq!(scene.ask::<(u64,)>(&format!("SELECT COUNT(*) FROM {table}")).await, [(0,)]);
        }
    });
}

/// Writes rows and prepares; the error.
async fn written_rows<W: TwoPhaseWriter<Record = (u64, i64)>>(
    scene: &Scene,
    writer: &mut W,
    attempt: u64,
    rows: Vec<(u64, i64)>,
) -> ConnectorError {
    let mut rows = rows.into_iter();
    let name = scene.name(0, attempt);
    // A statement, and less than one.
    for batch in [1_000, 300] {
        let batch = Batch::of(rows.by_ref().take(batch).collect());
        if let Err(error) = writer.write(&name, batch).await {
            return error;
        }
    }
    writer.prepare().await.err().unwrap()
}

#[test]
fn a_key_that_comes_twice_is_named_and_a_row_above_the_packet_is_refused_before_it_is_sent() {
    on_both(async |scene| {
        scene.keyed_table().await;
        let sink = scene.sink("s");
        let mut writer = scene.writer(&sink, 1).await;
        writer.write(&scene.name(0, 1), Batch::of(vec![(7, 1), (7, 2)])).await.unwrap();
        let error = writer.prepare().await.unwrap_err();
        let said = error.full_text();
        assert!(
            !error.restartable && said.contains("the key is there already") && said.contains("'7'"),
            "{said}"
        );
        scene.sql("CREATE TABLE b (x LONGBLOB)").await;
        let large =
            MysqlSink::table(&scene.url, "b").column("x", |n: &u64| vec![0_u8; usize::try_from(*n).unwrap()]);
        let limit = scene.connect().await.packet_bytes_max();
        let mut writer = scene.writer(&large, 2).await;
        let rows = vec![10, limit as u64];
        writer.write(&scene.name(1, 2), Batch::of(rows)).await.unwrap();
        let error = writer.prepare().await.unwrap_err();
        let said = error.full_text();
        assert!(!error.restartable && said.contains("row 2 for the table b"), "{said}");
        assert!(said.contains(&limit.to_string()) && said.contains("max_allowed_packet"), "{said}");
        assert_eq!(scene.ask::<(u64,)>("SELECT COUNT(*) FROM b").await, [(0,)]);
    });
}
