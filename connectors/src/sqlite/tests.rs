//! The promises of the SQLite sink, each as a test. A crash is everything dropped and the file opened anew.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use tidegate_engine::api::{
    Committer, ConnectorError, Prepared, Sink, TwoPhaseContext, TwoPhaseSink, TwoPhaseWriter, Writer,
};
use tidegate_engine::element::Batch;
use tidegate_engine::ids::{AttemptId, CheckpointId, Lineage};
use tidegate_engine::operator::{CommitOutcome, TransactionName, TransactionScope};

use super::*;
use crate::testing::{self, Bench};

type Pair = (u64, i64);

struct Scene {
    bench: Bench,
    folder: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        Self { bench: Bench::new(), folder: tempfile::tempdir().unwrap() }
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("out.db")
    }

    /// Two columns without a key.
    fn log(&self) -> SqliteSink<Pair> {
        SqliteSink::table(self.file(), "t")
            .column("user_id", |pair: &Pair| pair.0)
            .column("cents", |pair: &Pair| pair.1)
            .busy_timeout(Duration::ZERO)
    }

    fn context(&self, name: TransactionName) -> TwoPhaseContext {
        TwoPhaseContext { connector: self.bench.context(), subtask: name.subtask, parallelism: 1, name }
    }

    async fn committer(&self, sink: &SqliteSink<Pair>) -> SqliteCommitter {
        sink.open_committer(self.context(name(0, 1))).await.unwrap()
    }

    async fn writer(&self, sink: &SqliteSink<Pair>) -> SqliteWriter<Pair> {
        sink.open_writer(self.context(name(0, 1))).await.unwrap()
    }

    /// Prepares one transaction and lets everything go.
    async fn prepared(&self, sink: &SqliteSink<Pair>, after: u64, rows: &[Pair]) -> Prepared<StagedRows> {
        let mut writer = self.writer(sink).await;
        writer.write(&name(after, 1), Batch::of(rows.to_vec())).await.unwrap();
        let committable = writer.prepare().await.unwrap().unwrap();
        Prepared { name: name(after, 1), closed_by: CheckpointId(after + 1), committable }
    }

    async fn commit(&self, sink: &SqliteSink<Pair>, item: &Prepared<StagedRows>) -> CommitOutcome {
        self.committer(sink).await.commit(item).await.unwrap()
    }

    fn rows(&self) -> Vec<Pair> {
        rows_of(&self.file(), "SELECT user_id, cents FROM t ORDER BY rowid")
    }
}

fn rows_of(file: &Path, sql: &str) -> Vec<Pair> {
    let connection = Connection::open(file).unwrap();
    let mut statement = connection.prepare(sql).unwrap();
    let rows =
        statement.query_map([], |row| Ok((row.get::<_, i64>(0)?.cast_unsigned(), row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

fn count(file: &Path, table: &str) -> i64 {
    let sql = format!("SELECT count(*) FROM {table}");
    Connection::open(file).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap()
}

fn staging_tables(file: &Path) -> i64 {
    count(file, "sqlite_schema WHERE name LIKE 'tidegate_staging_%' AND type = 'table'")
}

fn name(opened_after: u64, attempt: u64) -> TransactionName {
    TransactionName {
        scope: TransactionScope {
            job: "orders".into(),
            log_id: "0123456789abcdef0123456789abcdef".into(),
            lineage: Lineage(1),
            uid: "sink".into(),
        },
        subtask: 0,
        opened_after: CheckpointId(opened_after),
        attempt: AttemptId(attempt),
    }
}

fn text(error: ConnectorError) -> String {
    error.full_text()
}

#[test]
fn a_prepared_transaction_survives_a_crash_and_is_committed_by_the_next_process() {
    testing::run(async {
        let (scene, sink) = (Scene::new(), Scene::log);
        let item = scene.prepared(&sink(&scene), 0, &[(1, 10), (2, 20)]).await;
        assert!(scene.rows().is_empty(), "nothing is visible before the commit");
        assert_eq!(scene.commit(&sink(&scene), &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows(), [(1, 10), (2, 20)]);
        assert_eq!((staging_tables(&scene.file()), count(&scene.file(), "tidegate_staging")), (0, 0));
        assert_eq!(
            count(&scene.file(), "tidegate_ledger WHERE closed_by = 1 AND rows = 2 AND attempt = 1"),
            1
        );
    });
}

#[test]
fn a_second_commit_changes_nothing() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().add_by("user_id");
        let item = scene.prepared(&sink, 0, &[(1, 10), (1, 5)]).await;
        assert_eq!(scene.commit(&sink, &item).await, CommitOutcome::Committed);
        for _ in 0..3 {
            assert_eq!(scene.commit(&sink, &item).await, CommitOutcome::AlreadyCommitted);
        }
        assert_eq!(scene.rows(), [(1, 15)]);
    });
}

#[test]
fn what_was_rolled_back_is_lost_and_says_so() {
    testing::run(async {
        let (scene, other) = (Scene::new(), Scene::new());
        let item = scene.prepared(&scene.log(), 0, &[(1, 10)]).await;
        scene.committer(&scene.log()).await.roll_back(&item.name).await.unwrap();
        assert_eq!((staging_tables(&scene.file()), count(&scene.file(), "tidegate_staging")), (0, 0));
        for place in [&scene, &other] {
            let CommitOutcome::Lost { reason } = place.commit(&place.log(), &item).await else {
                panic!("not lost")
            };
            assert!(reason.contains("neither a staging table nor a ledger row"), "{reason}");
        }
        scene.committer(&scene.log()).await.roll_back(&item.name).await.unwrap();
    });
}

#[test]
fn a_staging_table_with_rows_missing_is_lost_and_not_merged() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.log(), 0, &[(1, 10), (2, 20)]).await;
        let sql = format!("DELETE FROM {} WHERE user_id = 1", item.committable.table);
        Connection::open(scene.file()).unwrap().execute(&sql, []).unwrap();
        let CommitOutcome::Lost { reason } = scene.commit(&scene.log(), &item).await else { panic!() };
        assert!(reason.contains("holds 1 rows of 2"), "{reason}");
        assert!(scene.rows().is_empty());
    });
}

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
fn an_epoch_without_records_makes_no_committable_and_no_table() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        writer.write(&name(0, 1), Batch::default()).await.unwrap();
        assert_eq!(writer.prepare().await.unwrap(), None);
        writer.write(&name(1, 1), Batch::of(vec![(1, 1)])).await.unwrap();
        assert!(writer.prepare().await.unwrap().is_some());
        assert_eq!(writer.prepare().await.unwrap(), None);
        assert_eq!(staging_tables(&scene.file()), 1);
    });
}

#[test]
fn discarding_leaves_nothing() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        writer.write(&name(0, 1), Batch::of(vec![(1, 1); 2_000])).await.unwrap();
        assert_eq!(staging_tables(&scene.file()), 1, "full batches are staged at once");
        writer.write(&name(0, 1), Batch::of(vec![(1, 1)])).await.unwrap();
        writer.discard().await.unwrap();
        assert_eq!((staging_tables(&scene.file()), count(&scene.file(), "tidegate_staging")), (0, 0));
        assert_eq!(writer.prepare().await.unwrap(), None);
    });
}

#[test]
fn listing_finds_left_overs_of_any_attempt_and_only_of_this_sink() {
    testing::run(async {
        let scene = Scene::new();
        let mut names = vec![name(3, 1), name(3, 2), name(9, 1)];
        names[2].scope.lineage = Lineage(2);
        names[2].subtask = 5;
        let mut foreign = vec![name(3, 1); 3];
        foreign[0].scope.uid = "sink2".into();
        foreign[1].scope.job = "orders2".into();
        foreign[2].scope.log_id = "0123".into();
        let mut writer = scene.writer(&scene.log()).await;
        for name in names.iter().chain(&foreign) {
            writer.write(name, Batch::of(vec![(1, 1)])).await.unwrap();
            writer.prepare().await.unwrap();
        }
        drop(writer);
        let mut committer = scene.committer(&scene.log()).await;
        assert_eq!(committer.list().await.unwrap(), names);
        committer.roll_back(&names[0]).await.unwrap();
        assert_eq!(committer.list().await.unwrap(), names[1..]);
        assert_eq!(staging_tables(&scene.file()), 5);
    });
}

#[test]
fn names_that_would_meet_as_text_stay_apart() {
    let (mut a, mut b) = (name(0, 1), name(0, 1));
    (a.scope.job, a.scope.uid) = ("ab".into(), "c".into());
    (b.scope.job, b.scope.uid) = ("a".into(), "bc".into());
    assert_ne!(staging::table_name(&a), staging::table_name(&b));
    assert_ne!(staging::table_name(&name(1, 11)), staging::table_name(&name(11, 1)));
}

#[test]
fn a_staging_table_that_is_there_already_is_never_taken_over() {
    testing::run(async {
        let scene = Scene::new();
        scene.prepared(&scene.log(), 0, &[(1, 1)]).await;
        let mut writer = scene.writer(&scene.log()).await;
        writer.write(&name(0, 1), Batch::of(vec![(2, 2)])).await.unwrap();
        let error = text(writer.prepare().await.unwrap_err());
        assert!(error.contains("already exists"), "{error}");
        let again = text(writer.prepare().await.unwrap_err());
        assert!(again.contains("failed before"), "{again}");
    });
}

#[test]
fn a_table_with_other_columns_is_refused_with_was_and_is() {
    testing::run(async {
        let scene = Scene::new();
        let definition = "CREATE TABLE t (user_id INTEGER NOT NULL, cents TEXT, PRIMARY KEY (user_id))";
        Connection::open(scene.file()).unwrap().execute(definition, []).unwrap();
        let sink = scene.log();
        let opened = sink.open_committer(scene.context(name(0, 1))).await.err().unwrap();
        for error in [opened, TwoPhaseSink::validate(&sink).unwrap_err()] {
            assert!(!error.restartable);
            let error = text(error);
            let was = "was  (\"user_id\" INTEGER NOT NULL, \"cents\" TEXT) with the key (user_id)";
            let is = "is   (\"user_id\" INTEGER NOT NULL, \"cents\" INTEGER NOT NULL) without key";
            assert!(error.contains(was) && error.contains(is), "{error}");
        }
    });
}

#[test]
fn a_table_that_fits_is_used_whatever_the_order_of_its_columns() {
    testing::run(async {
        let scene = Scene::new();
        let definition = "CREATE TABLE T (Cents integer NOT NULL, User_Id integer NOT NULL)";
        Connection::open(scene.file()).unwrap().execute(definition, []).unwrap();
        let item = scene.prepared(&scene.log(), 0, &[(1, 10)]).await;
        assert_eq!(scene.commit(&scene.log(), &item).await, CommitOutcome::Committed);
        assert_eq!(scene.rows(), [(1, 10)]);
    });
}

#[test]
fn a_number_that_does_not_fit_names_table_column_and_row() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        let error = writer.write(&name(0, 1), Batch::of(vec![(1, 1), (u64::MAX, 1)])).await.unwrap_err();
        assert!(!error.restartable);
        let error = text(error);
        assert!(
            error.contains("row 2 for the table t: column \"user_id\": 18446744073709551615 is above"),
            "{error}"
        );
    });
}

#[test]
fn another_process_that_holds_the_file_means_retry_for_a_commit_and_a_restart_for_a_writer() {
    testing::run(async {
        let scene = Scene::new();
        let item = scene.prepared(&scene.log(), 0, &[(1, 10)]).await;
        let mut committer = scene.committer(&scene.log()).await;
        let mut writer = scene.writer(&scene.log()).await;
        let mut other = Connection::open(scene.file()).unwrap();
        let lock = other.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate).unwrap();
        let CommitOutcome::RetryAfter { reason, .. } = committer.commit(&item).await.unwrap() else {
            panic!()
        };
        assert!(reason.contains("another process has the file locked"), "{reason}");
        writer.write(&name(5, 1), Batch::of(vec![(1, 1)])).await.unwrap();
        assert!(writer.prepare().await.unwrap_err().restartable);
        drop(lock);
        assert_eq!(committer.commit(&item).await.unwrap(), CommitOutcome::Committed);
    });
}

#[test]
fn a_full_disk_is_clear_and_may_be_mended() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        let database = database::Database::open(&scene.file(), Duration::ZERO).unwrap();
        let pages: i64 = database
            .with_connection(|c| c.query_row("PRAGMA max_page_count = 9", [], |row| row.get(0)))
            .unwrap();
        assert!(pages <= 20, "{pages}");
        let error = writer.write(&name(0, 1), Batch::of(vec![(1, 1); 50_000])).await.unwrap_err();
        assert!(error.restartable);
        assert!(error.message.contains("the disk is full"), "{}", error.message);
        assert_eq!(staging_tables(&scene.file()), 0, "nothing is left behind");
    });
}

#[test]
fn a_file_that_cannot_be_written_is_clear_and_may_be_mended() {
    testing::run(async {
        let scene = Scene::new();
        let mut writer = scene.writer(&scene.log()).await;
        let database = database::Database::open(&scene.file(), Duration::ZERO).unwrap();
        database.with_connection(|c| c.pragma_update(None, "query_only", true)).unwrap();
        let error = writer.write(&name(0, 1), Batch::of(vec![(1, 1); 1_024])).await.unwrap_err();
        assert!(error.restartable);
        assert!(error.message.contains("cannot be written; change its permissions"), "{}", error.message);
    });
}

#[test]
fn a_file_that_is_no_database_and_a_missing_folder_are_refused() {
    let scene = Scene::new();
    std::fs::write(scene.file(), vec![b'x'; 8_192]).unwrap();
    let error = TwoPhaseSink::validate(&scene.log()).unwrap_err();
    assert!(!error.restartable && error.message.contains("is not a SQLite database"), "{}", error.message);
    let sink = SqliteSink::table(scene.folder.path().join("no/out.db"), "t").column("a", |n: &i64| *n);
    let error = TwoPhaseSink::validate(&sink).unwrap_err();
    assert!(error.message.contains("folder of the SQLite file"), "{}", error.message);
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let scene = Scene::new();
    let refusal = |sink: SqliteSink<Pair>| TwoPhaseSink::validate(&sink).unwrap_err().message;
    let table = |name: &str| SqliteSink::<Pair>::table(scene.file(), name);
    assert!(refusal(table("t")).contains("no columns"));
    assert!(refusal(table("tidegate_ledger").column("a", |p| p.0)).contains("cannot be used"));
    assert!(refusal(scene.log().column("CENTS", |p| p.1)).contains("given twice"));
    assert!(refusal(scene.log().overwrite_by("nobody")).contains("not among the columns"));
    assert!(refusal(scene.log().primary_key("cents").add_by("user_id")).contains("primary key is (cents)"));
    assert!(refusal(scene.log().column("note", |_| "x").add_by("user_id")).contains("cannot be added up"));
    assert!(refusal(scene.log().column("n", |_| None::<i64>).primary_key("n")).contains("may be NULL"));
    assert!(!scene.file().exists(), "nothing is made by looking");
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

#[test]
fn sinks_of_one_process_share_one_connection_by_any_spelling_of_the_path() {
    let scene = Scene::new();
    let one = database::Database::open(&scene.file(), Duration::ZERO).unwrap();
    let other = scene.folder.path().join(".").join("out.db");
    let two = database::Database::open(&other, Duration::ZERO).unwrap();
    assert!(std::sync::Arc::ptr_eq(&one, &two));
    let settings = one
        .read("looking", |c| {
            Ok((
                c.query_row("PRAGMA journal_mode", [], |r| r.get::<_, String>(0))?,
                c.query_row("PRAGMA synchronous", [], |r| r.get::<_, i64>(0))?,
            ))
        })
        .unwrap();
    assert_eq!(settings, ("wal".to_owned(), 2), "WAL and synchronous=FULL");
}

#[test]
fn a_plain_sink_writes_at_once_and_by_the_same_modes() {
    testing::run(async {
        for (sink, expected) in [
            (Scene::log as fn(&Scene) -> SqliteSink<Pair>, vec![(1, 1), (2, 2), (1, 3)]),
            (|scene| scene.log().overwrite_by("user_id"), vec![(1, 3), (2, 2)]),
            (|scene| scene.log().add_by("user_id"), vec![(1, 4), (2, 2)]),
        ] {
            let scene = Scene::new();
            let mut writer = sink(&scene).plain().open(scene.bench.context(), 0).await.unwrap();
            writer.write(Batch::of(vec![(1, 1), (2, 2)])).await.unwrap();
            writer.write(Batch::of(vec![(1, 3)])).await.unwrap();
            assert_eq!(scene.rows(), expected);
            assert_eq!(count(&scene.file(), "sqlite_schema WHERE name LIKE 'tidegate_%'"), 0);
        }
    });
}

#[test]
fn a_plain_sink_names_a_key_that_comes_twice() {
    testing::run(async {
        let scene = Scene::new();
        let sink = scene.log().primary_key(["user_id"]).plain();
        let mut writer = sink.open(scene.bench.context(), 0).await.unwrap();
        writer.write(Batch::of(vec![(7, 1)])).await.unwrap();
        let error = writer.write(Batch::of(vec![(8, 1), (7, 2)])).await.unwrap_err();
        assert!(!error.restartable && error.message.contains("user_id = 7"), "{}", error.message);
        assert_eq!(scene.rows(), [(7, 1)]);
    });
}
